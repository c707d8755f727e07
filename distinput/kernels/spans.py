# SPDX-License-Identifier: Apache-2.0
"""Rows of equal and of different lengths: gathering, padding and offsets."""

from __future__ import annotations

from operator import mul

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import copy_bytes, fill_bytes, load_u64, store_u64, stream_lines, will_load

# ----------------------------------------------------------------------------
# Gathering rows of equal length from a piece of memory, and locating rows in parts that are not adjacent.
# ----------------------------------------------------------------------------


ROWS_AHEAD = (
    8  # rows before its own that the first line of a row is prefetched; the processor itself fetches what follows
)
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


def gather_rows_reference(data: Bytes, starts: Ints, width: int, out: BytesOut) -> None:
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
    if not out.size:
        return
    numbers = starts // width
    if data.size % width == 0 and (numbers * width == starts).all():
        data.reshape(-1, width).take(numbers, 0, out.reshape(-1, width), "clip")
    else:
        out.reshape(starts.size, width)[:] = np.lib.stride_tricks.sliding_window_view(data, width)[starts]


@kernel(gather_rows_reference)
def gather_rows(data: Bytes, starts: Ints, width: int, out: BytesOut) -> None:
    """See `gather_rows_reference`."""
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
        if width > LINE and i + ROWS_AHEAD < rows:
            will_load(data, starts[i + ROWS_AHEAD])
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


# ----------------------------------------------------------------------------
# Rows of different lengths: padding, gathering and offsets. Items are handled as bytes, whatever their type.
# ----------------------------------------------------------------------------


SHORT = 128  # rows up to this many bytes are written a word at a time, whatever their length
_LONG = 2048  # bytes; of shorter rows that lie one behind the other, the processor itself fetches the next ones
_ALL = np.uint64((1 << 64) - 1)


