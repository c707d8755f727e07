# SPDX-License-Identifier: Apache-2.0
"""Rows as spans of one array, beside lists of rows."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import InvalidArgumentError
from distinput.values.ragged_rows import padded_rows, places_of, row_numbers, rows_of_lists, splits_of

LISTS = st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=5)


@given(LISTS)
def test_spans_are_the_rows_of_the_lists(rows: list[list[int]]) -> None:
    (lengths,), values = rows_of_lists(rows)
    splits = splits_of(lengths)
    assert splits.tolist() == [0, *accumulate(map(len, rows))]
    assert [values[a:b].tolist() for a, b in pairwise(splits)] == rows
    back = np.arange(len(rows))[::-1]
    assert values[row_numbers(splits[back], lengths[back])].tolist() == [x for row in rows[::-1] for x in row]


@given(LISTS)
def test_places_are_those_of_the_values_in_the_lists(rows: list[list[int]]) -> None:
    (lengths,), _ = rows_of_lists(rows)
    wanted = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    assert places_of([splits_of(lengths)], ()).tolist() == wanted
    inside = [[*place, k] for place in wanted for k in range(2)]
    assert places_of([splits_of(lengths)], (2,)).tolist() == inside


@pytest.mark.parametrize("dtype", ["int32", object])
def test_short_rows_are_filled_up(dtype: str | type) -> None:
    values, fill = np.array([1, 2, 3], dtype), -1
    made = padded_rows(values, np.array([0, 2, 2]), np.array([2, 0, 1]), 2, fill)
    assert made.tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert padded_rows(values, np.array([0, 2]), np.array([0, 0]), 0, fill).shape == (2, 0)


@pytest.mark.parametrize("ragged_rank", [0, 3])
def test_the_lists_must_have_as_many_levels_as_were_asked_for(ragged_rank: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"ragged_rank must be .*, got {ragged_rank}"):
        rows_of_lists([[[1]], []], ragged_rank)
