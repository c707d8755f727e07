# SPDX-License-Identifier: Apache-2.0
"""Sums that do not depend on the order of their terms, so that any number of workers gets the same bits.

A float is an integer times a power of two. Its digits are split into bands of `BITS` binary digits at fixed positions.
Each band is added up in integers, which is exact in any order; only the total is rounded. Workers exchange the bands.

Source: the long accumulator of Kulisch (1986), with bands as in Collange, Defour, Graillat and Iakymchuk (2015).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["BITS", "Bands", "bands_of", "joined", "rounded"]

BITS = 24
"""Binary digits of a band, few enough for sums of up to 2**38 terms to fit into 64 bits."""

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Bands:
    """The exact sum of some arrays of one shape.

    Args:
      first: the number of the lowest band; band k holds multiples of 2 ** (BITS * k).
      digits: [bands, ...], the sum of each band.
      special: the ordinary sum, if a term was infinite or NaN; None if all were finite.
    """

    first: int
    digits: Ints
    special: np.ndarray[Any, Any] | None = None


def bands_of(array: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Bands:
    """The exact sum of an array over `axes`.

    >>> import numpy as np
    >>> rounded(bands_of(np.array([1e16, 1.0, -1e16]), (0,)), 1, np.dtype(float)).item()
    1.0
    """
    rest = array.astype(np.float64)
    shape = tuple([n for axis, n in enumerate(array.shape) if axis not in axes])
    if not np.isfinite(rest).all():
        with np.errstate(invalid="ignore"):
            return Bands(0, np.zeros((0, *shape), np.int64), np.asarray(rest.sum(axis=axes)))
    top = float(np.abs(rest).max(initial=0.0))
    if top == 0:
        return Bands(0, np.zeros((0, *shape), np.int64))
    band = int(np.frexp(top)[1]) // BITS
    digits: list[Ints] = []
    while rest.any():
        # Both the quotient and the remainder are exact: the divisor is a power of two and rounding is towards zero.
        whole = np.trunc(np.ldexp(rest, -BITS * band))
        rest = rest - np.ldexp(whole, BITS * band)
        digits.append(np.asarray(whole.astype(np.int64).sum(axis=axes)))
        band -= 1
    return Bands(band + 1, np.stack(digits[::-1]))


def joined(parts: Iterable[Bands]) -> Bands:
    """The exact sum of several exact sums of the same shape."""
    parts = list(parts)
    special = [part.special for part in parts if part.special is not None]
    used = [part for part in parts if len(part.digits)]
    if not used:
        total = parts[0]
    else:
        first = min(part.first for part in used)
        last = max(part.first + len(part.digits) for part in used)
        digits = np.zeros((last - first, *used[0].digits.shape[1:]), np.int64)
        for part in used:
            begin = part.first - first
            digits[begin : begin + len(part.digits)] += part.digits
        total = Bands(first, digits)
    if not special:
        return total
    with np.errstate(invalid="ignore"):
        return Bands(total.first, total.digits, np.asarray(sum(special[1:], special[0])))


def rounded(total: Bands, divisor: int, dtype: np.dtype[Any]) -> Any:
    """The sum divided by `divisor`, rounded once to `dtype`; NaN for a divisor of 0."""
    shape = total.digits.shape[1:]
    if divisor == 0:
        return np.full(shape, np.nan, dtype)[()]
    if total.special is not None:
        return (total.special / divisor).astype(dtype)[()]
    if not len(total.digits):
        return np.zeros(shape, dtype)[()]
    columns = total.digits.reshape(len(total.digits), -1).T.tolist()
    out = np.array([_value(column, total.first, divisor) for column in columns], np.float64)
    return out.reshape(shape).astype(dtype)[()]


def _value(digits: list[int], first: int, divisor: int) -> float:
    number = sum(digit << (BITS * i) for i, digit in enumerate(digits))
    shift = BITS * first
    exact = Fraction(number << shift, divisor) if shift >= 0 else Fraction(number, divisor << -shift)
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
