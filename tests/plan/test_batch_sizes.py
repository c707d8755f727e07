# SPDX-License-Identifier: Apache-2.0
"""Rows of batches as patterns are those of the batches one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.plan.batch_sizes import Assignment, BatchSizes, RowRanges

PATTERNS = st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=4), st.integers(0, 3)), max_size=3)
SMALL = st.integers(0, 6)


def plain(runs: list[tuple[list[int], int]]) -> list[int]:
    return [size for pattern, times in runs for size in pattern * times]


@given(PATTERNS)
def test_counts_and_rows(runs: list[tuple[list[int], int]]) -> None:
    sizes, flat = BatchSizes.of(runs), plain(runs)
    assert sizes.flat().tolist() == flat
    assert (sizes.count, sizes.rows) == (len(flat), sum(flat))
    assert sizes.uniform == (len(set(flat)) <= 1)


@given(PATTERNS, SMALL, SMALL)
def test_a_part_is_a_slice(runs: list[tuple[list[int], int]], start: int, length: int) -> None:
    assert BatchSizes.of(runs).part(start, start + length).flat().tolist() == plain(runs)[start : start + length]
    assert BatchSizes.of(runs).part(start).flat().tolist() == plain(runs)[start:]


@given(PATTERNS, st.integers(1, 5), st.data())
def test_every_nth_is_a_stride(runs: list[tuple[list[int], int]], step: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, step - 1))
    assert BatchSizes.of(runs).every(step, index).flat().tolist() == plain(runs)[index::step]


@given(PATTERNS, st.integers(0, 4))
def test_repeated_and_then(runs: list[tuple[list[int], int]], times: int) -> None:
    sizes = BatchSizes.of(runs)
    repeated = sizes.repeated(times)
    assert repeated is not None
    assert repeated.flat().tolist() == plain(runs) * times
    assert sizes.then(sizes).flat().tolist() == plain(runs) * 2


def test_what_would_be_too_long_to_tell_is_not_told() -> None:
    sizes = BatchSizes.of([([1], 1 << 30), ([2], 1)])
    assert sizes.repeated(2) is None
    assert sizes.rows == (1 << 30) + 2


@given(PATTERNS, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans())
def test_rebatched_rows_are_the_same_rows(runs: list[tuple[list[int], int]], cycle: list[int], drop: bool) -> None:
    sizes = BatchSizes.of(runs)
    left, expected, at = sum(plain(runs)), [], 0
    while left >= cycle[at % len(cycle)]:
        expected.append(cycle[at % len(cycle)])
        left -= expected[-1]
        at += 1
    if left and not drop:
        expected.append(left)
    assert sizes.rebatched(cycle, drop_remainder=drop).flat().tolist() == expected


@given(PATTERNS, st.integers(1, 5))
def test_each_batch_is_cut_into_ceilings(runs: list[tuple[list[int], int]], pieces: int) -> None:
    expected = []
    for size in plain(runs):
        each = -(-size // pieces)
        expected += [len(np.arange(size)[i * each : (i + 1) * each]) for i in range(pieces)]
    assert BatchSizes.of(runs).cut(pieces).flat().tolist() == expected


@given(st.integers(0, 20), st.integers(1, 5), st.booleans())
def test_elements_in_batches(count: int, size: int, drop: bool) -> None:
    whole, rest = divmod(count, size)
    expected = [size] * whole + ([rest] if rest and not drop else [])
    assert BatchSizes.of([([1], count)]).batched(size, drop_remainder=drop).flat().tolist() == expected


@pytest.mark.parametrize("cut", [{}, {"balanced": True}, {"fixed": True}])
def test_the_place_of_a_row_is_that_of_counting_through_the_pieces(cut: dict[str, bool]) -> None:
    for rows, size, pieces, period in product(range(8), range(1, 5), range(1, 4), range(1, 4)):
        for first in range(period):
            ranges = RowRanges(rows, size, False, Assignment(pieces, first, period, **cut))
            assert ranges.count is not None
            starts, stops = ranges.bounds(0, ranges.count)
            places = [(piece, over) for piece, n in enumerate((stops - starts).tolist()) for over in range(n)]
            places.append((ranges.count, 0))
            assert [ranges.place(row) for row in range(len(places))] == places
