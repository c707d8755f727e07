# SPDX-License-Identifier: Apache-2.0
"""A column of rows does what a plain list of the same rows does, whatever class it is of."""

import gc
import pickle
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import ColumnBlock
from distinput.columns.column import Column, Dense, LazyColumn, StackError, Strings
from distinput.columns.picked import Picked
from distinput.columns.ragged import Arrays, Datasets, Objects, Ragged, RaggedBatches, Views
from distinput.columns.regroup import column_of, concat_columns, split, stack
from distinput.columns.sparse_rows import SparseRows
from distinput.streaming.padding import Padded
from distinput.values.leaves import STRING
from distinput.values.nest import LEAF, structure_of

FINAL = {Arrays, Datasets, Dense, Objects, Padded, Picked, Ragged, RaggedBatches, SparseRows, Strings, Views}


def subclasses(kind: type[Any]) -> set[type[Any]]:
    found = set(kind.__subclasses__())
    return found.union(*map(subclasses, found))


def test_every_column_that_can_be_made_is_final() -> None:
    kinds = subclasses(Column)
    assert kinds >= FINAL
    for kind in kinds:
        final = getattr(kind, "__final__", False)
        assert final == (kind in FINAL), kind
        assert bool(kind.__abstractmethods__) != final, kind
        assert not (final and kind.__subclasses__()), kind


def test_only_a_dense_column_has_an_array() -> None:
    assert {kind for kind in FINAL if hasattr(kind, "array")} == {Dense}
    assert {kind for kind in FINAL if issubclass(kind, LazyColumn)} == {Picked, Padded, Views}
    assert {kind for kind in FINAL if kind.materialize is not Column.materialize} == {Picked, Padded, Views}


ROWS: dict[str, Any] = {
    "numbers": st.lists(st.integers(-9, 9).map(np.int64), min_size=1, max_size=8),
    "arrays": st.integers(1, 3).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n).map(np.array), min_size=1, max_size=8)
    ),
    "texts": st.lists(st.binary(max_size=3), min_size=1, max_size=8),
    "lists": st.lists(
        st.lists(st.integers(0, 9), max_size=3).map(lambda x: np.array(x, np.int64)), min_size=1, max_size=8
    ),
    "lists of texts": st.lists(
        st.lists(st.binary(max_size=2), max_size=3).map(lambda x: np.array(x, object)), min_size=1, max_size=8
    ),
    "tables": st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda shape: np.ones(shape, np.int16)),
        min_size=1,
        max_size=8,
    ),
}


def made_of(rows: list[Any], data: st.DataObject) -> Column:
    """A column of these rows, of one of the classes that can hold them."""
    first = rows[0]
    dtype = STRING if isinstance(first, bytes) else first.dtype
    kinds = [column_of(list(rows)), Objects(list(rows), dtype)]
    if isinstance(kinds[0], Strings) and isinstance(first, bytes):
        kinds.append(Views(kinds[0].views(), dtype))
    if isinstance(first, np.ndarray) and dtype != STRING and len({row.shape[1:] for row in rows}) == 1:
        kinds += [Arrays(list(rows), dtype), Arrays(list(rows), dtype).joined()]
        if len({row.shape for row in rows}) == 1:
            kinds.append(Picked(np.array(rows)[::-1], np.arange(len(rows))[::-1]))
    return data.draw(st.sampled_from(kinds))


def equal(left: Any, right: Any) -> bool:
    return np.shape(left) == np.shape(right) and np.array_equal(left, right)


def same(column: Column, rows: list[Any]) -> None:
    assert len(column) == len(rows)
    assert all(map(equal, column.values(), rows))
    assert all(equal(column.row(index), row) for index, row in enumerate(rows))
    if column.inner is not None:
        assert {np.shape(row) for row in rows} <= {column.inner}
    lengths = column.lengths()
    if lengths is None:
        assert not rows or any(not np.shape(row) for row in rows)
    elif rows:
        assert np.broadcast_to(lengths, len(rows)).tolist() == [len(row) for row in rows]


@given(st.data())
def test_a_column_is_a_list_of_rows(data: st.DataObject) -> None:
    rows = data.draw(ROWS[data.draw(st.sampled_from(sorted(ROWS)))])
    column = made_of(rows, data)
    for _ in range(data.draw(st.integers(0, 3))):
        match data.draw(st.sampled_from(["rows", "take", "copied", "materialize", "concat", "pickle"])):
            case "rows":
                start, stop = sorted(data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows)))))
                step = data.draw(st.integers(1, 3))
                column, rows = column.rows(start, stop, step), rows[start:stop:step]
            case "take" if rows:
                places = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8))
                column, rows = column.take(np.array(places)), [rows[place] for place in places]
            case "copied" if rows:
                column = column.copied()
            case "materialize":
                column = column.materialize()
                assert not isinstance(column, LazyColumn)
            case "concat" if rows:
                column, rows = concat_columns([column, column]), rows + rows
            case "pickle":
                column = pickle.loads(pickle.dumps(column))
    same(column, rows)


