# SPDX-License-Identifier: Apache-2.0
"""Plain records of CSV, and decimal numbers in text, straight to columns: what most files are made of."""

from __future__ import annotations

import re

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.lines import NEWLINE, RETURN
from distinput.kernels.machine import (
    LANES,
    bit_count,
    equal_mask,
    leading_zeros,
    load_u8,
    load_u64,
    multiply_high,
    signed,
    store_u32,
    store_u64,
    trailing_zeros,
)

# ----------------------------------------------------------------------------
# Decimal numbers in text: eight digits at a time, and rounded to the nearest float64 by two multiplications.
#
# A float is w times ten to the q for whole numbers w < 2**64 and q. The product of w and the first 128 bits of five to the
# q decides all bits of the result (D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience
# 2021; N. Mushtak and D. Lemire, "Fast number parsing without fallback", 2022). Numbers close to the ends of the range of a
# float64 are left to others, and so are those with more than 19 digits.
# ----------------------------------------------------------------------------


MOST_DIGITS = 19  # of which every number fits into 64 bits
LOWEST, HIGHEST = -342, 308  # exponents of ten in the table
SMALLEST = np.uint64(np.float64(1e-300).view(np.uint64))  # as bits; what is closer to zero is left to others
NO_DECIMAL = np.uint64((1 << 64) - 1)  # bits of a NaN, which no number has

_MINUS, _POINT, _PLUS, _ZERO_DIGIT, _NINE_DIGIT = b"-.+09"
_ZERO, _ONE, _TWO, _THREE = (np.uint64(each) for each in range(4))
_ALL, _SIGN = np.uint64((1 << 64) - 1), np.uint64(1 << 63)
_FRACTION, _IMPLIED, _ROUNDED_UP = np.uint64((1 << 52) - 1), np.uint64(1 << 52), np.uint64(1 << 53)
_LAST_9, _9, _52, _63 = np.uint64((1 << 9) - 1), np.uint64(9), np.uint64(52), np.uint64(63)
_HIGH_HALVES, _SIXES, _DIGITS = (np.uint64(0x0101010101010101 * each) for each in (0xF0, 6, 0x30))
_THREES, _4 = np.uint64(0x3333333333333333), np.uint64(4)
_PAIRS, _10, _8, _16, _32 = np.uint64(0x000000FF000000FF), *(np.uint64(each) for each in (10, 8, 16, 32))
_HUNDREDS, _ONES = np.uint64(100 + (1000000 << 32)), np.uint64(1 + (10000 << 32))
_EIGHT_DIGITS = np.uint64(10**8)


def _fives() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """[651, 2] the first 128 bits of five to the q, for q from `LOWEST` to `HIGHEST`.

    Those from -27 to -1 are rounded up: the products of whole numbers with them are decided by fewer bits.
    """
    rows = []
    for q in range(LOWEST, HIGHEST + 1):
        power = 5 ** abs(q)
        size = power.bit_length()
        bits = power << 128 >> size if q >= 0 else (1 << size + 127) // power + (q >= -27)
        rows.append((bits >> 64, bits & (1 << 64) - 1))
    return np.array(rows, np.uint64)


FIVES = _fives()


@inlined
def _digits(data: Bytes, at: int, stop: int, value: np.uint64) -> tuple[np.uint64, int]:
    """The number whose digits are those of `value`, then those from `at` on; and where they end."""
    while at + 8 <= stop:
        word = load_u64(data, at)
        if (word & _HIGH_HALVES) | (((word + _SIXES) & _HIGH_HALVES) >> _4) != _THREES:
            break
        word -= _DIGITS
        word = word * _10 + (word >> _8)
        word = ((word & _PAIRS) * _HUNDREDS + ((word >> _16) & _PAIRS) * _ONES) >> _32
        value = value * _EIGHT_DIGITS + (word & np.uint64(0xFFFFFFFF))
        at += 8
    while at < stop:
        digit = load_u8(data, at) - _ZERO_DIGIT
        if digit < 0 or digit > 9:
            break
        value = value * _10 + np.uint64(digit)
        at += 1
    return value, at


