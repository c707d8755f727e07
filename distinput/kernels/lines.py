# SPDX-License-Identifier: Apache-2.0
"""Finding the start and length of each line of text."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, IntsOut, inlined, kernel
from distinput.kernels.machine import equal_mask, trailing_zeros

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
