# SPDX-License-Identifier: Apache-2.0
"""Rows that travel as numbers are, whatever is done with them, the rows that were copied at once."""

import pickle
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns import picked as module
from distinput.columns.block import ColumnBlock, concat_blocks
from distinput.columns.column import Column, Dense, LazyColumn
from distinput.columns.picked import Memory, Picked, picked, places_of_each, put_in_order
from distinput.columns.regroup import concat_columns, split, stack
from distinput.kernels.spans import gather_rows
from distinput.values.nest import LEAF

INNER = [(), (3,), (2, 2), (0,)]
DTYPES = ["uint8", "int64", "float32", "int16"]


def columns(data: st.DataObject) -> tuple[Picked, Dense]:
    """The same rows as numbers and as an array."""
    count = data.draw(st.integers(1, 9))
    inner = data.draw(st.sampled_from(INNER))
    array = np.arange(count * int(np.prod(inner))).reshape(count, *inner).astype(data.draw(st.sampled_from(DTYPES)))
    numbers = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=12)), np.int64)
    made = Dense(array.take(numbers, 0))
    if array.nbytes and data.draw(st.booleans()):
        return Picked(memory_of(array, data), numbers), made
    return Picked(array, numbers), made


def memory_of(array: Any, data: st.DataObject) -> Memory:
    """The rows of an array in parts, with other bytes between them."""
    ends = np.array([0, *sorted(data.draw(st.lists(st.integers(0, len(array)), max_size=4))), len(array)])
    raw = array.reshape(-1).view(np.uint8)
    width = array[0].nbytes
    begins, parts = [], [np.zeros(5, np.uint8)]
    for first, stop in pairwise(ends.tolist()):
        begins.append(sum(map(len, parts)))
        parts += [raw[first * width : stop * width], np.full(data.draw(st.integers(0, 3)), 255, np.uint8)]
    return Memory(np.concatenate(parts), np.array(begins), ends, array.shape[1:], array.dtype)


def same(left: Column, right: Column) -> None:
    """Every way to look at them."""
    assert len(left) == len(right)
    assert left.dtype == right.dtype
    assert left.nbytes == right.nbytes
    assert repr(left.lengths()) == repr(right.lengths())
    for index in range(len(left)):
        _equal(left.row(index), right.row(index))
    values = list(left.values())
    assert len(values) == len(right)
    for a, b in zip(values, right.values(), strict=True):
        _equal(a, b)
    assert left.inner == right.inner
    if isinstance(right, Dense):
        for other in (left.materialize(), left.copied(), pickle.loads(pickle.dumps(left))):
            assert isinstance(other, Dense)
            _equal(other.array, right.array)


def _equal(left: Any, right: Any) -> None:
    assert np.shape(left) == np.shape(right)
    assert np.asarray(left).dtype == np.asarray(right).dtype
    assert np.array_equal(left, right)


@given(st.data())
def test_picked_rows_are_those_copied_at_once(data: st.DataObject) -> None:
    left: Column
    right: Column
    left, right = columns(data)
    far = {"_FAR_BYTES": data.draw(st.sampled_from([1, 1 << 20])), "_FAR_ROW": 1, "_FAR_ROWS": 1}
    with mock.patch.multiple(module, _LARGE_BYTES=data.draw(st.sampled_from([1, 20, 1 << 20])), **far):
        for _ in range(data.draw(st.integers(0, 4))):
            match data.draw(st.sampled_from(["rows", "take", "stack", "unstack", "split", "materialize", "concat"])):
                case "rows":
                    ends = data.draw(st.tuples(st.integers(0, len(right)), st.integers(0, len(right))))
                    step = data.draw(st.integers(1, 3))
                    left, right = left.rows(*ends, step), right.rows(*ends, step)
                case "take" if len(right):
                    indices = np.array(data.draw(st.lists(st.integers(0, len(right) - 1), max_size=9)), np.int64)
                    left, right = left.take(indices), right.take(indices)
                case "stack" if len(right):
                    size = data.draw(st.sampled_from([n for n in range(1, len(right) + 1) if len(right) % n == 0]))
                    left, right = stack(left, size), stack(right, size)
                case "unstack" if right.lengths() is not None:
                    left, right = left.unstack(), right.unstack()
                case "split" if len(right):
                    cut = data.draw(st.integers(0, len(right)))
                    counts = np.array([cut, len(right) - cut])
                    same(split(left, counts), split(right, counts))
                case "materialize":
                    made = left.materialize()
                    assert not isinstance(made, LazyColumn)
                    same(made, right)
                case "concat":
                    (left,) = concat_blocks([ColumnBlock(LEAF, [left], len(left))] * 2).columns
                    (right,) = concat_blocks([ColumnBlock(LEAF, [right], len(right))] * 2).columns
        same(left, right)


