# SPDX-License-Identifier: Apache-2.0
"""Integers that stand for all integers: the code that computes with them leaves formulas behind instead of numbers.

`//`, `%` and `divmod` name a new quotient and rest, and say what they are; that the divisor is positive is a duty, proved with
the theorem. A comparison is a `Truth`; where the code branches on one, the proof goes on once for each answer.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import z3

from tests.proofs import paths
from tests.proofs.facts import Facts

__all__ = ["Bits", "Integer", "Sequence", "Truth", "chosen", "raw"]

_UFUNCS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "divmod": divmod, "right_shift": operator.rshift, "left_shift": operator.lshift,
    "bitwise_and": operator.and_, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
    "minimum": lambda a, b: chosen(a <= b, a, b), "maximum": lambda a, b: chosen(a >= b, a, b),
}  # fmt: skip


def raw(value: Any) -> Any:
    """What z3 knows of a value."""
    return value.raw if isinstance(value, Integer | Truth) else int(value) if isinstance(value, np.integer) else value


def chosen(statement: Any, yes: Any, no: Any) -> Any:
    """`yes` where the statement holds, else `no`, without a branch."""
    if not isinstance(statement, Truth):
        return yes if statement else no
    some = yes if isinstance(yes, Integer) else no
    return Integer(z3.If(statement.raw, raw(yes), raw(no)), some.facts, word=some.word)


class Truth:
    """A statement about integers."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, statement: Any) -> None:
        self.raw = statement

    def __bool__(self) -> bool:
        return paths.decide(self.raw)

    def __or__(self, other: Truth) -> Truth:
        return Truth(z3.Or(self.raw, other.raw))


class Integer:
    """An integer that may have any value.

    Args:
      expression: of z3.
      facts: what is known of the names in it.
      word: an unsigned word of 64 bits: a difference wraps, and that sums and products do not is a duty.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: Any, facts: Facts, *, word: bool = False) -> None:
        self.raw, self.facts, self.word = expression, facts, word

    def __repr__(self) -> str:
        return str(self.raw)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any) -> Any:
        return _UFUNCS[ufunc.__name__](*[int(value) if isinstance(value, np.integer) else value for value in given])

    def __getitem__(self, key: Any) -> Integer:
        """One element stands for all of an array, whatever axes it is given."""
        assert all(part is None or part == slice(None) for part in key)
        return self

    size = 1

    def bit_length(self) -> int:
        """A number; the code goes on once for each."""
        low, high = 0, 64
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self < 1 << middle else (middle + 1, high)
        return low

    def ravel(self) -> Integer:
        return self

    def astype(self, dtype: Any) -> Integer:
        word = issubclass(dtype, np.uint64)
        self.facts.duty("a word of 64 bits holds it", z3.And(self.raw >= 0, self.raw < 1 << (64 if word else 63)))
        return Integer(self.raw, self.facts, word=word)

    def _made(self, expression: Any, other: Any = None) -> Integer:
        word = self.word or getattr(other, "word", False)
        if word:
            self.facts.duty("a word of 64 bits holds it", expression < 1 << 64)
        return Integer(expression, self.facts, word=word)

    def __add__(self, other: Any) -> Integer:
        return self._made(self.raw + raw(other), other)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list):
            (item,) = other
            return Sequence([(self, lambda index: item)], self.facts)
        return self._made(self.raw * raw(other), other)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Integer:
        return self._less(self.raw, raw(other), other)

    def __rsub__(self, other: Any) -> Integer:
        return self._less(raw(other), self.raw, other)

    def _less(self, a: Any, b: Any, other: Any) -> Integer:
        word = self.word or getattr(other, "word", False)
        return Integer(z3.If(b <= a, a - b, a - b + (1 << 64)) if word else a - b, self.facts, word=word)

    def __neg__(self) -> Integer:
        return 0 - self

    def __divmod__(self, other: Any) -> tuple[Integer, Integer]:
        q, r = self.facts.divide(self.raw, raw(other))
        return Integer(q, self.facts, word=self.word), Integer(r, self.facts, word=self.word)

    def __rdivmod__(self, other: Any) -> tuple[Integer, Integer]:
        return divmod(Integer(z3.IntVal(int(other)), self.facts), self)

    def __floordiv__(self, other: Any) -> Integer:
        return divmod(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Integer:
        return divmod(other, self)[0]

    def __mod__(self, other: Any) -> Integer:
        return divmod(self, other)[1]

    def __rmod__(self, other: Any) -> Integer:
        return divmod(other, self)[1]

    def __rshift__(self, bits: Any) -> Integer:
        return self // (bits.power if isinstance(bits, Bits) else 1 << int(bits))

    def __lshift__(self, bits: Any) -> Any:
        return self * (bits.power if isinstance(bits, Bits) else 1 << int(bits))

    def __and__(self, mask: Any) -> Integer:
        """The lowest bits; that the mask is made of them alone is a duty."""
        if not isinstance(mask, Integer):
            assert int(mask) & (int(mask) + 1) == 0, f"{mask} is not a mask of the lowest bits"
            return self % (int(mask) + 1)
        (power,) = self.facts.powers
        self.facts.duty("a mask is a power of two less one", mask.raw + 1 == power)
        return self % Integer(power, self.facts)

    __rand__ = __and__

    def __lt__(self, other: Any) -> Truth:
        return Truth(self.raw < raw(other))

    def __le__(self, other: Any) -> Truth:
        return Truth(self.raw <= raw(other))

    def __gt__(self, other: Any) -> Truth:
        return Truth(self.raw > raw(other))

    def __ge__(self, other: Any) -> Truth:
        return Truth(self.raw >= raw(other))

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return Truth(self.raw == raw(other))

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return Truth(self.raw != raw(other))


class Bits:
    """A number of bits of which only the power of two that it makes is known to be positive."""

    __array_ufunc__ = None

    def __init__(self, power: Integer) -> None:
        self.power = power
        power.facts.powers.append(power.raw)

    def __rlshift__(self, one: Any) -> Integer:
        assert one == 1
        return self.power


class Sequence:
    """A list of any length: stretches of any lengths, each a function of the place in it."""

    def __init__(self, stretches: list[tuple[Any, Any]], facts: Facts) -> None:
        self._stretches, self._facts = stretches, facts

    @property
    def length(self) -> Any:
        return sum(length for length, _ in self._stretches)

    def __add__(self, other: Sequence) -> Sequence:
        return Sequence([*self._stretches, *other._stretches], self._facts)

    def at(self, index: Any) -> Any:
        (length, item), *more = self._stretches
        if not more:
            return item(index)
        return chosen(index < length, item(index), Sequence(more, self._facts).at(index - length))

    def __getitem__(self, part: slice) -> Sequence:
        """A part from or up to a place that is not behind the end, which is a duty."""
        assert part.step is None
        assert part.start is None or part.stop is None
        bound = part.start if part.stop is None else part.stop
        self._facts.duty("a slice ends within the list", z3.And(raw(bound >= 0), raw(bound <= self.length)))
        if part.stop is None:
            return Sequence([(self.length - bound, lambda index: self.at(bound + index))], self._facts)
        return Sequence([(bound, self.at)], self._facts)
