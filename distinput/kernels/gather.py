# SPDX-License-Identifier: Apache-2.0
"""Rows of one length gathered from anywhere in a piece of memory, and where the rows of parts that lie apart begin in it."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import copy_bytes, load_u64, store_u64, will_load

AHEAD = 4  # rows asked of the memory before they are copied: it answers many at once in little more time than one
LINE = 64  # bytes that come from memory together


def gather_reference(data: Bytes, starts: Ints, width: int, out: BytesOut) -> None:
    """Row i of out [n, width] is data[starts[i]:starts[i] + width].

    Args:
      data: where the rows lie.
      starts: [n], in bytes.
      width: bytes of a row.
      out: n rows as bytes.
    """
    if width < 0 or out.size != starts.size * width:
        raise ValueError("gather_rows: out must hold a row for each start")
    if width > data.size or np.any(starts < 0) or np.any(starts > data.size - width):
        raise ValueError("gather_rows: each row must be within data")
    if out.size:
        out.reshape(starts.size, width)[:] = np.lib.stride_tricks.sliding_window_view(data, width)[starts]


@kernel(gather_reference)
def gather_rows(data: Bytes, starts: Ints, width: int, out: BytesOut) -> None:
    """See `gather_reference`."""
    rows = starts.size
    # The division keeps the product from overflowing.
    if width < 0 or (rows > 0 and width > out.size // rows) or out.size != rows * width:
        raise ValueError("gather_rows: out must hold a row for each start")
    last = data.size - width
    bad = last < 0
    for start in starts:
        bad |= start < 0 or start > last
    if bad:
        raise ValueError("gather_rows: each row must be within data")
    if width == 8:
        for i in range(rows):
            store_u64(out, i * 8, load_u64(data, starts[i]))
        return
    for i in range(rows):
        if i + AHEAD < rows:
            soon = starts[i + AHEAD]
            for at in range(soon, soon + min(width, 4096), LINE):
                will_load(data, at)
        copy_bytes(out, i * width, data, starts[i], width)


def place_reference(begins: Ints, ends: Ints, width: int, rows: Ints, starts: IntsOut) -> None:
    """starts[i] is where row rows[i] begins, of parts whose rows are numbered one part after the other.

    Args:
      begins: [p] the byte where each part begins, not negative.
      ends: [p + 1] from 0 on, not decreasing: the rows before each part, and of all.
      width: bytes of a row; less than 4 MiB.
      rows: [n], each from 0 to before ends[p].
      starts: out; [n] in bytes.
    """
    if not 0 <= width < 1 << 22 or ends.size != begins.size + 1 or ends[0] != 0 or starts.size != rows.size:
        raise ValueError("place_rows: there must be one end more than parts, from 0 on, and a start for each row")
    if np.any(ends[1:] < ends[:-1]) or ends[-1] >= 1 << 40 or np.any((begins < 0) | (begins >= 1 << 61)):
        raise ValueError("place_rows: ends must not decrease, and begins must be within memory")
    if np.any(rows < 0) or np.any(rows >= ends[-1]):
        raise ValueError("place_rows: rows must be those of the parts")
    part = np.searchsorted(ends, rows, "right") - 1
    starts[:] = begins[part] + (rows - ends[part]) * width


@inlined
def _part_of(row: int, ends: Ints) -> int:
    """The last part that begins at or before a row."""
    low, high = 0, ends.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if ends[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@kernel(place_reference)
def place_rows(begins: Ints, ends: Ints, width: int, rows: Ints, starts: IntsOut) -> None:
    """See `place_reference`."""
    parts = begins.size
    if width < 0 or width >= 1 << 22 or ends.size != parts + 1 or ends[0] != 0 or starts.size != rows.size:
        raise ValueError("place_rows: there must be one end more than parts, from 0 on, and a start for each row")
    bad = ends[parts] >= 1 << 40
    for i in range(parts):
        bad |= ends[i] > ends[i + 1] or begins[i] < 0 or begins[i] >= 1 << 61
    if bad:
        raise ValueError("place_rows: ends must not decrease, and begins must be within memory")
    total = ends[parts]
    for row in rows:
        bad |= row < 0 or row >= total
    if bad:
        raise ValueError("place_rows: rows must be those of the parts")
    share = float(parts) / float(max(total, 1))
    for i in range(rows.size):
        row = rows[i]
        # Most files have parts of one length, so that the row's share of all rows tells its part.
        part = int(float(row) * share)
        if part >= parts or row < ends[part] or row >= ends[part + 1]:
            part = _part_of(row, ends)
        starts[i] = begins[part] + (row - ends[part]) * width
