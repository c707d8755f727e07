# SPDX-License-Identifier: Apache-2.0
"""Policy FILE: names are divided before they are shuffled, and what stands in the way is named."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import NotFoundError
from tests.distribute.workers import with_policy

FILE = di.data.experimental.AutoShardPolicy.FILE


def share(dataset: Dataset, workers: int, index: int) -> list[Any]:
    return di.data.experimental.auto_shard_dataset(with_policy(dataset, FILE), workers, index).to_list()


@pytest.fixture
def names(tmp_path: Path) -> Dataset:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    return di.data.Dataset.from_tensor_slices([str(tmp_path / f"{number}.txt") for number in range(6)])


@pytest.mark.parametrize("how", ["shuffle", "global_shuffle"])
def test_workers_that_shuffle_names_apart_still_read_each_file_once(how: str, names: Dataset) -> None:
    def shuffled(seed: int) -> Dataset:
        return names.shuffle(6, seed=seed) if how == "shuffle" else names.global_shuffle(seed=seed)

    shares = [share(di.data.TextLineDataset(shuffled(seed)), 2, seed) for seed in range(2)]
    assert [sorted(part) for part in shares] == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]


@pytest.mark.parametrize(
    "stand",
    [
        lambda ds: ds.scan(0, lambda s, x: (s, x)),
        lambda ds: ds.unique(),
        lambda ds: ds.take_while(lambda _: True),
        lambda ds: ds.ignore_errors(),
        lambda ds: ds.group_by_window(lambda _: 0, lambda _, w: w.batch(2), 2),
    ],
)
def test_what_needs_all_elements_stands_in_the_way(stand: Any, names: Dataset) -> None:
    with pytest.raises(NotFoundError, match="Did not find a shardable source"):
        share(stand(di.data.TextLineDataset(names)), 2, 0)


def test_a_count_of_the_whole_is_not_that_of_a_share(names: Dataset) -> None:
    dataset = di.data.TextLineDataset(names).apply(di.data.experimental.assert_cardinality(6))
    assert share(dataset, 3, 1) == [b"1", b"4"]


def test_names_without_end_are_enough(names: Dataset) -> None:
    dataset = with_policy(di.data.TextLineDataset(names.take(2).repeat()), FILE)
    assert di.data.experimental.auto_shard_dataset(dataset, 4, 3).take(2).to_list() == [b"1", b"1"]


def test_no_name_at_all_is_no_error() -> None:
    empty = di.data.Dataset.from_tensor_slices(["nowhere.txt"]).take(0)
    assert share(di.data.TextLineDataset(empty), 2, 0) == []
