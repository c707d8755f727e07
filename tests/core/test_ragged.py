# SPDX-License-Identifier: Apache-2.0
"""Rows that differ in their first dimension."""

from typing import Any

import numpy as np
import pytest

from distinput.columns.column import Dense, StackError, Strings
from distinput.columns.ragged import Objects, Ragged
from distinput.columns.regroup import stack


def ragged(flat: Any, starts: list[int], sizes: list[int]) -> Ragged:
    return Ragged(flat, np.array(starts), np.array(sizes))


def test_slices_and_orders_of_rows_move_no_data() -> None:
    lists = ragged(Dense(np.arange(6)), [0, 1, 3], [1, 2, 3])
    assert lists.rows(1, 3).take(np.array([1, 0])).flat is lists.flat
    assert np.shares_memory(lists.unstack().array, lists.flat.array)  # type: ignore[attr-defined]


@pytest.mark.parametrize("flat", [Dense(np.arange(12).reshape(6, 2)), Strings.of([b"a", b"b", b"c", b"d", b"e", b"f"])])
def test_rows_in_any_order_lie_side_by_side_once_gathered(flat: Any) -> None:
    lists = ragged(flat, [4, 0, 2], [2, 1, 0])
    values = list(flat.values())
    found = list(lists.gathered().values())
    assert [np.asarray(x).tolist() for x in found] == [np.asarray(values[i]).tolist() for i in (4, 5, 0)]


def test_groups_of_equal_rows_are_stacked_group_by_group() -> None:
    lists = ragged(Dense(np.arange(10)), [0, 2, 4, 7], [2, 2, 3, 3])
    stacked = stack(lists, 2)
    assert isinstance(stacked, Objects)
    assert [row.tolist() for row in stacked.values()] == [[[0, 1], [2, 3]], [[4, 5, 6], [7, 8, 9]]]
    with pytest.raises(StackError) as error:
        stack(lists.rows(1, 3), 2)
    assert (error.value.group, error.value.first, error.value.other) == (0, (2,), (3,))


def test_groups_of_one_width_are_one_array() -> None:
    stacked = stack(ragged(Dense(np.arange(8)), [0, 4, 2, 6], [2, 2, 2, 2]), 2)
    assert isinstance(stacked, Dense)
    assert stacked.array.tolist() == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
