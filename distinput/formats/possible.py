# SPDX-License-Identifier: Apache-2.0
"""Whether a condition can be true, or false, for values of which only the bounds are known.

Whatever is not certain is possible. So a part of a file is left out only where no row of it can satisfy the condition.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distinput.arrow.expression import Term

__all__ = ["ColumnBounds", "possible"]

_EXACT_INTEGER = 1 << 24
"""Integers up to this are the same in every type of numbers that Arrow may compare them in."""

_FLIPPED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""What a comparison is with its sides exchanged."""


@dataclass(frozen=True)
class ColumnBounds:
    """What is known about the values of a column.

    Args:
      low: none is smaller, except NaN.
      high: none is larger, except NaN.
      nan: some may be NaN.
    """

    low: Any
    high: Any
    nan: bool = False


def possible(term: Term, ranges: Mapping[str, ColumnBounds]) -> tuple[bool, bool]:
    """Whether a condition can be true for some row, and whether it can be anything else.

    Args:
      term: the condition.
      ranges: of columns; nothing is known about the others.

    >>> five = Term("call", "greater", (Term("field", "x"), Term("literal", 5)))
    >>> possible(five, {"x": ColumnBounds(1, 4)}), possible(five, {"x": ColumnBounds(6, 9)}), possible(five, {})
    ((False, True), (True, False), (True, True))
    """
    given = term.arguments
    if term.kind == "call" and term.value in ("and_kleene", "and", "or_kleene", "or") and len(given) == 2:
        (a, not_a), (b, not_b) = possible(given[0], ranges), possible(given[1], ranges)
        return (a and b, not_a or not_b) if term.value.startswith("and") else (a or b, not_a and not_b)
    if term.kind == "call" and term.value == "invert" and len(given) == 1:
        yes, no = possible(given[0], ranges)
        return no, yes
    if term.kind == "call" and term.value in _FLIPPED and len(given) == 2:
        left, right = given
        if left.kind == "field" and right.kind == "literal" and left.value in ranges:
            return _compared(term.value, ranges[left.value], right.value)
        if left.kind == "literal" and right.kind == "field" and right.value in ranges:
            return _compared(_FLIPPED[term.value], ranges[right.value], left.value)
    return True, True


def _compared(how: str, known: ColumnBounds, literal: Any) -> tuple[bool, bool]:
    value = _plain(literal)
    low, high = known.low, known.high
    if isinstance(low, bytes) != isinstance(value, bytes) or value is None:
        return True, True
    if isinstance(low, float) and isinstance(value, int) and abs(value) > _EXACT_INTEGER:
        return True, True
    if isinstance(value, float):
        if math.isnan(value):
            return True, True
        low, high = float(low), float(high)  # as Arrow compares integers with a float; the order stays
    match how:
        case "less":
            yes, no = low < value, high >= value
        case "less_equal":
            yes, no = low <= value, high > value
        case "greater":
            yes, no = high > value, low <= value
        case "greater_equal":
            yes, no = high >= value, low < value
        case "equal":
            yes, no = low <= value <= high, isinstance(low, bytes) or not low == value == high
        case _:  # bounds of texts may be cut short, so that equal ones prove nothing
            yes, no = isinstance(low, bytes) or not low == value == high, low <= value <= high
    if known.nan:  # no comparison with NaN is true but "not equal"
        return (True, no) if how == "not_equal" else (yes, True)
    return yes, no


def _plain(literal: Any) -> Any:
    """A constant as a number or as bytes; None for anything else."""
    value = literal.as_py() if hasattr(literal, "as_py") else literal
    if isinstance(value, bool) or not isinstance(value, int | float | str | bytes):
        return None
    return value.encode() if isinstance(value, str) else value
