# SPDX-License-Identifier: Apache-2.0
"""Small truths about products and quotients, each proved for all integers; theorems use them for values of theirs."""

from typing import Any

import z3

__all__ = ["LEMMAS", "apart", "division", "monotone", "strictly"]


def division(a: Any, b: Any, q: Any, r: Any, quotient: Any, rest: Any) -> Any:
    """There is one quotient and one rest: whatever a = b * quotient + rest is, if rest is from 0 to b - 1."""
    divided = z3.And(b >= 1, a == b * q + r, r >= 0, r < b)
    return z3.Implies(z3.And(divided, a == b * quotient + rest, rest >= 0, rest < b), z3.And(q == quotient, r == rest))


def apart(n: Any, a: Any, s: Any, b: Any, t: Any) -> Any:
    """a + n * s = b + n * t only for a = b and s = t, where a and b are from 0 to n - 1."""
    return z3.Implies(z3.And(a >= 0, a < n, b >= 0, b < n, a + n * s == b + n * t), z3.And(a == b, s == t))


def monotone(k: Any, x: Any, y: Any) -> Any:
    """x <= y gives k * x <= k * y."""
    return z3.Implies(z3.And(k >= 0, x <= y), k * x <= k * y)


def strictly(k: Any, x: Any, y: Any) -> Any:
    """x < y gives k * x + k <= k * y."""
    return z3.Implies(z3.And(k >= 0, x < y), k * x + k <= k * y)


LEMMAS = (apart, division, monotone, strictly)
