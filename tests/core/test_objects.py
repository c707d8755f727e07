# SPDX-License-Identifier: Apache-2.0
"""Rows that are Python objects, and the best column for values."""

from typing import Any

import numpy as np
import pytest

from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Arrays, Datasets, Objects, Ragged
from distinput.columns.regroup import column_of, column_of_values, split, stack
from distinput.values.leaves import STRING, as_leaf


def equal(left: Any, right: Any) -> bool:
    return np.shape(left) == np.shape(right) and np.array_equal(left, right)


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
    for call in (lambda: stack(column, 1), lambda: split(column, np.array([2]))):
        with pytest.raises(TypeError, match="flat_map or zip it first"):
            call()


def test_a_single_array_is_not_copied() -> None:
    array = np.arange(6).reshape(2, 3)
    for column in (column_of([array]), column_of_values([array])):
        assert isinstance(column, Dense)
        assert column.array.shape == (1, 2, 3)
        assert np.shares_memory(column.array, array)
    turned = column_of([array.T])
    assert isinstance(turned, Dense)
    assert turned.array.flags.c_contiguous
    assert not np.shares_memory(column_of([array, array]).array, array)  # type: ignore[attr-defined]
