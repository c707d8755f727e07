# SPDX-License-Identifier: Apache-2.0
"""Gathering rows of equal length from a piece of memory, and locating rows in parts that are not adjacent."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import copy_bytes, load_u64, store_u64, will_load

AHEAD = 4  # rows prefetched before they are copied; many fetches at once take little more time than one
LINE = 64  # bytes in a cache line


@inlined
def all_below(numbers: Ints, stop: int) -> bool:
    """True if all numbers are from 0 to before `stop`."""
    outside = False
    for i in range(numbers.size):
        outside |= bool(np.uint64(numbers[i]) >= np.uint64(max(0, stop)))  # negative numbers are huge as unsigned ones
    return not outside


@inlined
def copy_row(out: BytesOut, to: int, data: Bytes, start: int, width: int) -> None:
    """Copy a row; short rows are copied without a function call."""
    if width % 8 == 0 and width <= 64:
        for k in range(0, width, 8):
            store_u64(out, to + k, load_u64(data, start + k))
    else:
        copy_bytes(out, to, data, start, width)


def gather_reference(data: Bytes, starts: Ints, width: int, out: BytesOut) -> None:
    """Row i of out [n, width] is data[starts[i]:starts[i] + width].

    Args:
      data: the bytes that contain the rows.
      starts: [n], in bytes.
      width: bytes of a row.
      out: n rows as bytes.
    """
    if width < 0 or out.size != starts.size * width:
        raise ValueError("gather_rows: out must hold a row for each start")
    if starts.size and (width > data.size or np.any(starts < 0) or np.any(starts > data.size - width)):
        raise ValueError("gather_rows: each row must be within data")
    if out.size:
        out.reshape(starts.size, width)[:] = np.lib.stride_tricks.sliding_window_view(data, width)[starts]


@kernel(gather_reference)
def gather_rows(data: Bytes, starts: Ints, width: int, out: BytesOut) -> None:
    """See `gather_reference`."""
    rows = starts.size
    # Dividing instead of multiplying avoids overflow.
    if width < 0 or (rows > 0 and width > out.size // rows) or out.size != rows * width:
        raise ValueError("gather_rows: out must hold a row for each start")
    if not all_below(starts, data.size - width + 1):
        raise ValueError("gather_rows: each row must be within data")
    if width == 8:
        for i in range(rows):
            store_u64(out, i * 8, load_u64(data, starts[i]))
        return
    for i in range(rows):
        if width > LINE and i + AHEAD < rows:
            soon = starts[i + AHEAD]
            for at in range(soon, soon + min(width, 4096), LINE):
                will_load(data, at)
        copy_row(out, i * width, data, starts[i], width)


def place_reference(begins: Ints, ends: Ints, near: Ints, shift: int, width: int, rows: Ints, starts: IntsOut) -> None:
    """Set starts[i] to the start of row rows[i], where rows are numbered consecutively across parts.

    Args:
      begins: [p] the byte where each part begins.
      ends: [p + 1] from 0 on, not decreasing: the number of rows before each part, and in total.
      near: the part of row i << shift for each i, so that the part of any row is found in a step or two.
      shift: see `near`.
      width: bytes of a row.
      rows: [n], each from 0 to before ends[p].
      starts: out; [n] in bytes.
    """
    if not 0 <= shift < 64 or ends.size != begins.size + 1 or starts.size != rows.size:
        raise ValueError("place_rows: there must be one end more than parts, and a start for each row")
    if rows.size and (near.size << shift < ends[-1] or np.any((rows < 0) | (rows >= ends[-1]))):
        raise ValueError("place_rows: rows must be those of the parts")
    part = np.searchsorted(ends, rows, "right") - 1
    starts[:] = begins[part] + (rows - ends[part]) * width


@kernel(place_reference)
def place_rows(begins: Ints, ends: Ints, near: Ints, shift: int, width: int, rows: Ints, starts: IntsOut) -> None:
    """See `place_reference`."""
    parts = begins.size
    if not 0 <= shift < 64 or ends.size != parts + 1 or starts.size != rows.size:
        raise ValueError("place_rows: there must be one end more than parts, and a start for each row")
    total = ends[parts]
    if rows.size > 0 and (not all_below(rows, total) or (total - 1) >> shift >= near.size):
        raise ValueError("place_rows: rows must be those of the parts")
    for i in range(np.uint64(rows.size)):
        row, last = rows[i], np.uint64(parts - 1)
        # Unsigned numbers: indexing needs no check for negative ones, and wrong ones cannot point outside.
        part = min(np.uint64(near[np.uint64(row) >> np.uint64(shift)]), last)
        part += np.uint64(ends[part + np.uint64(1)] <= row)  # mostly enough, and without a branch to predict
        while ends[part + np.uint64(1)] <= row:
            part += np.uint64(1)
        starts[i] = begins[part] + (row - ends[part]) * width
