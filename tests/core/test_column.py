# SPDX-License-Identifier: Apache-2.0
"""A column of rows does what a plain list of the same rows does, whatever class it is of."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput.core.column as module
from distinput.core.column import (
    Arrays,
    Column,
    Datasets,
    Dense,
    LazyColumn,
    Objects,
    Ragged,
    StackError,
    Strings,
    column_of,
    column_of_values,
)
from distinput.core.concat import concat_columns
from distinput.core.leaves import STRING, as_leaf
from distinput.core.padded import Padded
from distinput.core.picked import Picked

FINAL = {Arrays, Datasets, Dense, Objects, Padded, Picked, Ragged, Strings}


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
    assert {kind for kind in FINAL if issubclass(kind, LazyColumn)} == {Picked, Padded}
    assert {kind for kind in FINAL if kind.materialize is not Column.materialize} == {Picked, Padded}


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
            column.stack(size)
        assert error.value.group == bad[0]
        assert error.value.first != error.value.other
        return
    stacked = column.stack(size)
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
    found = made_of(rows, data).split(np.array(counts))
    assert len(found) == len(counts)
    for group, end, count in zip(found.values(), ends, counts, strict=True):
        assert len(group) == count
        assert all(map(equal, group, rows[end - count : end]))


def test_slices_and_orders_of_spans_move_no_data() -> None:
    texts = Strings.of([b"a", b"bb", b"ccc"])
    assert texts.rows(1, 3).take(np.array([1, 0])).data is texts.data
    lists = Ragged(Dense(np.arange(6)), np.array([0, 1, 3]), np.array([1, 2, 3]))
    assert lists.rows(1, 3).take(np.array([1, 0])).flat is lists.flat
    assert np.shares_memory(lists.unstack().array, lists.flat.array)  # type: ignore[attr-defined]


@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("large", [1, 1 << 20])
def test_a_row_that_is_not_there_cannot_be_taken(monkeypatch: pytest.MonkeyPatch, index: int, large: int) -> None:
    monkeypatch.setattr(module, "_LARGE_BYTES", large)
    column = Dense(np.arange(6).reshape(3, 2))
    if index < 0:
        assert column.take(np.array([index])).array.tolist() == [[4, 5]]  # as NumPy counts, on both ways
    else:
        with pytest.raises(IndexError):
            column.take(np.array([index]))


def test_texts_that_use_little_of_their_buffer_leave_it() -> None:
    data = np.zeros(100_000, np.uint8)
    far = Strings(data, np.array([0, 99_990]), np.array([5, 5]))
    assert len(far.used().data) == 10
    near = Strings(data, np.array([10, 20]), np.array([10, 10]))
    assert np.shares_memory(near.used().data, data)
    assert len(near.used().data) == 20
    assert list(near.used().values()) == list(near.values())
    assert len(near.rows(0, 0).used().data) == 0


def test_values_must_be_of_one_dtype() -> None:
    with pytest.raises(TypeError, match="the elements differ in dtype: int32 and float32"):
        column_of_values([1, 2.0])
    with pytest.raises(TypeError, match="the elements differ in dtype"):
        column_of([np.zeros(1), np.zeros(1, np.int8)])


@pytest.mark.parametrize(
    "values, kind",
    [
        ([1, 2], Dense),
        ([np.int8(1), np.int8(2)], Dense),
        ([np.bool_(True)], Dense),
        ([[1, 2], [3, 4]], Dense),
        ([b"a", "b"], Strings),
        ([["a"], ["b"]], Strings),
        ([["a"], ["b", "c"]], Ragged),
        ([[1], [2, 3]], Ragged),
        ([np.zeros(1000), np.zeros(2000)], Arrays),
        ([np.zeros((1, 2)), np.zeros((2, 1))], Objects),
        ([np.int32(1), np.zeros(2, np.int32)], Objects),
    ],
)
def test_the_best_column_for_values(values: list[Any], kind: type[Column]) -> None:
    made = column_of_values(values)
    assert type(made) is kind
    assert made.nbytes > 0
    assert [equal(a, b) for a, b in zip(made.values(), map(as_leaf, values), strict=True)] == [True] * len(values)


def test_no_values_are_rows_of_any_dtype() -> None:
    assert column_of([], np.dtype(np.int8)).dtype == np.int8
    assert isinstance(column_of([], STRING), Strings)
    assert isinstance(column_of([]), Strings)


class Node:
    """What a column of datasets needs of a dataset."""

    nest_leaf = True

    def to_user(self) -> str:
        return "its handle"


def test_datasets_are_shown_as_their_handles_and_cannot_be_batched() -> None:
    column = column_of([Node(), Node()])
    assert isinstance(column, Datasets)
    assert list(column.values()) == [column.row(0), column.row(1)] == ["its handle"] * 2
    assert column.lengths() is None
    several = Datasets([(Node(), Node()), (Node(),)], STRING)
    assert several.row(0).tolist() == ["its handle", "its handle"]
    assert several.lengths().tolist() == [2, 1]  # type: ignore[union-attr]
    assert len(several.unstack()) == 3
    for call in (lambda: column.stack(1), lambda: column.split(np.array([2]))):
        with pytest.raises(TypeError, match="flat_map or zip it first"):
            call()
