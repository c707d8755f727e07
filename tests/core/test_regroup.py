# SPDX-License-Identifier: Apache-2.0
"""Columns one after the other hold what their lists one after the other hold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Objects, Ragged
from distinput.columns.regroup import column_of, concat_columns, concatenated

ROWS: dict[str, st.SearchStrategy[Any]] = {
    "numbers": st.integers(0, 9).map(np.int32),
    "texts": st.binary(max_size=5),
    "lengths": st.integers(0, 3).map(lambda n: np.arange(n, dtype=np.int16)),
    "shapes": st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda shape: np.ones(shape, np.uint8)),
    "lists of texts": st.lists(st.binary(max_size=3), max_size=3).map(lambda items: np.array(items, object)),
}
DTYPES = {"numbers": np.int32, "texts": object, "lengths": np.int16, "shapes": np.uint8, "lists of texts": object}


def check(column: Column, rows: list[Any]) -> None:
    assert len(column) == len(rows)
    for found, row in zip(column.values(), rows, strict=True):
        assert np.shape(found) == np.shape(row)
        np.testing.assert_array_equal(found, row)


@given(st.sampled_from(sorted(ROWS)), st.data())
def test_rows_stay_as_they_are_and_in_order(kind: str, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(ROWS[kind], max_size=4), min_size=1, max_size=4))
    columns = [column_of(list(part), np.dtype(DTYPES[kind])) for part in parts]
    check(concat_columns(columns), [row for part in parts for row in part])


@given(st.data())
def test_views_of_one_buffer_are_joined_without_their_neighbours(data: st.DataObject) -> None:
    texts = [b"a", b"", b"bcd", b"ef", b"g"]
    whole = Strings.of(texts)
    cuts = data.draw(st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=2, max_size=3))
    check(
        concat_columns([whole.take(np.array(cut, np.int64)) for cut in cuts]), [texts[i] for cut in cuts for i in cut]
    )


def test_a_single_column_with_rows_is_not_copied() -> None:
    column = Dense(np.arange(3))
    assert concat_columns([Dense(np.arange(0)), column, Dense(np.arange(0))]) is column


def test_arrays_of_one_shape_stay_one_array() -> None:
    joined = concat_columns([Dense(np.ones((2, 3))), Dense(np.zeros((1, 3)))])
    assert isinstance(joined, Dense)
    assert joined.array.shape == (3, 3)


def test_rows_of_several_lengths_share_one_buffer() -> None:
    joined = concat_columns([Dense(np.ones((2, 3))), Dense(np.zeros((1, 2)))])
    assert isinstance(joined, Ragged)
    check(joined, [np.ones(3), np.ones(3), np.zeros(2)])


def test_rows_that_have_nothing_in_common_become_objects() -> None:
    joined = concat_columns([Dense(np.ones((1, 3))), Dense(np.ones((1, 2, 2)))])
    assert isinstance(joined, Objects)
    check(joined, [np.ones(3), np.ones((2, 2))])


def test_empty_rows_keep_their_other_dimensions() -> None:
    check(concat_columns([Dense(np.ones((1, 0, 2))), Dense(np.ones((1, 0, 3)))]), [np.ones((0, 2)), np.ones((0, 3))])


def test_dtypes_are_never_mixed() -> None:
    with pytest.raises(TypeError, match="the elements differ in dtype: int64 and float64"):
        concat_columns([Dense(np.arange(1)), Dense(np.ones(1))])


@pytest.mark.parametrize("rows", [3, 100_000])
def test_small_and_large_arrays_are_joined_alike(rows: int) -> None:
    parts = [np.arange(2 * rows).reshape(rows, 2), -np.arange(2)[None]]
    np.testing.assert_array_equal(concatenated(parts), np.concatenate(parts))
    with pytest.raises(ValueError, match="dimension"):
        concatenated([np.ones((rows, 2)), np.ones((rows, 3))])
