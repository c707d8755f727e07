# SPDX-License-Identifier: Apache-2.0
"""Decimal numbers in text: eight digits at a time, and rounded to the nearest float64 by two multiplications.

A float is w times ten to the q for whole numbers w < 2**64 and q. The product of w and the first 128 bits of five to the q
decides all bits of the result (D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 2021;
N. Mushtak and D. Lemire, "Fast number parsing without fallback", 2022). Numbers close to the ends of the range of a float64
are left to others, and so are those with more than 19 digits.
"""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, inlined
from distinput.kernels.machine import bit_count, load_u8, load_u64, multiply_high, signed

MOST_DIGITS = 19  # of which every number fits into 64 bits
LOWEST, HIGHEST = -342, 308  # exponents of ten in the table
SMALLEST = np.uint64(np.float64(1e-300).view(np.uint64))  # as bits; what is closer to zero is left to others
NO_DECIMAL = np.uint64((1 << 64) - 1)  # bits of a NaN, which no number has

_MINUS, _POINT, _PLUS, _ZERO_DIGIT = 45, 46, 43, 48
_ZERO, _ONE, _TWO, _THREE = (np.uint64(each) for each in range(4))
_ALL, _SIGN = np.uint64((1 << 64) - 1), np.uint64(1 << 63)
_FRACTION, _IMPLIED, _ROUNDED_UP = np.uint64((1 << 52) - 1), np.uint64(1 << 52), np.uint64(1 << 53)
_LAST_9, _9, _52, _63 = np.uint64((1 << 9) - 1), np.uint64(9), np.uint64(52), np.uint64(63)
_SHIFTS = tuple(np.uint64(1 << shift) for shift in range(6))
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
def _leading_zeros(word: np.uint64) -> int:
    """The number of zeros above the highest bit of a word that is not zero."""
    for shift in _SHIFTS:
        word |= word >> shift
    return 64 - bit_count(word)


@inlined
def nearest_float64(w: np.uint64, q: int) -> np.uint64:
    """The bits of the float64 nearest to w times ten to the q, w > 0; or `NO_DECIMAL`."""
    if q < LOWEST or q > HIGHEST:
        return NO_DECIMAL
    zeros = _leading_zeros(w)
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