@given(st.data())
def test_rows_of_several_parts_come_in_their_order(data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from([(2,), (1, 3)]))
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    order = np.array(data.draw(st.permutations(range(sum(sizes)))), np.int64)
    places = np.split(order, np.cumsum(sizes)[:-1])
    lefts, rights = [], []
    for place in places:
        array = data.draw(st.integers(0, 99)) + np.arange(8 * int(np.prod(inner)), dtype=np.int32).reshape(8, *inner)
        numbers = np.array(data.draw(st.lists(st.integers(0, 7), min_size=len(place), max_size=len(place))), np.int64)
        source: Any = array
        if data.draw(st.booleans()):
            source = memory_of(array, data)
        lefts.append(ColumnBlock(LEAF, [Picked(source, numbers)], len(numbers)))
        rights.append(ColumnBlock(LEAF, [Dense(source.take(numbers, 0))], len(numbers)))
    left, right = put_in_order(lefts, places).columns[0], put_in_order(rights, places).columns[0]
    assert isinstance(left, Picked)
    same(left, right)


@pytest.mark.parametrize(
    "source, prefetched",
    [
        (np.arange(24.0).reshape(4, 6), True),
        (np.arange(24, dtype=">i4").reshape(4, 2, 3), True),
        (np.arange(24).astype("M8[s]").reshape(4, 6), True),
        (np.asfortranarray(np.arange(24.0).reshape(4, 6)), False),
        (np.arange(48.0).reshape(4, 12)[:, ::2], False),
        (np.array([[1, "a"]] * 4, object), False),
    ],
)
def test_rows_that_are_prefetched_are_those_that_numpy_takes(source: Any, prefetched: bool) -> None:
    numbers = np.array([[3, 0], [1, 1], [2, 3]])
    calls = mock.Mock(side_effect=gather_rows)
    calls.function = calls
    with mock.patch.multiple(module, _FAR_BYTES=1, _FAR_ROW=1, _FAR_ROWS=2, gather_rows=calls):
        batches = list(Picked(source, numbers).values())
        with pytest.raises(IndexError):
            list(Picked(source, numbers + 1).values())
    assert calls.call_count == (3 if prefetched else 0)
    with mock.patch.multiple(module, _FAR_BYTES=1, _FAR_ROW=1, _FAR_ROWS=3, gather_rows=calls):
        few = list(Picked(source, numbers).values())
    assert calls.call_count == (3 if prefetched else 0)  # a call for a few rows costs more than it saves
    for batch, wanted in zip(few, batches, strict=True):
        _equal(batch, wanted)
    for batch, wanted in zip(batches, source.take(numbers, 0), strict=True):
        _equal(batch, wanted)
        assert batch.flags.writeable
        assert not np.shares_memory(batch, source)


def test_a_batch_is_gathered_when_it_is_handed_out() -> None:
    images = ColumnBlock(LEAF, [Dense(np.zeros((100, 784), np.uint8))], 100)
    batches = picked(images, np.arange(100)).stack(50)
    column = batches.columns[0]
    assert isinstance(column, Picked)
    first, second = batches.elements()
    assert first.shape == second.shape == (50, 784)
    assert first.flags.writeable
    assert not np.shares_memory(first, second)
    assert column._made is None


def test_few_bytes_are_copied_at_once() -> None:
    labels = ColumnBlock(LEAF, [Dense(np.arange(100))], 100)
    assert type(picked(labels, np.arange(9)).columns[0]) is Dense


@pytest.mark.parametrize("large", [1, 1 << 20])
def test_a_row_that_is_not_there_is_an_error(large: int) -> None:
    with mock.patch.object(module, "_LARGE_BYTES", large):
        column = Picked(np.zeros((4, 100)), np.array([[0, 4]]))
        with pytest.raises(IndexError):
            list(column.values())
        with pytest.raises(IndexError):
            column.materialize()


def test_what_is_gathered_now_is_not_gathered_again() -> None:
    batches = picked(ColumnBlock(LEAF, [Dense(np.arange(800).reshape(8, 100))], 8), np.arange(8)).stack(4)
    first, _ = batches.materialize().elements()
    again, _ = batches.elements()
    assert np.shares_memory(first, again)


def test_rows_of_one_source_are_gathered_together() -> None:
    source = np.arange(6 * 4000.0).reshape(6, 4000)
    parts = [Picked(source, np.array(numbers)) for numbers in ([4, 1], [0], [5, 5])]
    found = concat_columns(parts)
    assert all(part._made is None for part in parts)
    assert (found.materialize().array == source[[4, 1, 0, 5, 5]]).all()
    other = concat_columns([*parts, Picked(source.copy(), np.array([2]))])
    assert (other.materialize().array == source[[4, 1, 0, 5, 5, 2]]).all()


@given(st.lists(st.one_of(st.integers(-2, 2), st.sampled_from([2**16 - 1, 2**16, -(2**63), 2**63 - 1])), max_size=12))
def test_the_places_of_each_number(numbers: list[int]) -> None:
    places = {number: values.tolist() for number, values in places_of_each(np.array(numbers, np.int64)).items()}
    assert list(places) == sorted(set(numbers))
    assert places == {number: [place for place, each in enumerate(numbers) if each == number] for number in places}