@inlined
def whole_prefix(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """The whole number that begins at `at`, and where it ends; -1: it has no digit, or more than 18."""
    negative = at < stop and load_u8(data, at) == _MINUS
    first = at + 1 if negative else at
    value, after = _digits(data, first, stop, _ZERO)
    if after == first or after - first > MOST_DIGITS - 1:
        return 0, -1
    number = signed(value)
    return -number if negative else number, after


@inlined
def whole_number(data: Bytes, at: int, stop: int) -> tuple[int, bool]:
    """The whole number data[at:stop], and whether it is one: up to 18 digits, perhaps behind a minus."""
    number, after = whole_prefix(data, at, stop)
    return number, after == stop


@inlined
def nearest_float64(w: np.uint64, q: int) -> np.uint64:
    """The bits of the float64 nearest to w times ten to the q, w > 0; or `NO_DECIMAL`."""
    if q < LOWEST or q > HIGHEST:
        return NO_DECIMAL
    zeros = leading_zeros(w)
    w <<= np.uint64(zeros)
    high, low = multiply_high(w, FIVES[q - LOWEST, 0]), w * FIVES[q - LOWEST, 0]
    if high & _LAST_9 == _LAST_9:
        more = multiply_high(w, FIVES[q - LOWEST, 1])
        low += more
        if more > low:
            high += _ONE
    upper = high >> _63
    fraction = high >> (upper + _9)
    exponent = (217706 * q >> 16) + 63 + signed(upper) - zeros + 1023
    if exponent <= 0:
        return NO_DECIMAL
    # Halfway between two floats, exactly: to the even one.
    if low <= _ONE and q >= -4 and q <= 23 and fraction & _THREE == _ONE and fraction << (upper + _9) == high:
        fraction &= ~_ONE
    fraction = (fraction + (fraction & _ONE)) >> _ONE
    if fraction >= _ROUNDED_UP:
        fraction, exponent = _IMPLIED, exponent + 1
    if exponent >= 2047:
        return NO_DECIMAL
    bits = (fraction & _FRACTION) | np.uint64(exponent) << _52
    return bits if bits >= SMALLEST else NO_DECIMAL


@inlined
def decimal_prefix(data: Bytes, at: int, stop: int) -> tuple[np.uint64, int]:
    """The bits of the float64 nearest to the decimal number that begins at `at`, and where it ends.

    The bits are `NO_DECIMAL` if there is none, or it is left to others.
    """
    sign = _ZERO
    if at < stop and load_u8(data, at) == _MINUS:
        sign, at = _SIGN, at + 1
    first = at
    value, at = _digits(data, at, stop, _ZERO)
    count, q = at - first, 0
    if count == 0:
        return NO_DECIMAL, at
    if at < stop and load_u8(data, at) == _POINT:
        point = at + 1
        value, at = _digits(data, point, stop, value)
        q = point - at
        count -= q
        if q == 0:
            return NO_DECIMAL, at
    if count > MOST_DIGITS:  # unless the first ones are zeros
        begin = first
        while begin < at and (load_u8(data, begin) == _ZERO_DIGIT or load_u8(data, begin) == _POINT):
            count -= load_u8(data, begin) == _ZERO_DIGIT
            begin += 1
        if count > MOST_DIGITS:
            return NO_DECIMAL, at
    if at < stop and load_u8(data, at) | 32 == 101:
        at += 1
        minus = at < stop and load_u8(data, at) == _MINUS
        if at < stop and (minus or load_u8(data, at) == _PLUS):
            at += 1
        begin = at
        exponent, at = _digits(data, begin, stop, _ZERO)
        if at == begin or at - begin > 3:
            return NO_DECIMAL, at
        q += -signed(exponent) if minus else signed(exponent)
    if value == _ZERO:
        return sign, at
    bits = nearest_float64(value, q)
    return (bits if bits == NO_DECIMAL else bits | sign), at


@inlined
def decimal_number(data: Bytes, at: int, stop: int) -> np.uint64:
    """The bits of the float64 nearest to the decimal number data[at:stop]; `NO_DECIMAL` if it is none, or left to others.

    It has a minus or nothing, digits, perhaps a point and more digits, and perhaps an exponent of up to three digits.
    """
    bits, after = decimal_prefix(data, at, stop)
    return bits if after == stop else NO_DECIMAL


# ----------------------------------------------------------------------------
# Plain records of CSV straight to columns: what most files are made of; the rest is left to pyarrow's reader.
# ----------------------------------------------------------------------------


# Kinds of column. Of text, a start and a length are written; truth values are in JSON alone.
LEFT_OUT, INT64, FLOAT64, FLOAT32, INT32, TEXT, TRUTH = range(7)
WIDTHS = (0, 8, 8, 4, 4, 16, 1)

AS_WRITTEN = 16
"""Added to a kind of numbers that leaves to others what it might change: zeros in front, and long whole numbers as floats."""

MOST_EXACT_DIGITS = 15
"""Of which every whole number is a float64."""

# Status codes.
OK, NOT_PLAIN = 0, 1

_WHOLE = re.compile(rb"-?[0-9]{1,18}\Z")
_ZEROS_FIRST = re.compile(rb"-?0[0-9]")
_LONG_WHOLE = re.compile(rb"-?[0-9]{16,}\Z")
_DECIMAL = re.compile(rb"-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?\Z")

_29, _LAST_29, _HALF, _BIAS = np.uint64(29), np.uint64((1 << 29) - 1), np.uint64(1 << 28), np.uint64(896 << 23)
_LEAST_32, _MOST_32 = (np.uint64(np.float64(each).view(np.uint64)) for each in (1e-37, 3e38))


@inlined
def is_kind(given: int, last: int) -> bool:
    """Whether it is a kind of column, of those up to `last`, perhaps with `AS_WRITTEN` if it is one of numbers."""
    if given < AS_WRITTEN:
        return LEFT_OUT <= given <= last
    return INT64 <= given - AS_WRITTEN <= INT32


@inlined
def lies_within(given: int, place: int, n: int, size: int) -> bool:
    """Whether a column of n values of a kind that begins at a place lies within `size` bytes, at a multiple of 8."""
    if place < 0 or place % 8 != 0 or place > size:
        return False
    # Dividing instead of multiplying avoids overflow.
    width = WIDTHS[given % AS_WRITTEN]
    return width == 0 or n <= (size - place) // width


def _read_float(text: bytes) -> np.float64 | None:
    """The float64 nearest to a decimal number; None: it is none, or left to others."""
    found = _DECIMAL.match(text)
    if found is None:
        return None
    digits, fraction = found[1] + (found[2] or b""), len(found[2] or b"")
    value = np.float64(text)
    if not digits.strip(b"0"):
        return value
    exponent = int(found[3] or 0) - fraction
    fits = LOWEST <= exponent <= HIGHEST and len(digits.lstrip(b"0")) <= MOST_DIGITS and np.isfinite(value)
    return value if fits and abs(value).view(np.uint64) >= SMALLEST else None


def read_number(text: bytes, kind: int) -> np.generic | None:
    """The number in a value; None: it is none, or left to others."""
    if kind >= AS_WRITTEN:
        kind -= AS_WRITTEN
        whole = kind in (INT64, INT32)
        if _ZEROS_FIRST.match(text) or (not whole and _LONG_WHOLE.match(text)):
            return None
    if kind in (INT64, INT32):
        number = int(text) if _WHOLE.match(text) else None
        if number is None or (kind == INT32 and not -(2**31) <= number < 2**31):
            return None
        return np.int64(number) if kind == INT64 else np.int32(number)
    value = _read_float(text)
    if kind == FLOAT64 or value is None or value == 0:
        return value if kind == FLOAT64 or value is None else np.float32(value)
    bits = abs(value).view(np.uint64)
    # Halfway between two of float32 it is not told on which side the text was.
    return np.float32(value) if _LEAST_32 <= bits <= _MOST_32 and bits & _LAST_29 != _HALF else None


def _read_record(content: bytes, at: int, delimiter: int, quote: int) -> tuple[list[tuple[int, int]], int] | None:
    """Start and end of each value of the record at `at`, and the end of the record; None: it is not plain."""
    values = []
    while True:
        start = at
        if at < len(content) and content[at] == quote:
            stop = content.find(quote, at + 1)
            at = stop + 1
            if stop < 0:
                return None
            start += 1
        else:
            ends = [place for place in (content.find(delimiter, at), content.find(NEWLINE, at)) if place >= 0]
            if not ends:
                return None
            at = stop = min(ends)
            if quote >= 0 and quote in content[start:stop]:
                return None
            if content[at] == NEWLINE and stop > start and content[stop - 1] == RETURN:
                stop, at = stop - 1, at - 1
        if content[at : at + 2] == b"\r\n":
            at += 1
        if at == len(content) or content[at] not in (delimiter, NEWLINE):
            return None
        values.append((start, stop))
        at += 1
        if content[at - 1] == NEWLINE:
            return values, at


def plain_csv_reference(
    data: Bytes, n: int, delimiter: int, quote: int, columns: Ints, out: BytesOut
) -> tuple[int, int]:
    r"""Read n records to columns.

    A value is everything between delimiters, or between two quotes. The records must be plain: no quotes but around a whole
    value; in columns of numbers nothing but whole numbers of up to 18 digits, or decimal ones as `decimal_number` reads them.

    Args:
      data: whole records, which end with "\n" or "\r\n"; empty lines are none.
      n: how many there are.
      delimiter: the byte between values.
      quote: the byte around quoted values; -1: nothing is quoted.
      columns: [k * 2] (that is [k, 2]): for each value of a record its kind and the offset of its column in `out`, a multiple
        of 8. `AS_WRITTEN` may be added to a kind of numbers. Numbers are [n]; text is [2, n] of int64, start and length of
        each in the data.
      out: out; the columns.

    Returns:
      `OK` or `NOT_PLAIN`, and 0; unless it is `OK`, the columns are undefined.
    """
    _check(columns, n, out.size)
    k = columns.size // 2
    content, at, row = data.tobytes(), 0, 0
    while at < len(content):
        record = _read_record(content, at, delimiter, quote)
        if record is None:
            return NOT_PLAIN, 0
        values, after = record
        if content[at:after] in (b"\n", b"\r\n"):
            at = after
            continue
        at = after
        if len(values) != k or row == n:
            return NOT_PLAIN, 0
        for (kind, place), (start, stop) in zip(columns.reshape(k, 2).tolist(), values, strict=True):
            if kind == TEXT:
                both = out[place : place + 16 * n].view(np.int64)
                both[row], both[n + row] = start, stop - start
            elif kind != LEFT_OUT:
                number = read_number(content[start:stop], kind)
                if number is None:
                    return NOT_PLAIN, 0
                out[place : place + number.dtype.itemsize * n].view(number.dtype)[row] = number
        row += 1
    return (OK if row == n else NOT_PLAIN), 0


_ENDS_AT_ONCE = 8  # of values among 64 bytes


@inlined
def _equal(data: Bytes, at: int, value: int) -> np.uint64:
    """Bit i is set if byte at + i equals `value`, for up to 64 bytes."""
    if at + LANES <= data.size:
        return equal_mask(data, at, value)
    found = _ZERO
    for i in range(data.size - at):
        found |= np.uint64(load_u8(data, at + i) == value) << np.uint64(i)
    return found


@inlined
def _cut_bare(data: Bytes, n: int, k: int, delimiter: int, quote: int, firsts: IntsOut, ends: IntsOut) -> bool:
    """As `_cut`, of text without quotes and empty lines, as most has none; False: this is another one, or not plain."""
    count, lines, base = 0, 0, 0
    while base < data.size:
        if quote >= 0 and _equal(data, base, quote) != _ZERO:
            return False
        newlines = _equal(data, base, NEWLINE)
        found = newlines | _equal(data, base, delimiter)
        told, count, lines = count, count + bit_count(found), lines + bit_count(newlines)
        if count > n * k:
            return False
        for place in range(told, max(told + _ENDS_AT_ONCE, count)):  # mostly as many, which is predicted
            store_u64(ends, 8 * place, np.uint64(base + trailing_zeros(found)))
            found &= found - _ONE
        base += LANES
    if count != n * k or lines != n:
        return False
    first = 0
    for row in range(n):
        last = row * k + k - 1
        stop = ends[last]
        begin = ends[last - 1] + 1 if k > 1 else first
        returns = stop > begin and load_u8(data, stop - 1) == RETURN
        if load_u8(data, stop) != NEWLINE or stop - returns == first:
            return False
        firsts[row], ends[last] = first, stop - returns
        first = stop + 1
    return first == data.size


@inlined
def _cut(data: Bytes, n: int, k: int, delimiter: int, quote: int, firsts: IntsOut, ends: IntsOut) -> bool:
    """Where each of n records begins [n], and where each of its values ends [n * k], with its quotes; False: not plain."""
    row, value, first, begin, base = 0, 0, 0, 0, 0
    inside, closed = False, -1  # whether a quote is open; where the one was closed
    while base < data.size:
        found = _equal(data, base, delimiter) | _equal(data, base, NEWLINE)
        if quote >= 0:
            found |= _equal(data, base, quote)
        while found != _ZERO:
            position = base + trailing_zeros(found)
            found &= found - _ONE
            byte = load_u8(data, position)
            if inside:
                if byte == quote:
                    inside, closed = False, position
                continue
            if byte == quote:
                if position != begin:
                    return False
                inside = True
                continue
            stop = position
            if byte == NEWLINE and position > begin and load_u8(data, position - 1) == RETURN:
                stop -= 1
            if closed >= 0:
                if closed + 1 != stop:
                    return False
                closed = -1
            elif byte == NEWLINE and value == 0 and stop == first:
                first = begin = position + 1  # an empty line
                continue
            if row == n or value == k:
                return False
            ends[row * k + value] = stop
            value, begin = value + 1, position + 1
            if byte == NEWLINE:
                if value != k:
                    return False
                firsts[row] = first
                row, value, first = row + 1, 0, begin
        base += LANES
    return row == n and begin == data.size and not inside


@inlined
def _span(data: Bytes, row: int, j: int, k: int, quote: int, firsts: Ints, ends: Ints) -> tuple[int, int]:
    """Start and end of a value, without its quotes."""
    place = row * k + j
    start = ends[place - 1] + 1 if j > 0 else firsts[row]
    stop = ends[place]
    if start < stop and load_u8(data, start) == quote:
        return start + 1, stop - 1
    return start, stop


@inlined
def _put_texts(data: Bytes, place: int, j: int, k: int, quote: int, firsts: Ints, ends: Ints, out: BytesOut) -> bool:
    """Write start and length of the values of a column."""
    n = firsts.size
    for row in range(n):
        start, stop = _span(data, row, j, k, quote, firsts, ends)
        store_u64(out, place + 8 * row, np.uint64(start))
        store_u64(out, place + 8 * (n + row), np.uint64(stop - start))
    return True


@inlined
def zeros_first(data: Bytes, start: int, stop: int) -> bool:
    """Whether a number begins with a zero and another digit."""
    at = start + 1 if start < stop and load_u8(data, start) == _MINUS else start
    return at + 1 < stop and load_u8(data, at) == _ZERO_DIGIT and _ZERO_DIGIT <= load_u8(data, at + 1) <= _NINE_DIGIT


@inlined
def long_whole(data: Bytes, start: int, stop: int) -> bool:
    """Whether a number is nothing but more digits than every float64 can have, perhaps behind a minus."""
    at = start + 1 if start < stop and load_u8(data, start) == _MINUS else start
    if stop - at <= MOST_EXACT_DIGITS:
        return False
    for i in range(at, stop):
        if not _ZERO_DIGIT <= load_u8(data, i) <= _NINE_DIGIT:
            return False
    return True


@inlined
def _put_wholes(
    data: Bytes, kind: int, exact: bool, place: int, j: int, k: int, quote: int, firsts: Ints, ends: Ints, out: BytesOut
) -> bool:
    """Write a column of whole numbers; False: not plain."""
    for row in range(firsts.size):
        start, stop = _span(data, row, j, k, quote, firsts, ends)
        if exact and zeros_first(data, start, stop):
            return False
        number, right = whole_number(data, start, stop)
        if not right or (kind == INT32 and (number < -(2**31) or number >= 2**31)):
            return False
        if kind == INT64:
            store_u64(out, place + 8 * row, np.uint64(number))
        else:
            store_u32(out, place + 4 * row, np.uint32(number & 0xFFFFFFFF))
    return True


@inlined
def nearest_float32(bits: np.uint64) -> np.uint64:
    """The bits of the float32 nearest to the text of a float64; `NO_DECIMAL`: that text decides, or it is no normal one."""
    sign, bits = bits >> _32 & np.uint64(1 << 31), bits & ~_SIGN
    last = bits & _LAST_29
    if bits != _ZERO:
        if bits < _LEAST_32 or bits > _MOST_32 or last == _HALF:
            return NO_DECIMAL
        bits = (bits >> _29) - _BIAS + (_ONE if last > _HALF else _ZERO)
    return bits | sign


@inlined
def _put_decimals(
    data: Bytes, kind: int, exact: bool, place: int, j: int, k: int, quote: int, firsts: Ints, ends: Ints, out: BytesOut
) -> bool:
    """Write a column of floats; False: not plain."""
    for row in range(firsts.size):
        start, stop = _span(data, row, j, k, quote, firsts, ends)
        if exact and (zeros_first(data, start, stop) or long_whole(data, start, stop)):
            return False
        bits = decimal_number(data, start, stop)
        if bits == NO_DECIMAL:
            return False
        if kind == FLOAT64:
            store_u64(out, place + 8 * row, bits)
            continue
        rounded = nearest_float32(bits)
        if rounded == NO_DECIMAL:
            return False
        store_u32(out, place + 4 * row, np.uint32(rounded))
    return True


@inlined
def _check(columns: Ints, n: int, size: int) -> None:
    """Raise an error for columns without a kind, or that do not lie within `size` bytes."""
    if n < 0 or columns.size < 2 or columns.size % 2 != 0:
        raise ValueError("plain_csv: there must be a column, with a kind and an offset for each")
    for j in range(columns.size // 2):
        if not is_kind(columns[2 * j], TEXT) or not lies_within(columns[2 * j], columns[2 * j + 1], n, size):
            raise ValueError("plain_csv: each column must have a kind, and lie within out at a multiple of 8")


@kernel(plain_csv_reference)
def plain_csv(data: Bytes, n: int, delimiter: int, quote: int, columns: Ints, out: BytesOut) -> tuple[int, int]:
    """See `plain_csv_reference`."""
    _check(columns, n, out.size)
    k = columns.size // 2
    if n > data.size or k > data.size or n * k > data.size:  # each value takes a byte at least
        return (OK if n == 0 and data.size == 0 else NOT_PLAIN), 0
    firsts, ends = np.empty(n, np.int64), np.empty(n * k + _ENDS_AT_ONCE, np.int64)
    right = _cut_bare(data, n, k, delimiter, quote, firsts, ends)
    right = right or _cut(data, n, k, delimiter, quote, firsts, ends)
    for j in range(k):
        kind, place = columns[2 * j] % AS_WRITTEN, columns[2 * j + 1]
        exact = columns[2 * j] >= AS_WRITTEN
        if not right:
            return NOT_PLAIN, 0
        if kind == TEXT:
            right = _put_texts(data, place, j, k, quote, firsts, ends, out)
        elif kind == INT64 or kind == INT32:
            right = _put_wholes(data, kind, exact, place, j, k, quote, firsts, ends, out)
        elif kind != LEFT_OUT:
            right = _put_decimals(data, kind, exact, place, j, k, quote, firsts, ends, out)
    return (OK if right else NOT_PLAIN), 0
