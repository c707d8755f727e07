# SPDX-License-Identifier: Apache-2.0
"""Statements made of statements, about numbers or about all integers."""

from typing import Any

import z3

from tests.proofs.integers import Truth, chosen, raw

__all__ = ["all_of", "at_least_one", "implies", "smaller"]


def all_of(*statements: Any) -> Any:
    """All of them hold."""
    if any(isinstance(each, Truth) for each in statements):
        return Truth(z3.And(*map(raw, statements)))
    return all(map(bool, statements))


def at_least_one(*statements: Any) -> Any:
    """One of them holds, or more."""
    if any(isinstance(each, Truth) for each in statements):
        return Truth(z3.Or(*map(raw, statements)))
    return any(map(bool, statements))


def implies(one: Any, other: Any) -> Any:
    """The other holds wherever the one does."""
    if isinstance(one, Truth) or isinstance(other, Truth):
        return Truth(z3.Implies(raw(one), raw(other)))
    return not bool(one) or bool(other)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two numbers."""
    return chosen(a <= b, a, b)
