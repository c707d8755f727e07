# SPDX-License-Identifier: Apache-2.0
"""Mapped files that are gathered from as one give what each of them gives alone."""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.column import Dense
from distinput.columns.picked import Picked
from distinput.errors import DistinputError, NotFoundError
from distinput.ops import reader

COUNTS = (7, 0, 12, 5)
WIDE = 80  # values of a row that is gathered when it is handed out


def rows_of(count: int, first: int) -> dict[str, np.ndarray]:
    numbers = np.arange(first, first + count)
    return {"wide": np.repeat(numbers[:, None], WIDE, 1), "narrow": numbers, "odd": np.repeat(numbers[:, None], 3, 1)}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Tables of several sizes, cut into record batches in several ways; one of them a stream."""
    folder, first, made = tmp_path_factory.mktemp("tables"), 0, []
    for number, (count, batch) in enumerate(zip(COUNTS, (None, 3, 5, 1), strict=True)):
        made.append(str(folder / f"{number}.arrow"))
        di.io.write_arrow(made[-1], rows_of(count, first), batch, stream=number == 2)
        first += count
    return made


@given(fetches=st.lists(st.lists(st.integers(0, sum(COUNTS) - 1), max_size=40), min_size=1, max_size=4))
def test_rows_of_several_files_are_those_of_each(paths: list[str], fetches: list[list[int]]) -> None:
    together, alone = di.data.ArrowDataset(paths).node, di.data.ArrowDataset(paths).node
    whole = rows_of(sum(COUNTS), 0)
    for number, wanted in enumerate([range(sum(COUNTS)), *fetches]):
        rows = np.array(wanted, np.int64)
        found = together.fetch(rows, 0)
        with mock.patch.object(reader, "_MOST_FILES", 0):
            other = alone.fetch(rows, 0)
        assert found.size == other.size == len(rows)
        for name, left, right in zip(
            sorted(whole), found.materialize().columns, other.materialize().columns, strict=True
        ):
            assert isinstance(left, Dense)
            assert isinstance(right, Dense)
            assert left.dtype == right.dtype == whole[name].dtype
            assert np.array_equal(left.array, whole[name].take(rows, 0))
            assert np.array_equal(left.array, right.array)
        if number:  # by then all places are known
            last = found.columnar().columns[-1]
            assert isinstance(last, Picked)
            assert last.numbers.tolist() == rows.tolist()


def saved(folder: Path, counts: tuple[int, ...] = (4, 4, 4)) -> list[str]:
    made = [str(folder / f"{number}.npy") for number in range(len(counts))]
    for number, (path, count) in enumerate(zip(made, counts, strict=True)):
        np.save(path, np.full((count, WIDE), number))
    return made


def test_wide_rows_of_several_files_come_from_one_place(tmp_path: Path) -> None:
    dataset = di.data.NpyDataset(saved(tmp_path))
    (column,) = dataset.node.fetch(np.array([11, 0, 5]), 0).columnar().columns
    assert isinstance(column, Picked)
    assert column.numbers.tolist() == [11, 0, 5]  # still those of all files together
    assert column.materialize().array[:, 0].tolist() == [2, 0, 1]


@pytest.mark.parametrize("all_files", [True, False])
def test_a_file_that_was_replaced_is_mapped_anew(tmp_path: Path, all_files: bool) -> None:
    paths = saved(tmp_path)
    node = di.data.NpyDataset(paths).node
    rows = np.tile(np.array([9, 1]), 30 if all_files else 1)
    chosen = node.fetch(rows, 0)
    np.save(tmp_path / "new.npy", np.full((4, WIDE), 7))
    os.replace(tmp_path / "new.npy", paths[2])
    after = node.fetch(rows, 0).materialize().columns[0]
    before = chosen.materialize().columns[0]
    assert isinstance(before, Dense)
    assert isinstance(after, Dense)
    assert before.array[:2, 0].tolist() == [2, 0]  # what was chosen before is gathered from the file as it was
    assert after.array[:2, 0].tolist() == [7, 0]


def test_a_file_that_became_shorter_is_named(tmp_path: Path) -> None:
    paths = saved(tmp_path)
    node = di.data.NpyDataset(paths).node
    node.fetch(np.array([9, 1]), 0)
    np.save(tmp_path / "new.npy", np.full((1, WIDE), 7))
    os.replace(tmp_path / "new.npy", paths[2])
    with pytest.raises(DistinputError, match=r"2\.npy: rows must be from 0 to 0"):
        node.fetch(np.array([9, 1]), 0)


def test_only_files_that_have_a_row_need_be_there(tmp_path: Path) -> None:
    paths = saved(tmp_path)
    node = di.data.NpyDataset(paths).node
    node.fetch(np.array([9, 1]), 0)
    os.unlink(paths[2])
    (column,) = node.fetch(np.array([1, 5]), 0).materialize().columns
    assert isinstance(column, Dense)
    assert column.array[:, 0].tolist() == [0, 1]
    with pytest.raises(NotFoundError, match=r"2\.npy"):
        node.fetch(np.array([9, 1]), 0)


def test_each_row_is_there_once_in_a_shuffled_pass(paths: list[str]) -> None:
    dataset = di.data.ArrowDataset(paths).global_shuffle(seed=3).batch(4)
    for _ in range(2):
        found = np.concatenate([batch["wide"] for batch in dataset])
        assert sorted(found[:, 0].tolist()) == list(range(sum(COUNTS)))
        assert (found == found[:, :1]).all()
