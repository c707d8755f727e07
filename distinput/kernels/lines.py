# SPDX-License-Identifier: Apache-2.0
"""Finding the lines of text, and of JSON Lines."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, IntsOut, inlined, kernel
from distinput.kernels.machine import equal_mask, trailing_zeros

# ----------------------------------------------------------------------------
# Finding the start and length of each line of text.
# ----------------------------------------------------------------------------


NEWLINE, RETURN = 10, 13
LANES = 64  # bytes compared at a time
_NONE, _ONE = np.uint64(0), np.uint64(1)


def scan_reference(buffer: Bytes, start: int, end: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int]:
    r"""Find the lines of buffer[start:end] that end with a newline, until `starts` is full.

    A line is reported without its "\n", and without one "\r" before that, as TextLineDataset does. Text after the
    last newline is left to the caller, who knows if the file ends there.

    Args:
      buffer: a piece of a file.
      start: the offset at which a line begins.
      end: the offset at which to stop.
      starts: out; the start of each line.
      lengths: out; the length of each line.

    Returns:
      The number of lines found, and the start of the next line.
    """
    if not 0 <= start <= end <= buffer.size or starts.size != lengths.size:
        raise ValueError("scan_lines: 0 <= start <= end <= size of the buffer, starts and lengths of the same size")
    ends = start + np.flatnonzero(buffer[start:end] == NEWLINE)[: starts.size]
    begins = np.concatenate(([start], ends + 1))
    with_return = (ends > begins[:-1]) & (buffer[ends - 1] == RETURN)
    starts[: ends.size] = begins[:-1]
    lengths[: ends.size] = ends - begins[:-1] - with_return
    return ends.size, int(begins[-1])


@inlined
def _tell(buffer: Bytes, begin: int, end: int, count: int, starts: IntsOut, lengths: IntsOut) -> None:
    """Record buffer[begin:end] as line number `count`, without a trailing carriage return."""
    starts[count] = begin
    lengths[count] = end - begin - (1 if end > begin and buffer[end - 1] == RETURN else 0)


@kernel(scan_reference)
def scan_lines(buffer: Bytes, start: int, end: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int]:
    """See `scan_reference`."""
    if start < 0 or start > end or end > buffer.size or starts.size != lengths.size:
        raise ValueError("scan_lines: 0 <= start <= end <= size of the buffer, starts and lengths of the same size")
    count, position, room = 0, start, starts.size
    while position + LANES <= end and count < room:
        found = equal_mask(buffer, position, NEWLINE)
        while found != _NONE and count < room:
            newline = position + trailing_zeros(found)
            _tell(buffer, start, newline, count, starts, lengths)
            count += 1
            start = newline + 1
            found &= found - _ONE
        position += LANES
    while position < end and count < room:
        if buffer[position] == NEWLINE:
            _tell(buffer, start, position, count, starts, lengths)
            count += 1
            start = position + 1
        position += 1
    return count, start


# ----------------------------------------------------------------------------
# Finding the lines of JSON Lines, and a line that is no object.
# ----------------------------------------------------------------------------


JSON_LINES_NEWLINE, OPEN, CLOSE = 10, 123, 125
_BLANK, _OBJECT, _OTHER = 0, 1, 2


def json_lines_reference(buffer: Bytes, start: int, end: int, until: int, rows: int) -> tuple[int, int, int, int]:
    """Count the lines of buffer[start:end] with an object each, and find where the next line begins.

    A line has an object if its first byte that is no white space is "{" and its last one "}"; a line of white space is
    passed over. The scan stops where a line begins at or after `until`, after `rows` objects, and before another line.

    Args:
      buffer: a piece of a file.
      start: the offset at which a line begins.
      end: the offset at which to stop; what follows the last newline is left.
      until: lines that begin here or later are not looked at.
      rows: the most objects.

    Returns:
      The number of objects; the offset of the next line; the number of newlines before it; and where a line begins
      that has no object, -1: there is none.
    """
    if not 0 <= start <= end <= buffer.size:
        raise ValueError("json_lines: 0 <= start <= end <= size of the buffer")
    count = lines = 0
    begin = start
    for newline in (start + np.flatnonzero(buffer[start:end] == JSON_LINES_NEWLINE)).tolist():
        if begin >= until or count >= rows:
            break
        line = buffer[begin:newline].tobytes().strip(b" \t\r")
        if line and not (line.startswith(b"{") and line.endswith(b"}")):
            return count, begin, lines, begin
        count, lines, begin = count + bool(line), lines + 1, newline + 1
    return count, begin, lines, -1


@inlined
def _kind(buffer: Bytes, begin: int, newline: int) -> int:
    """What the line is: blank, an object, or something else."""
    first, last = begin, newline - 1
    while first <= last and (buffer[first] == 32 or buffer[first] == 9 or buffer[first] == 13):
        first += 1
    if first > last:
        return _BLANK
    while buffer[last] == 32 or buffer[last] == 9 or buffer[last] == 13:
        last -= 1
    return _OBJECT if last > first and buffer[first] == OPEN and buffer[last] == CLOSE else _OTHER


@kernel(json_lines_reference)
def json_lines(buffer: Bytes, start: int, end: int, until: int, rows: int) -> tuple[int, int, int, int]:
    """See `json_lines_reference`."""
    if start < 0 or start > end or end > buffer.size:
        raise ValueError("json_lines: 0 <= start <= end <= size of the buffer")
    count, lines = 0, 0
    at, begin = start, start
    while at < end and begin < until and count < rows:
        if at + LANES <= end:
            found = equal_mask(buffer, at, JSON_LINES_NEWLINE)
            stop = at + LANES
        else:
            found = _ONE if buffer[at] == JSON_LINES_NEWLINE else _NONE
            stop = at + 1
        while found != _NONE and begin < until and count < rows:
            newline = at + trailing_zeros(found)
            kind = _kind(buffer, begin, newline)
            if kind == _OTHER:
                return count, begin, lines, begin
            if kind == _OBJECT:
                count += 1
            lines += 1
            begin = newline + 1
            found &= found - _ONE
        at = stop
    return count, begin, lines, -1
