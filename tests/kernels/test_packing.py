# SPDX-License-Identifier: Apache-2.0
"""Which row takes which sequence, and the numbers of tokens in rows."""

from __future__ import annotations

import numpy as np
import pytest

from distinput.kernels.sequence_packing import fill_spans, number_rows, plan_rows


def planned(sizes: list[int], length: int, *, best: bool) -> list[list[int]]:
    order, bounds = np.empty(len(sizes), np.int64), np.empty(len(sizes) + 1, np.int64)
    rows = plan_rows.compiled()(np.array(sizes, np.int64), length, best, order, bounds)
    return [part.tolist() for part in np.split(order, bounds[1:rows])] if rows else []


def test_the_longest_go_first_and_rows_come_in_the_order_of_their_first_sequences() -> None:
    assert planned([1, 2, 3, 4], 6, best=True) == [[0, 2], [1, 3]]
    assert planned([1, 2, 3, 4], 6, best=False) == [[0, 1, 2], [3]] or planned([1, 2, 3, 4], 6, best=False) == [
        [0, 2],
        [1, 3],
    ]


def test_best_fit_takes_the_fullest_row_and_first_fit_the_first() -> None:
    sizes = [6, 7, 3]  # 3 fits beside 6 and, exactly, beside 7
    assert planned(sizes, 10, best=True) == [[0], [1, 2]]
    assert planned([6, 6, 3], 10, best=False) == [[0, 2], [1]]


@pytest.mark.parametrize("best", [False, True])
def test_no_sequences_no_rows(best: bool) -> None:
    assert planned([], 10, best=best) == []


def test_a_sequence_longer_than_a_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="sizes must be from 1 to the length of a row"):
        planned([11], 10, best=True)


def test_rows_are_numbered_by_segment_and_position() -> None:
    starts, segments, positions = np.empty(3, np.int64), np.empty(8, np.int32), np.empty(8, np.int32)
    number_rows.compiled()(np.array([2, 1, 3]), np.array([0, 2, 3]), 4, starts, segments, positions)
    assert starts.tolist() == [0, 2, 4]
    assert segments.tolist() == [1, 1, 2, 0, 1, 1, 1, 0]
    assert positions.tolist() == [0, 1, 0, 0, 0, 1, 2, 0]


def test_spans_are_filled_with_items_of_any_size() -> None:
    for fill in (np.array([300], "int16"), np.array([-1.5]), np.array([0], "int8"), np.array([1, 2, 3], "uint8")):
        out = np.zeros(6 * len(fill), fill.dtype)
        fill_spans.compiled()(np.array([1, 4]), np.array([3, 5]), fill.view(np.uint8), out.view(np.uint8))
        assert out.reshape(6, -1).tolist() == [fill.tolist() if i in (1, 2, 4) else [0] * len(fill) for i in range(6)]
