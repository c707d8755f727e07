# SPDX-License-Identifier: Apache-2.0
"""`map(rng=True)`: random numbers that depend on seed, pass, step and position alone; the laws are in tests/laws."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NotFoundError
from tests.distribute.workers import with_policy

D: Any = di.data.Dataset


def beside_a_number(x: Any, rng: np.random.Generator) -> Any:
    return x, rng.integers(1 << 40)


def numbered(ds: Any, **how: Any) -> Any:
    return ds.map(beside_a_number, rng=True, **{"seed": 5, **how})


def pairs(ds: Any) -> list[tuple[int, int]]:
    return [(int(x), int(number)) for x, number in ds]


EXPECTED = pairs(numbered(D.range(40)))


def test_each_element_has_its_own_numbers_and_each_pass_others() -> None:
    ds = numbered(D.range(40))
    first, second = pairs(ds), pairs(ds)
    assert first == EXPECTED
    assert [x for x, _ in first] == [x for x, _ in second] == list(range(40))
    assert len({number for _, number in first + second}) == 80


@pytest.mark.parametrize(
    "how", [{"num_parallel_calls": 3}, {"num_parallel_calls": -1}, {"num_parallel_calls": 2, "processes": True}]
)
def test_threads_and_processes_change_nothing(how: dict[str, Any]) -> None:
    assert pairs(numbered(D.range(40), **how)) == EXPECTED


def test_steps_and_seeds_have_numbers_of_their_own() -> None:
    other = [number for _, number in pairs(numbered(D.range(40), seed=6))]
    twice: Any = numbered(D.range(40)).map(lambda x, number, rng: (number, rng.integers(1 << 40)), rng=True, seed=5)
    first, second = zip(*pairs(twice), strict=True)
    assert list(first) == [number for _, number in EXPECTED]
    assert not {*first} & {*second, *other}


def test_without_a_seed_a_state_remembers_the_one_that_was_drawn() -> None:
    ds = numbered(D.range(40), seed=None)
    with iter(ds) as it:
        before = [next(it) for _ in range(7)]
        state, rest = it.state(), pairs(it)
    fresh = numbered(D.range(40), seed=None)
    assert pairs(fresh.restore(state)) == rest
    assert pairs(numbered(D.range(40), seed=None)) != pairs(before) + rest


def shares(ds: Any, policy: str, workers: int) -> list[list[tuple[int, int]]]:
    shard = di.data.experimental.auto_shard_dataset
    return [
        pairs(shard(with_policy(ds, di.data.experimental.AutoShardPolicy[policy]), workers, i)) for i in range(workers)
    ]


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("policy", ["DATA", "BALANCED", "AUTO"])
@pytest.mark.parametrize(
    "source",
    [
        lambda: D.range(40),
        lambda: D.range(40).map(lambda x: x).shuffle(1),
        lambda: D.range(40).filter(lambda x: True).apply(di.data.experimental.assert_cardinality(40)),
    ],
)
def test_workers_change_nothing(source: Callable[[], Any], policy: str, workers: int) -> None:
    if policy == "BALANCED" and source().node.start_at(0, 0) is None:
        return  # its rows cannot be counted off
    found = shares(numbered(source()), policy, workers)
    assert sorted(pair for share in found for pair in share) == EXPECTED


def test_a_worker_reads_its_own_rows_alone() -> None:
    looked: list[int] = []
    ds = numbered(D.range(40).map(lambda x: looked.append(int(x)) or x, output_signature=di.TensorSpec([], "int64")))
    with_data = with_policy(ds, di.data.experimental.AutoShardPolicy.DATA)
    assert pairs(di.data.experimental.auto_shard_dataset(with_data, 4, 1)) == EXPECTED[1::4]
    assert looked == list(range(1, 40, 4))


def test_files_are_not_dealt_below_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("0\n1\n2\n")
    lines = numbered(di.data.TextLineDataset([str(tmp_path / "a"), str(tmp_path / "b")]).map(int))
    assert sorted(pair for share in shares(lines, "AUTO", 2) for pair in share) == sorted(pairs(lines))
    with pytest.raises(NotFoundError, match=r"policy FILE: map\(rng=True\) needs to know .* use policy DATA"):
        shares(lines, "FILE", 2)


def test_rows_are_fetched_with_their_numbers() -> None:
    assert sorted(pairs(numbered(D.range(40)).global_shuffle(seed=1))) == EXPECTED
    assert tuple(map(int, numbered(D.range(40))[17])) == EXPECTED[17]
    assert pairs(numbered(D.range(40)).skip(9)) == EXPECTED[9:]


def test_elements_that_fail_have_no_position() -> None:
    ds = D.range(50).map(_fails_at_fives).ignore_errors()
    assert pairs(numbered(D.range(50).map(_fails_at_fives)).ignore_errors()) == pairs(numbered(ds))


def _fails_at_fives(x: Any) -> Any:
    if x % 5 == 0:
        raise ValueError("five")
    return x


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="map: seed goes with rng=True, got seed=3 without it"):
        D.range(3).map(lambda x: x, seed=3)
    with pytest.raises(TypeError, match="map: seed must be an integer, got 'x'"):
        D.range(3).map(beside_a_number, rng=True, seed="x")
    with pytest.raises(TypeError, match="map: map_func must be a function, got 3"):
        D.range(3).map(3, rng=True)
