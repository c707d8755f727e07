# SPDX-License-Identifier: Apache-2.0
"""What is known of the names that stand for quotients and rests, and what the code owes a proof of beside its result."""

from typing import Any

import z3

__all__ = ["Facts"]


class Facts:
    """What one execution of the code says beside its result.

    Attributes:
      known: what the new names stand for.
      divisions: dividend, divisor, quotient and rest of each.
      duties: what must hold, each with the number of facts that were known before.
      powers: the names of powers of two.
      each: the number of the element that stands for all of an array.
    """

    def __init__(self) -> None:
        self.known: list[Any] = []
        self.divisions: list[tuple[Any, Any, Any, Any]] = []
        self.duties: list[tuple[str, Any, int]] = []
        self.powers: list[Any] = []
        self.each: Any = None

    def duty(self, what: str, statement: Any) -> None:
        """Something the theorem must show as well, from what was known before."""
        if not any(statement.eq(other) for _, other, _ in self.duties):
            self.duties.append((what, statement, len(self.known)))

    def divide(self, dividend: Any, divisor: Any) -> tuple[Any, Any]:
        """The quotient, rounded down, and the rest."""
        for a, b, q, r in self.divisions:
            if same(b, divisor) and same(a, dividend):
                return q, r
        if not isinstance(divisor, int):
            self.duty("a divisor is positive", divisor >= 1)
        number = len(self.divisions)
        q, r = z3.Int(f"quotient{number}"), z3.Int(f"rest{number}")
        self.known += [dividend == divisor * q + r, r >= 0, r < divisor]
        self.divisions.append((dividend, divisor, q, r))
        return q, r


def same(a: Any, b: Any) -> bool:
    """True if two expressions are the same one."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, int) or isinstance(b, int):
        a, b = (b, a) if isinstance(a, int) else (a, b)
        return bool(z3.is_int_value(a)) and int(a.as_long()) == b
    a, b = (z3.IntVal(x) if isinstance(x, int) else x for x in (a, b))
    return bool(z3.simplify(a - b).eq(z3.IntVal(0)))
