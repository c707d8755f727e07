# SPDX-License-Identifier: Apache-2.0
"""Policy BALANCED on a tree: what passes it on, what is divided by positions, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import NotFoundError
from distinput.sharding.policies.balanced import is_of_names, names_below
from tests.distribute.workers import with_policy

BALANCED = di.data.experimental.AutoShardPolicy.BALANCED
RANGE = di.data.Dataset.range


def share(dataset: Dataset, workers: int, worker: int) -> list[Any]:
    return di.data.experimental.auto_shard_dataset(with_policy(dataset, BALANCED), workers, worker).to_list()


def text(folder: Path, files: int) -> Dataset:
    for number in range(files):
        (folder / f"{number}.txt").write_text("".join(f"{number}{i}\n" for i in range(4)))
    return di.data.TextLineDataset([str(folder / f"{number}.txt") for number in range(files)])


@pytest.mark.parametrize(
    "dataset, shares",
    [
        (RANGE(5), [[0, 1], [2, 3, 4]]),
        (RANGE(5).take(3), [[0], [1, 2]]),
        (RANGE(4).map(lambda x: x + 1).batch(2), [[[1, 2]], [[3, 4]]]),
        (RANGE(2).concatenate(RANGE(10, 12)), [[0, 10], [1, 11]]),
        (di.data.Dataset.zip(RANGE(4), RANGE(4)), [[(0, 0), (1, 1)], [(2, 2), (3, 3)]]),
        (RANGE(4).repeat(2), [[0, 1, 0, 1], [2, 3, 2, 3]]),
    ],
)
def test_rows_that_can_be_counted_are_divided_by_their_positions(dataset: Dataset, shares: list[Any]) -> None:
    assert [share(dataset, 2, worker) for worker in range(2)] == shares


def test_what_needs_all_elements_is_refused() -> None:
    with pytest.raises(
        NotFoundError, match="BALANCED: unique needs to see all elements, and those it reads cannot be counted"
    ):
        share(RANGE(4).unique(), 2, 0)


def test_a_share_is_not_divided_again(tmp_path: Path) -> None:
    once = di.data.experimental.auto_shard_dataset(with_policy(text(tmp_path, 2), BALANCED), 2, 0)
    with pytest.raises(NotFoundError, match="reads the parts of files that one worker was given"):
        share(once, 2, 0)


def test_three_workers_share_two_files(tmp_path: Path) -> None:
    dataset = text(tmp_path, 2)
    found = [share(dataset, 3, worker) for worker in range(3)]
    assert sorted(line for part in found for line in part) == sorted(dataset.to_list())
    assert all(2 <= len(part) <= 4 for part in found)


def test_names_are_found_below_what_repeats_and_reorders_them() -> None:
    names = di.data.Dataset.from_tensor_slices(["a", "b"])
    node, above = names_below(names.shuffle(2, seed=1).repeat(2).prefetch(1).cache().node)
    assert node is names.node
    assert [step.op for step in above] == ["cache", "prefetch", "repeat", "shuffle"]
    taken = names.take(1)
    assert names_below(taken.node) == (taken.node, [])


@pytest.mark.parametrize(
    "dataset, told",
    [
        (di.data.Dataset.from_tensor_slices(["a", "b"]), True),
        (di.data.Dataset.from_tensor_slices([["a", "b"]]), False),
        (di.data.Dataset.from_tensor_slices((["a"], ["b"])), False),
        (RANGE(2), False),
    ],
)
def test_single_strings_may_be_names(dataset: Dataset, told: bool) -> None:
    assert is_of_names(dataset.node) == told


def test_names_without_end_are_refused(tmp_path: Path) -> None:
    text(tmp_path, 1)
    names = di.data.Dataset.from_generator(
        lambda: iter([str(tmp_path / "0.txt")] * 3), output_signature=di.TensorSpec([], "string")
    ).apply(di.data.experimental.assert_cardinality(di.data.INFINITE_CARDINALITY))
    with pytest.raises(NotFoundError, match="the names of files must end"):
        share(di.data.TextLineDataset(names.map(lambda name: name)), 2, 0)
