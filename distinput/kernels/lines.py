# SPDX-License-Identifier: Apache-2.0
"""Finding where the lines of text, of JSON Lines, and the records of CSV end."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, IntsOut, inlined, kernel
from distinput.kernels.machine import LANES, bit_count, equal_mask, load_u8, store_u64, trailing_zeros

# ----------------------------------------------------------------------------
# Finding the start and length of each line of text.
# ----------------------------------------------------------------------------


NEWLINE, RETURN = 10, 13
FEW = 2  # ends of lines among them that are told without a branch, which would often be mispredicted
QUIET = 4  # so many times no end, and the next time is likely to be the same
_NONE, _ONE, _WITHIN = np.uint64(0), np.uint64(1), np.uint64(LANES - 1)


def scan_reference(buffer: Bytes, start: int, end: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int]:
    r"""Find the lines of buffer[start:end] that end with a newline, until `starts` is full.

    A line is reported without its "\n", and without one "\r" before that, as TextLineDataset does. Text after the
    last newline is left to the caller, who knows if the file ends there.

    Args:
      buffer: a piece of a file.
      start: the offset at which a line begins.
      end: the offset at which to stop.
      starts: out; the start of each line. What is behind those that are found is undefined.
      lengths: out; the length of each line, likewise.

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


@inlined
def _tell_end(at: int, found: np.uint64, returns: np.uint64, count: int, starts: IntsOut, lengths: IntsOut) -> None:
    """Record where the first newline is that was found from `at` on, and whether a carriage return is before it."""
    first = trailing_zeros(found)
    store_u64(starts, 8 * count, np.uint64(at + first))
    store_u64(lengths, 8 * count, (returns >> (np.uint64(first) & _WITHIN)) & _ONE)


@inlined
def _tell_ends(buffer: Bytes, start: int, end: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int]:
    """Record where lines end, and whether with a carriage return, while there is much room: how many, and where to go on."""
    count, position, empty = 0, start, 0
    while position + LANES <= end and count + LANES <= starts.size:
        newlines = equal_mask(buffer, position, NEWLINE)
        if empty >= QUIET and newlines == _NONE:  # in this order, since the second alone is often mispredicted
            position += LANES
            continue
        empty = empty + 1 if newlines == _NONE else 0
        before = np.uint64(load_u8(buffer, max(start, position - 1)) == RETURN)
        returns = (equal_mask(buffer, position, RETURN) << _ONE) | before
        told, count = count, count + bit_count(newlines)
        for _ in range(FEW):
            _tell_end(position, newlines, returns, told, starts, lengths)
            newlines &= newlines - _ONE
            told += 1
        while told < count:
            _tell_end(position, newlines, returns, told, starts, lengths)
            newlines &= newlines - _ONE
            told += 1
        position += LANES
    return count, position


@kernel(scan_reference)
def scan_lines(buffer: Bytes, start: int, end: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int]:
    """See `scan_reference`."""
    if start < 0 or start > end or end > buffer.size or starts.size != lengths.size:
        raise ValueError("scan_lines: 0 <= start <= end <= size of the buffer, starts and lengths of the same size")
    room = starts.size
    count, position = _tell_ends(buffer, start, end, starts, lengths)
    for i in range(np.uint64(count)):
        newline = starts[i]
        starts[i] = start
        lengths[i] = newline - start - lengths[i]
        start = newline + 1
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


OPEN, CLOSE = 123, 125
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
def _kind_of_line(buffer: Bytes, begin: int, newline: int) -> int:
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
            kind = _kind_of_line(buffer, begin, newline)
            if kind == _OTHER:
                return count, begin, lines, begin
            if kind == _OBJECT:
                count += 1
            lines += 1
            begin = newline + 1
            found &= found - _ONE
        at = stop
    return count, begin, lines, -1


# ----------------------------------------------------------------------------
# Finding where the records of CSV end: a newline inside quotes is a part of a value.
# ----------------------------------------------------------------------------


_LAST = np.uint64(1 << 63)
MULTILINE, RETURNS, BLANKS = 1, 2, 4
_ORDINARY, _OPENING, _CLOSING, _DOUBLE, _END, _INSIDE, _MORE, _WRONG = range(8)


def csv_records_reference(
    buffer: Bytes, start: int, end: int, until: int, rows: int, delimiter: int, quote: int, rules: int
) -> tuple[int, int, int, int]:
    r"""Count the records of buffer[start:end], and find where the next one begins.

    A quote opens a quoted value only where a value begins; two quotes inside one stand for a quote; what follows the
    closing quote belongs to the value as it is. A line ends with "\n" or "\r\n" outside of quotes; an empty line is no
    record. The scan stops where a line begins at or after `until`, and after `rows` records.

    Args:
      buffer: a piece of a file.
      start: the offset at which a line begins, outside of quotes.
      end: the offset at which to stop.
      until: lines that begin here or later are not looked at.
      rows: the most records.
      delimiter: the byte between values.
      quote: the byte around quoted values; -1: nothing is quoted.
      rules: a sum of `MULTILINE`, quoted values may contain newlines; `RETURNS`, a "\r" without "\n" ends a line too; and
        `BLANKS`, an empty line is a record.

    Returns:
      The number of records; the offset of the next line; the number of newlines before it; and the offset of a "\r"
      without "\n", or of a newline in quotes where there must be none; -1: there is no such byte.

    Source: RFC 4180.
    """
    if not 0 <= start <= end <= buffer.size:
        raise ValueError("csv_records: 0 <= start <= end <= size of the buffer")
    count = lines = inside = 0
    begin, quoted, passed = start, False, -1
    special = (buffer[start:end] == NEWLINE) | (buffer[start:end] == RETURN) | (buffer[start:end] == quote)
    for position in (start + np.flatnonzero(special)).tolist():
        if begin >= until or count >= rows:
            break
        byte = int(buffer[position])
        if position == passed:  # the second of two quotes
            continue
        if quoted:
            if byte == quote and position + 1 == end:
                break
            if byte == quote:
                quoted = bool(buffer[position + 1] == quote)
                passed = position + 1 if quoted else -1
            elif byte == NEWLINE:
                if not rules & MULTILINE:
                    return count, begin, lines, position
                inside += 1
        elif byte == quote:
            quoted = position == begin or int(buffer[position - 1]) == delimiter
        elif byte == RETURN:
            if position + 1 == end:
                break
            if buffer[position + 1] != NEWLINE:
                if not rules & RETURNS:
                    return count, begin, lines, position
                lines, inside = lines + inside, 0
                count, begin = count + (position > begin or rules & BLANKS > 0), position + 1
        else:
            lines, inside = lines + inside + 1, 0
            blank = position == begin or (position == begin + 1 and buffer[begin] == RETURN)
            count, begin = count + (not blank or rules & BLANKS > 0), position + 1
    return count, begin, lines, -1


