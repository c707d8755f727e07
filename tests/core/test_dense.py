# SPDX-License-Identifier: Apache-2.0
"""Rows of one shape."""

import numpy as np
import pytest

import distinput.columns.column as module
from distinput.columns.column import Dense
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import split


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


def test_equal_counts_split_without_a_copy_and_others_into_spans() -> None:
    column = Dense(np.arange(12).reshape(6, 2))
    even, uneven = split(column, np.array([3, 3])), split(column, np.array([4, 0, 2]))
    assert isinstance(even, Dense)
    assert even.array.shape == (2, 3, 2)
    assert np.shares_memory(even.array, column.array)
    assert isinstance(uneven, Ragged)
    assert uneven.flat is column
    assert [row.shape for row in uneven.values()] == [(4, 2), (0, 2), (2, 2)]


def test_one_row_comes_apart_whatever_its_shape() -> None:
    assert Dense(np.arange(6).reshape(1, 3, 2)).unstack().array.shape == (3, 2)
    assert Dense(np.empty((0, 3, 2))).unstack().array.shape == (0, 2)
