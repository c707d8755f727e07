# SPDX-License-Identifier: Apache-2.0
"""Columns whose rows are ragged tensors, against plain lists."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.arrow.adopt import frozen
from distinput.arrow.record_batches import column_to_arrow
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Objects, Ragged, RaggedBatches
from distinput.columns.regroup import as_ragged_tensors, column_of, concat_columns, split, stack
from distinput.columns.rows import loosened
from distinput.columns.state import word_of
from distinput.errors import InvalidArgumentError
from distinput.values.nest import LEAF
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import RaggedTensorSpec, Spec

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=4)
BATCHES = st.lists(ROWS, min_size=1, max_size=5)


def ragged(rows: list[list[int]], dtype: Any = np.int64) -> RaggedTensor:
    flat = np.array([x for row in rows for x in row], np.int64)
    values = np.array([b"%d" % x for x in flat], object) if dtype is object else flat.astype(dtype)
    return RaggedTensor.from_row_lengths(values, np.array([len(row) for row in rows], np.int64))


def column(batches: list[list[list[int]]]) -> Column:
    return column_of([ragged(batch) for batch in batches])


def lists(made: Column) -> list[Any]:
    assert made.ragged_rank is not None
    found = [item.to_list() for item in made.values()]
    assert found == [made.row(i).to_list() for i in range(len(made))]
    return found


@given(BATCHES, st.data())
def test_rows_are_chosen_grouped_and_taken_apart_as_lists_are(batches: Any, data: st.DataObject) -> None:
    whole = column(batches)
    assert isinstance(whole, RaggedBatches)
    assert lists(whole) == batches
    start, stop = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))
    step = data.draw(st.integers(1, 3))
    assert lists(whole.rows(start, stop, step)) == batches[start:stop:step]
    order = data.draw(st.lists(st.integers(0, len(batches) - 1), max_size=6))
    taken = whole.take(np.array(order, np.int64))
    assert lists(taken) == [batches[i] for i in order]
    for same in (taken.copied(), pickle.loads(pickle.dumps(taken, 5))):
        assert lists(same) == [batches[i] for i in order]
    rows = [row for i in order for row in batches[i]]
    assert [row.tolist() for row in taken.unstack().values()] == rows
    assert taken.lengths().tolist() == [len(batches[i]) for i in order]  # type: ignore[union-attr]
    assert lists(concat_columns([taken, whole])) == [*[batches[i] for i in order], *batches]
    assert lists(stack(whole, 1)) == [[batch] for batch in batches]
    assert lists(stack(taken.unstack(), 1)) == [[row] for row in rows]
    counts = np.array([len(order), 0], np.int64)
    assert lists(split(taken, counts)) == [[batches[i] for i in order], []]
    assert column_to_arrow(taken).to_pylist() == [batches[i] for i in order]


def test_slices_and_batches_move_no_values() -> None:
    flat = np.arange(6)
    rows = Ragged(Dense(flat), np.array([0, 2, 3]), np.array([2, 1, 3]), loose=True)
    made = split(rows, np.array([2, 1]))
    for item in [*made.values(), made.rows(1, 2).row(0), stack(made, 2).row(0)]:
        assert np.shares_memory(item.flat_values, flat)


def test_rows_in_any_order_are_gathered() -> None:
    rows = Ragged(Dense(np.arange(6)), np.array([3, 0, 2]), np.array([3, 2, 1]), loose=True)
    assert lists(split(rows, np.array([2, 1]))) == [[[3, 4, 5], [0, 1]], [[2]]]


@given(st.data())
def test_each_batch_is_handed_out_as_it_is_gathered_alone(data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from([(), (3,), (2, 2), (0,)]))
    values = (
        np.arange(20 * int(np.prod(inner))).reshape(20, *inner).astype(data.draw(st.sampled_from(["u1", "<f4", ">i8"])))
    )
    if data.draw(st.booleans()):
        values = np.repeat(values, 2, axis=0)[::2]  # whose rows do not lie side by side
    ends = np.array([0, *sorted(data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=8)))])
    rows = Ragged(Dense(values), ends[:-1], np.diff(ends), loose=True)
    if data.draw(st.booleans()):  # otherwise all in order
        order = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=12))
        rows = rows.take(np.array(order))
    spans = st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows))).map(sorted)
    starts, stops = np.array(data.draw(st.lists(spans, min_size=1, max_size=6))).T
    batches = RaggedBatches(rows, starts, stops - starts)
    for index, batch in enumerate(batches.values()):
        alone = batches.row(index)
        assert batch.values.dtype == alone.values.dtype
        np.testing.assert_array_equal(batch.values, alone.values, strict=True)
        np.testing.assert_array_equal(batch.row_splits, alone.row_splits, strict=True)
        assert np.shares_memory(batch.values, values) == np.shares_memory(alone.values, values)
    assert index + 1 == len(batches)


@pytest.mark.parametrize("rank", [1, 2])
def test_arrays_of_all_columns_become_ragged(rank: int) -> None:
    arrays = [np.arange(n * m).reshape(n, m) for n, m in ((2, 3), (0, 1), (1, 0), (2, 2))]
    assert lists(as_ragged_tensors(Objects(list(arrays), np.dtype(int)), 1)) == [array.tolist() for array in arrays]
    cube = np.arange(24).reshape(2, 3, 2, 2)
    assert lists(as_ragged_tensors(Dense(cube), rank)) == cube.tolist()
    assert as_ragged_tensors(Dense(cube), rank).ragged_rank == rank
    words = np.array([[b"a", b"b"], [b"c", b""]], object)
    assert lists(as_ragged_tensors(Strings.of_array(words[None]), 1)) == [words.tolist()]


def test_arrays_that_differ_under_the_ragged_dimensions() -> None:
    arrays = Objects([np.zeros((2, 3, 1)), np.zeros((2, 3, 2))], np.dtype(float))
    with pytest.raises(InvalidArgumentError, match=r"differ in more than their ragged dimensions.*\[\(1,\), \(2,\)\]"):
        as_ragged_tensors(arrays, 1)
    leaf = RaggedTensorSpec((None, 3), np.float64, 0)
    block = ColumnBlock(LEAF, [Objects([np.zeros((1, 3)), np.zeros((2, 2))], np.dtype(float))], 2)
    with pytest.raises(InvalidArgumentError, match="differ in more than their ragged dimensions"):
        loosened(block, Spec(LEAF, (leaf,)))


def test_only_loose_rows_are_stacked_raggedly() -> None:
    rows = Ragged(Dense(np.arange(4)), np.array([0, 2]), np.array([2, 2]))
    assert isinstance(stack(rows, 2), Dense)
    (loose,) = (
        loosened(ColumnBlock(LEAF, [rows], 2), Spec(LEAF, (RaggedTensorSpec((None,), int, 0),))).columnar().columns
    )
    assert lists(stack(loose, 2)) == [[[0, 1], [2, 3]]]
    for same in (loose.rows(0, 1), loose.take(np.array([1])), loose.copied(), concat_columns([loose, rows])):
        assert split(same, np.array([1, len(same) - 1])).ragged_rank == 1


@pytest.mark.parametrize(
    "other",
    [ragged([[1]], np.int32), RaggedTensor.from_list([[[1]]]), RaggedTensor.from_list([np.zeros((1, 2), np.int64)])],
)
def test_ragged_tensors_of_one_column_are_of_one_kind(other: RaggedTensor) -> None:
    with pytest.raises(TypeError, match="differ in kind"):
        column_of([ragged([[1]]), other])


def test_arrays_and_ragged_tensors_make_no_column() -> None:
    for items in ([ragged([[1]]), np.zeros((1, 1), np.int64)], [np.zeros((1, 1), np.int64), ragged([[1]])]):
        with pytest.raises(TypeError, match="some are ragged tensors, some are not"):
            column_of(items)


def test_digests_tell_columns_apart() -> None:
    words = {word_of(column(batches)) for batches in ([[[1], [2]]], [[[1, 2]]], [[[1]], [[2]]], [[[1], [3]]])}
    assert len(words) == 4
    assert word_of(column([[[1], [2]]])) == word_of(column([[[0]], [[1], [2]]]).rows(1, 2))


def test_what_many_look_at_cannot_be_written_to() -> None:
    block = frozen(ColumnBlock(LEAF, [column([[[1], [2]]])], 1))
    with pytest.raises(ValueError, match="read-only"):
        block.row(0).values[0] = 3


def test_a_batch_that_is_gathered_keeps_no_other_one() -> None:
    rows = Ragged(Dense(np.arange(60)), np.arange(58, -2, -2), np.full(30, 2))
    batches = list(RaggedBatches(rows, np.arange(0, 30, 3), np.full(10, 3)).values())
    assert batches[4].to_list() == [[34, 35], [32, 33], [30, 31]]
    assert batches[4].values.base.nbytes == batches[4].values.nbytes
    assert batches[4].row_splits.base is None
