# SPDX-License-Identifier: Apache-2.0
"""Rows of different lengths: pad them, gather them, count them. Items are bytes here, whatever their type."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import copy_bytes, fill_bytes, load_u64, store_u64, will_load

AHEAD = 8192  # bytes of a row that are asked of the memory ahead of time
LINE = 64  # bytes that come from memory together


def pad_reference(values: Bytes, starts: Ints, sizes: Ints, width: int, out: BytesOut, fill: Bytes) -> None:
    """Row i of out [n, width] is values[starts[i]:starts[i] + sizes[i]], then `fill` to the end of the row.

    Args:
      values: items as bytes, one after the other (`array.reshape(-1).view(np.uint8)`).
      starts: [n], in items, in any order.
      sizes: [n], in items, at most `width`.
      width: items in a row of `out`.
      out: n rows as bytes, in another piece of memory than `values`.
      fill: one item as bytes, which tells the size of an item: at least one byte.
    """
    item = fill.size
    rows = starts.size
    if sizes.size != rows or item == 0 or width < 0 or out.size != rows * width * item:
        raise ValueError("pad_spans: out must hold a row of `width` items for each pair of a start and a size")
    if np.any(sizes < 0) or np.any(sizes > width):
        raise ValueError("pad_spans: sizes must be from 0 to `width`")
    if np.any(starts < 0) or np.any(starts > values.size // item - sizes):
        raise ValueError("pad_spans: each span must be within the values")
    if rows == 0:
        return
    items = values[: values.size // item * item].reshape(-1, item)
    for row, start, size in zip(out.reshape(rows, width, item), starts, sizes, strict=True):
        row[:size] = items[start : start + size]
        row[size:] = fill


@inlined
def _is_one_byte(fill: Bytes) -> bool:
    """Whether all bytes of an item are the same, as those of zero are."""
    for each in fill:
        if each != fill[0]:
            return False
    return True


@inlined
def _fill(out: BytesOut, start: int, stop: int, fill: Bytes, same: bool) -> None:
    """Write items to out[start:stop], which are whole items."""
    if same:
        fill_bytes(out, start, stop - start, fill[0])
        return
    if fill.size == 8:
        word = load_u64(fill, 0)
        for at in range(start, stop, 8):
            store_u64(out, at, word)
        return
    for at in range(start, stop, fill.size):
        for k in range(fill.size):
            out[at + k] = fill[k]


@kernel(pad_reference)
def pad_spans(values: Bytes, starts: Ints, sizes: Ints, width: int, out: BytesOut, fill: Bytes) -> None:
    """See `pad_reference`."""
    item = fill.size
    rows = starts.size
    # The division keeps the product from overflowing.
    too_wide = rows > 0 and item > 0 and width > out.size // item // rows
    if sizes.size != rows or item == 0 or width < 0 or too_wide or out.size != rows * width * item:
        raise ValueError("pad_spans: out must hold a row of `width` items for each pair of a start and a size")
    items = values.size // item
    for i in range(rows):
        if sizes[i] < 0 or sizes[i] > width:
            raise ValueError("pad_spans: sizes must be from 0 to `width`")
    for i in range(rows):
        if starts[i] < 0 or starts[i] > items - sizes[i]:
            raise ValueError("pad_spans: each span must be within the values")
    same = _is_one_byte(fill)
    for i in range(rows):
        if i + 1 < rows:  # the memory works on the next row while this one is written
            soon = starts[i + 1] * item
            for at in range(soon, soon + min(sizes[i + 1] * item, AHEAD), LINE):
                will_load(values, at)
        length = sizes[i] * item
        start = i * width * item
        copy_bytes(out, start, values, starts[i] * item, length)
        _fill(out, start + length, start + width * item, fill, same)


def gather_reference(data: Bytes, starts: Ints, lengths: Ints, out: BytesOut, out_offsets: Ints) -> None:
    """out[out_offsets[i]:] begins with data[starts[i]:starts[i] + lengths[i]].

    Args:
      data: where the spans lie.
      starts: [n], in bytes.
      lengths: [n], in bytes.
      out: another piece of memory than `data`.
      out_offsets: at least [n]; the offsets of Arrow, [n + 1], may be given whole. Written in order.
    """
    if starts.size != lengths.size or out_offsets.size < starts.size:
        raise ValueError("gather_spans: starts, lengths and out_offsets must have an item for each span")
    for start, length, to in zip(starts.tolist(), lengths.tolist(), out_offsets.tolist(), strict=False):
        if min(start, length, to) < 0 or start + length > data.size or to + length > out.size:
            raise ValueError("gather_spans: each span must be within data, and its copy within out")
        out[to : to + length] = data[start : start + length]


@kernel(gather_reference)
def gather_spans(data: Bytes, starts: Ints, lengths: Ints, out: BytesOut, out_offsets: Ints) -> None:
    """See `gather_reference`."""
    if starts.size != lengths.size or out_offsets.size < starts.size:
        raise ValueError("gather_spans: starts, lengths and out_offsets must have an item for each span")
    for i in range(starts.size):
        start, length, to = starts[i], lengths[i], out_offsets[i]
        # Without sums, which could overflow.
        if start < 0 or to < 0 or length < 0 or length > data.size or length > out.size:
            raise ValueError("gather_spans: each span must be within data, and its copy within out")
        if start > data.size - length or to > out.size - length:
            raise ValueError("gather_spans: each span must be within data, and its copy within out")
        if length <= 16:
            for k in range(length):
                out[to + k] = data[start + k]
        else:
            copy_bytes(out, to, data, start, length)


def offsets_reference(lengths: Ints, offsets: IntsOut) -> int:
    """The offsets [n + 1] begin with 0 and grow by lengths [n]; returns the last. Lengths may not be negative."""
    if offsets.size != lengths.size + 1 or np.any(lengths < 0):
        raise ValueError("spans_to_offsets: lengths must not be negative, offsets must have one item more")
    offsets[0] = 0
    np.cumsum(lengths, out=offsets[1:])
    return int(offsets[-1])


@kernel(offsets_reference)
def spans_to_offsets(lengths: Ints, offsets: IntsOut) -> int:
    """See `offsets_reference`."""
    negative = False
    for each in lengths:
        negative |= each < 0
    if negative or offsets.size != lengths.size + 1:
        raise ValueError("spans_to_offsets: lengths must not be negative, offsets must have one item more")
    total = 0
    offsets[0] = 0
    for i in range(lengths.size):
        total += lengths[i]
        offsets[i + 1] = total
    return total
