# SPDX-License-Identifier: Apache-2.0
"""Rows are shared out evenly, and blocks hold as many as pay."""

from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import (
    MOST_BYTES,
    MOST_ROWS,
    balanced_slice,
    balanced_slices,
    block_rows,
    gathered_rows,
    picked_rows,
    rows_within,
)


@given(st.integers(0, 1000), st.integers(1, 50))
def test_slices_are_all_rows_in_order_and_differ_by_one_at_most(rows: int, parts: int) -> None:
    slices = balanced_slices(rows, parts)
    assert [row for each in slices for row in range(rows)[each]] == list(range(rows))
    sizes = [each.stop - each.start for each in slices]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    assert [balanced_slice(rows, parts, index) for index in range(parts)] == list(slices)


@given(st.floats(0, 1e12), st.integers(1, 100_000))
def test_blocks_are_of_whole_batches_and_bounded(row_bytes: float, batch: int) -> None:
    assert 1 <= block_rows(row_bytes) <= MOST_ROWS
    assert block_rows(row_bytes) == 1 or block_rows(row_bytes) * row_bytes <= MOST_BYTES
    for rows in (gathered_rows(row_bytes, batch), picked_rows(row_bytes, batch)):
        assert rows >= 1
        if batch <= MOST_ROWS:
            assert not rows % batch
    assert picked_rows(row_bytes, batch) >= gathered_rows(row_bytes, batch)


@given(st.integers(0, 1 << 20), st.integers(0, 1 << 40), st.integers(1, MOST_ROWS))
def test_rows_like_some_stay_within_the_bytes(rows: int, nbytes: int, most: int) -> None:
    found = rows_within(rows, nbytes, most)
    assert 1 <= found <= most
    assert found == 1 or found * nbytes <= MOST_BYTES * rows
