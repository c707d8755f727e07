# SPDX-License-Identifier: Apache-2.0
"""Generators of a key."""

import pickle

import numpy as np

from distinput.ops.map import KeySeed

FIRST, SECOND = np.array([1, 2], np.uint64), np.array([1, 3], np.uint64)


def generator(key: np.ndarray) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(KeySeed(key)))  # type: ignore[arg-type]


def test_numbers_are_those_of_the_key() -> None:
    assert generator(FIRST).random() == np.random.Generator(np.random.Philox(key=FIRST)).random()
    assert generator(FIRST).random() != generator(SECOND).random()


def test_what_is_spawned_follows_from_the_key_too() -> None:
    def spawned(key: np.ndarray) -> list[float]:
        rng = generator(key)
        return [child.random() for child in (*rng.spawn(2), *rng.spawn(1))]

    assert spawned(FIRST) == spawned(FIRST) != spawned(SECOND)
    assert len(set(spawned(FIRST))) == 3


def test_it_can_be_sent() -> None:
    rng = generator(FIRST)
    assert pickle.loads(pickle.dumps(rng)).random() == rng.random()