@inlined
def _within(quotes: np.uint64, quoted: bool) -> np.uint64:
    """Bit i is set if an odd number of quotes is in bits 0 to i; if an even one where a value was quoted before."""
    within = quotes
    for shift in (_ONE, np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16), np.uint64(32)):
        within ^= within << shift
    return ~within if quoted else within


@inlined
def _kind_of_byte(buffer: Bytes, at: int, end: int, begin: int, quoted: bool, delimiter: int, quote: int) -> int:
    """What the byte at `at` is, for a line that begins at `begin`."""
    byte = buffer[at]
    if quoted:
        if byte != quote:
            return _INSIDE if byte == NEWLINE else _ORDINARY
        if at + 1 == end:
            return _MORE
        return _DOUBLE if buffer[at + 1] == quote else _CLOSING
    if byte == quote:
        return _OPENING if at == begin or buffer[at - 1] == delimiter else _ORDINARY
    if byte != RETURN:
        return _END if byte == NEWLINE else _ORDINARY
    if at + 1 == end:
        return _MORE
    return _ORDINARY if buffer[at + 1] == NEWLINE else _WRONG


@inlined
def _is_plain(
    buffer: Bytes,
    at: int,
    begin: int,
    quotes: np.uint64,
    within: np.uint64,
    newlines: np.uint64,
    delimiter: int,
    quote: int,
) -> bool:
    """Whether all quotes among 64 bytes open or close a value, and there are no empty lines and no lone returns."""
    ends, returns = newlines & ~within, equal_mask(buffer, at, RETURN) & ~within
    begins = (ends << _ONE) | (_ONE if begin == at else _NONE)
    if (ends | returns) & begins != _NONE or returns & ~(ends >> _ONE) != _NONE:
        return False
    if begin + 1 == at and buffer[begin] == RETURN:
        return False
    if quotes == _NONE:
        return True
    before = (equal_mask(buffer, at, delimiter) | newlines | quotes) << _ONE
    if begin == at or buffer[at - 1] == delimiter:
        before |= _ONE
    if quotes & within & ~before != _NONE:  # a quote that neither opens a value nor is one of two
        return False
    return bool(quotes & ~within & _LAST == _NONE or buffer[at + LANES] != quote)


@kernel(csv_records_reference)
def csv_records(
    buffer: Bytes, start: int, end: int, until: int, rows: int, delimiter: int, quote: int, rules: int
) -> tuple[int, int, int, int]:
    """See `csv_records_reference`."""
    if start < 0 or start > end or end > buffer.size:
        raise ValueError("csv_records: 0 <= start <= end <= size of the buffer")
    count, lines, inside = 0, 0, 0
    position, begin, quoted = start, start, False
    while position < end and begin < until and count < rows:
        if position + LANES < min(end, until):
            quotes = equal_mask(buffer, position, quote) if quote >= 0 else _NONE
            newlines = equal_mask(buffer, position, NEWLINE)
            within = _within(quotes, quoted) if quoted or quotes != _NONE else _NONE
            ends = newlines & ~within
            fits = count + bit_count(ends) < rows and (rules & MULTILINE != 0 or newlines & within == _NONE)
            if fits and _is_plain(buffer, position, begin, quotes, within, newlines, delimiter, quote):
                count += bit_count(ends)
                inside += bit_count(newlines)
                if ends != _NONE:
                    last = 0
                    while ends != _NONE:
                        last = trailing_zeros(ends) + 1
                        ends &= ends - _ONE
                    begin = position + last
                    lines += inside
                    inside = bit_count(newlines >> np.uint64(last)) if last < LANES else 0
                    lines -= inside
                quoted = within & _LAST != _NONE
                position += LANES
                continue
        stop = min(position + LANES, end)
        while position < stop:
            kind = _kind_of_byte(buffer, position, end, begin, quoted, delimiter, quote)
            if kind == _MORE:
                return count, begin, lines, -1
            if (kind == _WRONG and rules & RETURNS == 0) or (kind == _INSIDE and rules & MULTILINE == 0):
                return count, begin, lines, position
            if kind == _INSIDE:
                inside += 1
            elif kind in (_END, _WRONG):
                lines += inside + (1 if kind == _END else 0)
                inside = 0
                if rules & BLANKS != 0 or (
                    position != begin and not (position == begin + 1 and buffer[begin] == RETURN)
                ):
                    count += 1
                begin = position + 1
                if begin >= until or count >= rows:
                    return count, begin, lines, -1
            elif kind in (_OPENING, _CLOSING):
                quoted = kind == _OPENING
            position += 2 if kind == _DOUBLE else 1
    return count, begin, lines, -1
