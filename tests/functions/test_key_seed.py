# SPDX-License-Identifier: Apache-2.0
"""Generators of a key."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from distinput.ops.map import KeySeed, generator_of

FIRST, SECOND = np.array([1, 2], np.uint64), np.array([1, 3], np.uint64)


def test_numbers_are_those_of_the_key() -> None:
    assert generator_of(FIRST).random() == np.random.Generator(np.random.Philox(key=FIRST)).random()
    assert generator_of(FIRST).random() != generator_of(SECOND).random()


def test_what_is_spawned_follows_from_the_key_too() -> None:
    def spawned(key: np.ndarray) -> list[float]:
        rng = generator_of(key)
        return [child.random() for child in (*rng.spawn(2), *rng.spawn(1))]

    assert spawned(FIRST) == spawned(FIRST) != spawned(SECOND)
    assert len(set(spawned(FIRST))) == 3


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_other_generators_of_the_seed_follow_from_the_key(kind: str) -> None:
    def numbers(key: np.ndarray) -> list[int]:
        seed = generator_of(key).bit_generator.seed_seq
        return np.random.Generator(getattr(np.random, kind)(seed)).integers(1 << 60, size=4).tolist()

    assert numbers(FIRST) == numbers(FIRST) != numbers(SECOND)


def test_it_can_be_sent() -> None:
    rng = generator_of(FIRST)
    assert pickle.loads(pickle.dumps(rng)).random() == rng.random()


@pytest.mark.fresh_process
def test_it_spawns_where_no_other_was_made(tmp_path: Path) -> None:
    rng = generator_of(FIRST)
    (tmp_path / "rng").write_bytes(pickle.dumps(rng))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'rng')!r}, 'rb')).spawn(1)[0].random())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == (f"{rng.spawn(1)[0].random()}\n", "")


def test_the_seed_of_a_generator_that_version_0_4_0_has_pickled_spawns() -> None:
    seed = KeySeed.__new__(KeySeed)
    seed.__setstate__({"key": FIRST, "_children": None})
    assert seed.spawn(1)[0].generate_state(2).tolist() == KeySeed(FIRST).spawn(1)[0].generate_state(2).tolist()
