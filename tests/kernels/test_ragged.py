# SPDX-License-Identifier: Apache-2.0
"""Rows of different lengths."""

from __future__ import annotations

import numpy as np
import pytest

from distinput.kernels.kernel import Ints
from distinput.kernels.spans import gather_spans, pad_spans

STARTS, SIZES = np.array([3, 5, 0]), np.array([2, 0, 3])


def ints(*numbers: int) -> Ints:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(
    "dtype, fill", [("i1", -1), ("<i2", 300), ("f4", np.nan), ("f8", 0.5), ("c16", 1j), ("?", True)]
)
def test_rows_of_any_type_are_padded(dtype: str, fill: object) -> None:
    values = np.arange(5).astype(dtype)
    out = np.empty((3, 4), dtype)
    item = np.array([fill], dtype)
    target = out.reshape(-1).view(np.uint8)
    pad_spans.compiled()(values.view(np.uint8), STARTS, SIZES, ints(3), ints(4), target, item.view(np.uint8))
    expected = np.full((3, 4), fill, dtype)
    expected[0, :2], expected[2, :3] = values[3:], values[:3]
    np.testing.assert_array_equal(out, expected)


def test_batches_of_several_widths() -> None:
    values, out, fill = np.arange(5, dtype=np.uint8), np.empty(7, np.uint8), np.array([9], np.uint8)
    pad_spans.compiled()(values, STARTS, SIZES, ints(2, 0, 1), ints(2, 8, 3), out, fill)
    assert out.tolist() == [3, 4, 9, 9, 0, 1, 2]


def test_a_row_that_is_too_long_is_an_error() -> None:
    values, out, fill = np.arange(5, dtype=np.uint8), np.empty(6, np.uint8), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="sizes must be from 0 to the width of their batch"):
        pad_spans.compiled()(values, STARTS, SIZES, ints(3), ints(2), out, fill)


def test_a_row_outside_the_values_is_an_error() -> None:
    values, out, fill = np.arange(5, dtype=np.uint8), np.empty(6, np.uint8), np.zeros(1, np.uint8)
    for start, size in [(-1, 2), (4, 2), (2**63 - 1, 1)]:
        with pytest.raises(ValueError, match="each span must be within the values"):
            pad_spans.compiled()(values, ints(start), ints(size), ints(1), ints(6), out, fill)


def test_spans_are_gathered_as_arrow_has_them() -> None:
    data = np.frombuffer(b"the quick brown fox jumps over the lazy dog", np.uint8)
    starts, lengths = np.array([40, 4, 0, 20]), np.array([3, 5, 0, 23])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    out = np.empty(offsets[-1], np.uint8)
    gather_spans.compiled()(data, starts, lengths, out, offsets)
    assert out.tobytes() == b"dogquickjumps over the lazy dog"


def test_a_span_outside_the_data_is_an_error() -> None:
    data, out, offsets = np.zeros(9, np.uint8), np.zeros(99, np.uint8), np.zeros(1, np.int64)
    for start, length in [(-1, 2), (8, 2), (0, -1), (2**63 - 1, 1), (1, 2**63 - 1)]:
        with pytest.raises(ValueError, match="each span must be within data"):
            gather_spans.compiled()(data, np.array([start]), np.array([length]), out, offsets)