@given(st.data())
def test_stacked_rows_are_groups_and_come_apart_again(data: st.DataObject) -> None:
    rows = data.draw(ROWS[data.draw(st.sampled_from(sorted(ROWS)))])
    column = made_of(rows, data)
    size = data.draw(st.sampled_from([n for n in range(1, len(rows) + 1) if len(rows) % n == 0]))
    groups = [rows[first : first + size] for first in range(0, len(rows), size)]
    bad = [place for place, group in enumerate(groups) if len({np.shape(row) for row in group}) > 1]
    if bad:
        with pytest.raises(StackError) as error:
            stack(column, size)
        assert error.value.group == bad[0]
        assert error.value.first != error.value.other
        return
    stacked = stack(column, size)
    assert len(stacked) == len(groups)
    for group, found in zip(groups, stacked.values(), strict=True):
        assert found.shape == (size, *np.shape(group[0]))
        assert all(map(equal, found, group))
    apart = stacked.unstack()
    assert all(map(equal, apart.values(), rows))
    assert len(apart) == len(rows)


@given(st.data())
def test_rows_are_split_by_counts(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["numbers", "arrays", "texts"]))
    rows = data.draw(ROWS[name])
    counts, left = [], len(rows)
    while left:
        counts.append(data.draw(st.integers(1, left)))
        left -= counts[-1]
    ends = np.cumsum(counts)
    found = split(made_of(rows, data), np.array(counts))
    assert len(found) == len(counts)
    for group, end, count in zip(found.values(), ends, counts, strict=True):
        assert len(group) == count
        assert all(map(equal, group, rows[end - count : end]))


def taken(block: ColumnBlock) -> list[Any]:
    """The elements where the collector lets another thread in; here what it calls takes the next one itself."""
    rows, found, kept = next(block.shared_parts() or iter(())), [], []

    def collecting(*_: Any) -> None:
        found.extend(islice(rows, 1))

    before = gc.get_threshold()
    gc.callbacks.append(collecting)
    gc.set_threshold(1)
    try:
        for row in rows:
            found.append(row)
            kept.append((row,))  # so that Python has no tuple of one left that it uses again
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collecting)
    return found


NUMBERS = np.arange(4000)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("kind", [Ragged, Views])
def test_rows_are_taken_together_where_the_collector_lets_another_thread_in(kind: type[Column], is_last: bool) -> None:
    strings = Strings.of([b"%d" % n for n in NUMBERS])
    made = Views(strings.views(), STRING) if kind is Views else Ragged(Dense(NUMBERS), NUMBERS, np.ones_like(NUMBERS))
    columns = [made, Dense(NUMBERS), made][is_last : 2 + is_last]
    found = taken(ColumnBlock(structure_of((0, 0)), columns, len(NUMBERS)))
    pairs = sorted(tuple(int(each if np.ndim(each) == 0 else each[0]) for each in pair) for pair in found)
    assert pairs == [(n, n) for n in NUMBERS]


def test_each_ragged_row_is_taken_once_where_the_collector_lets_another_thread_in() -> None:
    rows = taken(ColumnBlock(LEAF, [Ragged(Dense(NUMBERS), NUMBERS, np.ones_like(NUMBERS))], len(NUMBERS)))
    assert sorted(row.tolist() for row in rows) == [[n] for n in NUMBERS]


@given(
    st.lists(st.binary(max_size=3), min_size=1, max_size=8),
    st.one_of(st.slices(8), st.lists(st.integers(0, 7), max_size=8)),
)
def test_a_view_of_texts_side_by_side_is_what_a_copy_is(texts: list[bytes], chosen: Any) -> None:
    places = np.arange(8)[chosen]
    column = Strings.of(texts).take(places[places < len(texts)])
    data, offsets = column.side_by_side(view=True)
    copied, begins = column.side_by_side()
    assert data.tobytes() == copied.tobytes() == b"".join(column.values())
    np.testing.assert_array_equal(offsets, begins)
    assert not np.shares_memory(copied, column.data)


def test_texts_that_lie_side_by_side_are_viewed() -> None:
    column = Strings.of([b"a", b"bc", b"", b"def"])
    assert np.shares_memory(column.rows(1, 4).side_by_side(view=True)[0], column.data)