def pad_reference(
    values: Bytes, starts: Ints, sizes: Ints, counts: Ints, widths: Ints, out: BytesOut, fill: Bytes
) -> None:
    """Write the rows values[starts[i]:starts[i] + sizes[i]], each padded with `fill` to the width of its batch.

    Args:
      values: the concatenated items as bytes (`array.reshape(-1).view(np.uint8)`).
      starts: [n], in items, in any order.
      sizes: [n], in items.
      counts: [k], rows of each batch, n in all.
      widths: [k], items in a row of each batch, at least the sizes of its rows.
      out: the concatenated batches as bytes, in memory that does not overlap `values`.
      fill: one item as bytes, at least one; its size is that of all items.
    """
    item = fill.size
    rows = starts.size
    if item == 0 or sizes.size != rows or widths.size != counts.size:
        raise ValueError("pad_spans: there must be a size for each start, a width and a count for each batch")
    area = sum(map(mul, counts.tolist(), widths.tolist()))
    if np.any(counts < 0) or np.any(widths < 0) or sum(counts.tolist()) != rows or area * item != out.size:
        raise ValueError("pad_spans: counts must sum to the rows, and out must hold `widths` items for each of them")
    width_of = np.repeat(widths, counts)
    if np.any(sizes < 0) or np.any(sizes > width_of):
        raise ValueError("pad_spans: sizes must be from 0 to the width of their batch")
    if np.any(starts < 0) or np.any(starts > values.size // item - sizes):
        raise ValueError("pad_spans: each span must be within the values")
    items = values[: values.size // item * item].reshape(-1, item)
    target = out.reshape(-1, item)
    to = 0
    for start, size, width in zip(starts.tolist(), sizes.tolist(), width_of.tolist(), strict=True):
        target[to : to + size] = items[start : start + size]
        target[to + size : to + width] = fill
        to += width


@inlined
def is_one_byte(fill: Bytes) -> bool:
    """True if all bytes of an item are the same, as for zero."""
    for each in fill:
        if each != fill[0]:
            return False
    return True


@inlined
def fill_items(out: BytesOut, start: int, stop: int, fill: Bytes, same: bool) -> None:
    """Fill out[start:stop], a whole number of items."""
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


@inlined
def _word(fill: Bytes) -> np.uint64:
    """Eight bytes of filling, for items of eight bytes or of equal bytes."""
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(fill[k % fill.size]) << np.uint64(8 * k)
    return word


@inlined
def _pad_short(values: Bytes, start: int, length: int, out: BytesOut, to: int, width: int, word: np.uint64) -> None:
    """Write a row in words, of values and then of filling; the last word may extend past the end of the row.

    All rows of a batch take the same number of steps, so branches are predicted; copies of varying length are not.
    """
    for at in range(0, width, 8):
        half = np.uint64(4 * min(max(length - at, 0), 8))  # two shifts, since a shift by 64 bits does nothing
        beyond = _ALL << half << half
        store_u64(out, to + at, (load_u64(values, start + at) & ~beyond) | (word & beyond))


@inlined
def _are_whole(counts: Ints, widths: Ints, rows: int, items: int) -> bool:
    """True if batches of these counts and widths have `rows` rows and `items` items in total."""
    for k in range(counts.size):
        # Dividing instead of multiplying avoids overflow.
        if counts[k] < 0 or counts[k] > rows or widths[k] < 0 or (counts[k] > 0 and widths[k] > items // counts[k]):
            return False
        rows -= counts[k]
        items -= counts[k] * widths[k]
    return rows == 0 and items == 0


@kernel(pad_reference)
def pad_spans(values: Bytes, starts: Ints, sizes: Ints, counts: Ints, widths: Ints, out: BytesOut, fill: Bytes) -> None:
    """See `pad_reference`."""
    item = fill.size
    rows = starts.size
    if item == 0 or sizes.size != rows or widths.size != counts.size:
        raise ValueError("pad_spans: there must be a size for each start, a width and a count for each batch")
    if out.size % item != 0 or not _are_whole(counts, widths, rows, out.size // item):
        raise ValueError("pad_spans: counts must sum to the rows, and out must hold `widths` items for each of them")
    items = values.size // item
    first = 0
    for k in range(counts.size):
        for i in range(first, first + counts[k]):
            if sizes[i] < 0 or sizes[i] > widths[k]:
                raise ValueError("pad_spans: sizes must be from 0 to the width of their batch")
        first += counts[k]
    for i in range(rows):
        if starts[i] < 0 or starts[i] > items - sizes[i]:
            raise ValueError("pad_spans: each span must be within the values")
    same = is_one_byte(fill)
    in_words, word = same or item == 8, _word(fill)
    first, to = 0, 0
    for k in range(counts.size):
        end = first + counts[k]
        width = widths[k] * item
        short = in_words and width <= SHORT
        for i in range(first, end):
            start, length = starts[i] * item, sizes[i] * item
            if short and start + width + 8 <= values.size and to + width + 8 <= out.size:
                _pad_short(values, start, length, out, to, width, word)
                to += width
                continue
            if i + ROWS_AHEAD < rows and (length > _LONG or starts[i + 1] != starts[i] + sizes[i]):
                will_load(values, starts[i + ROWS_AHEAD] * item)
            copy_bytes(out, to, values, start, length)
            fill_items(out, to + length, to + width, fill, same)
            to += width
        first = end


def gather_spans_reference(data: Bytes, starts: Ints, lengths: Ints, out: BytesOut, out_offsets: Ints) -> None:
    """Copy data[starts[i]:starts[i] + lengths[i]] to the beginning of out[out_offsets[i]:].

    Args:
      data: the bytes that contain the spans.
      starts: [n], in bytes.
      lengths: [n], in bytes.
      out: memory that does not overlap `data`; written in order.
      out_offsets: at least [n]; Arrow offsets, [n + 1], may be passed as they are.
    """
    if starts.size != lengths.size or out_offsets.size < starts.size:
        raise ValueError("gather_spans: starts, lengths and out_offsets must have an item for each span")
    for start, length, to in zip(starts.tolist(), lengths.tolist(), out_offsets.tolist(), strict=False):
        if min(start, length, to) < 0 or start + length > data.size or to + length > out.size:
            raise ValueError("gather_spans: each span must be within data, and its copy within out")
        out[to : to + length] = data[start : start + length]


@kernel(gather_spans_reference)
def gather_spans(data: Bytes, starts: Ints, lengths: Ints, out: BytesOut, out_offsets: Ints) -> None:
    """See `gather_spans_reference`."""
    if starts.size != lengths.size or out_offsets.size < starts.size:
        raise ValueError("gather_spans: starts, lengths and out_offsets must have an item for each span")
    for i in range(starts.size):
        start, length, to = starts[i], lengths[i], out_offsets[i]
        # Sums are avoided because they could overflow.
        if start < 0 or to < 0 or length < 0 or length > data.size or length > out.size:
            raise ValueError("gather_spans: each span must be within data, and its copy within out")
        if start > data.size - length or to > out.size - length:
            raise ValueError("gather_spans: each span must be within data, and its copy within out")
        if length <= 16:
            for k in range(length):
                out[to + k] = data[start + k]
            continue
        if i + ROWS_AHEAD < starts.size and starts[i + 1] != start + length:  # otherwise the processor knows
            will_load(data, starts[i + ROWS_AHEAD])
        copy_bytes(out, to, data, start, length)


# ----------------------------------------------------------------------------
# Copies larger than the caches. A usual store has the processor load the line that it overwrites, and displace another one.
# ----------------------------------------------------------------------------


def copy_past_caches_reference(data: Bytes, out: BytesOut, to: int) -> None:
    """Copy `data` to out[to:], for somebody who reads it after the caches hold something else.

    Args:
      data: bytes that do not overlap `out`.
      out: memory.
      to: an offset, in bytes.
    """
    if to < 0 or data.size > out.size - to:
        raise ValueError("copy_past_caches: the copy must be within out")
    out[to : to + data.size] = data


@kernel(copy_past_caches_reference)
def copy_past_caches(data: Bytes, out: BytesOut, to: int) -> None:
    """See `copy_past_caches_reference`."""
    if to < 0 or data.size > out.size - to:
        raise ValueError("copy_past_caches: the copy must be within out")
    before = min(-(out.ctypes.data + to) % LINE, data.size)
    lines = (data.size - before) // LINE * LINE
    copy_bytes(out, to, data, 0, before)
    stream_lines(out, to + before, data, before, lines)
    copy_bytes(out, to + before + lines, data, before + lines, data.size - before - lines)
