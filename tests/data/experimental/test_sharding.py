# SPDX-License-Identifier: Apache-2.0
"""Which worker reads what; the expected parts are TensorFlow 2.21's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import NotFoundError

Dataset = di.data.Dataset
RANGE = Dataset.range
Policy = di.data.experimental.AutoShardPolicy


def sharded(dataset: di.data.Dataset, policy: str, workers: int = 2) -> list[list[Any]]:
    """The elements of each worker."""
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = Policy[policy]
    dataset = dataset.with_options(options)
    return [di.data.experimental.auto_shard_dataset(dataset, workers, i, workers).to_list() for i in range(workers)]


def twice(x: Any) -> di.data.Dataset:
    return Dataset.from_tensors(x).repeat(2)


@pytest.fixture
def names(tmp_path: Path) -> di.data.Dataset:
    """Three files of 2, 1 and 1 lines."""
    for index, lines in enumerate([["00", "01"], ["10"], ["20"]]):
        (tmp_path / f"{index}.txt").write_text("".join(f"{line}\n" for line in lines))
    return Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)


@pytest.mark.parametrize("policy", ["FILE", "AUTO"])
def test_files_are_dealt_out(names: di.data.Dataset, policy: str) -> None:
    assert sharded(names.flat_map(di.data.TextLineDataset), policy) == [[b"00", b"01", b"20"], [b"10"]]


@pytest.mark.parametrize("policy", ["FILE", "AUTO"])
def test_a_flat_map_that_reads_no_file_is_passed_through(names: di.data.Dataset, policy: str) -> None:
    lines = names.map(lambda name: name).flat_map(di.data.TextLineDataset)
    want = [[b"00", b"00", b"01", b"01", b"20", b"20"], [b"10", b"10"]]
    assert sharded(lines.flat_map(twice), policy) == want
    assert sharded(lines.prefetch(1).interleave(twice, cycle_length=1), policy) == want


def test_over_listed_names_the_records_are_dealt_out(names: di.data.Dataset) -> None:
    lines = names.flat_map(di.data.TextLineDataset).flat_map(twice)
    assert sharded(lines, "FILE") == [[b"00", b"00", b"10", b"10"], [b"01", b"01", b"20", b"20"]]


def test_data_deals_out_elements(names: di.data.Dataset) -> None:
    assert sharded(names.flat_map(di.data.TextLineDataset), "DATA") == [[b"00", b"10"], [b"01", b"20"]]


def test_off_leaves_everything_to_everyone() -> None:
    assert sharded(RANGE(3), "OFF") == [[0, 1, 2]] * 2


def test_hint_fills_in_the_placeholder() -> None:
    hint = di.data.experimental.SHARD_HINT
    assert sharded(RANGE(5).shard(hint, hint).batch(2), "HINT") == [[[0, 2], [4]], [[1, 3]]]


@pytest.mark.parametrize(
    "dataset, message",
    [
        (RANGE(4), "Found an unshardable source dataset: range"),
        (RANGE(4).flat_map(RANGE), "Found an unshardable source dataset: range"),
        (
            RANGE(4).batch(2).scan(np.int64(0), lambda s, x: (s, x)),
            "Did not find a shardable source: scan must see all",
        ),
    ],
)
def test_file_needs_files(dataset: di.data.Dataset, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        sharded(dataset, "FILE")


@pytest.mark.parametrize(
    "rows, worker, want",
    [(7, 0, [[0, 1], [2, 3], [4, 5], [6]]), (7, 1, [[0, 1], [2], [3, 4], [5, 6]])],
)
def test_the_cut_of_a_global_batch(rows: int, worker: int, want: list[list[int]]) -> None:
    assert di.data.experimental.rebatch_for_worker(RANGE(rows).batch(7), 2, 2, worker).to_list() == want


def test_older_spellings() -> None:
    assert di.data.experimental.cardinality(RANGE(3)) == 3
    assert di.data.experimental.get_single_element(RANGE(1)) == 0


@pytest.mark.parametrize("policy", ["FILE", "AUTO"])
def test_below_a_flat_map_the_elements_of_a_generator_are_dealt_out(policy: str) -> None:
    # To TensorFlow 2.21 a generator is a flat_map over a tensor.
    rows = [[9], [12, 7, 1], [5, 2]]
    spec = di.TensorSpec([None], "int64")
    made = Dataset.from_generator(lambda: iter(rows), output_signature=spec)
    made = made.map(lambda x: x + 1).flat_map(Dataset.from_tensor_slices)
    assert sharded(made, policy) == [[10, 6, 3], [13, 8, 2]]


def test_a_generator_alone_cannot_be_dealt_out_by_files() -> None:
    made = Dataset.from_generator(lambda: iter([1, 2, 3]), output_signature=di.TensorSpec([], "int64")).batch(1)
    with pytest.raises(NotFoundError, match="Found an unshardable source dataset: generator"):
        sharded(made, "FILE")
    assert sharded(made, "AUTO") == [[[1], [3]], [[2]]]
