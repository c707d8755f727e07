# SPDX-License-Identifier: Apache-2.0
"""Finding the lines of JSON Lines, and a line that is no object."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, inlined, kernel
from distinput.kernels.machine import equal_mask, trailing_zeros

NEWLINE, OPEN, CLOSE = 10, 123, 125
LANES = 64  # bytes looked at together
_NONE, _ONE = np.uint64(0), np.uint64(1)
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
    for newline in (start + np.flatnonzero(buffer[start:end] == NEWLINE)).tolist():
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
            found = equal_mask(buffer, at, NEWLINE)
            stop = at + LANES
        else:
            found = _ONE if buffer[at] == NEWLINE else _NONE
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
