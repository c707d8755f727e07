# SPDX-License-Identifier: Apache-2.0
"""Theorems about the library's code: proved for all integers, refuted by numbers, or tried with numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import z3

from tests.proofs import lemmas
from tests.proofs.facts import Facts, same
from tests.proofs.integers import Bits, Integer, Sequence, raw
from tests.proofs.paths import explore
from tests.proofs.source import Code

__all__ = ["Numbers", "Proof", "Refuted", "Theorem", "Undecided", "Unmet", "example", "holds", "prove"]

LIMIT = 40_000_000
"""Steps of the solver for one question, in its own measure: the same on every machine."""
SEEDS = 4
"""With which it may begin, one after the other."""
FEW = 100_000
"""Steps to find out that a branch cannot be taken; where they do not do, it is taken."""


class Undecided(AssertionError):
    """The solver reached its limit."""


class Refuted(AssertionError):
    """The theorem does not hold."""


class Unmet(Exception):
    """These numbers are not those that the theorem speaks of."""


@dataclass(frozen=True)
class Theorem:
    """A statement about the library's code.

    Args:
      name: what it says.
      statement: proof, then one integer for each further parameter -> what holds, a statement or several.
      fixed: parameters that are not integers, with their values.
      numbers: it can be tried with numbers too; False: something in the code is replaced by any function.
    """

    name: str
    statement: Callable[..., Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    numbers: bool = True

    @property
    def variables(self) -> list[str]:
        """The names of the integers."""
        return [name for name in list(inspect.signature(self.statement).parameters)[1:] if name not in self.fixed]


class Proof:
    """All integers: what a theorem says of its variables, and the lemmas that help.

    Args:
      code: the library's.
    """

    def __init__(self, code: Code) -> None:
        self.code, self.facts = code, Facts()
        self.givens: list[Any] = []
        self._lemmas: list[Any] = []
        self._quotients: list[tuple[Any, Any, Any]] = []

    def integer(self, name: str) -> Any:
        return Integer(z3.Int(name), self.facts)

    def given(self, *statements: Any) -> None:
        """What the theorem supposes."""
        self.givens += [raw(statement) for statement in statements]

    def lemma(self, lemma: Callable[..., Any], *values: Any) -> None:
        """A lemma, proved as a theorem of its own, holds for these values."""
        self._lemmas.append(lemma(*[raw(value) for value in values]))

    def dividing(self, divisor: Any, quotient: Any, rest: Any) -> None:
        """Where divisor * quotient + rest is divided by the divisor, the result is known: `lemmas.division`."""
        self._quotients.append((raw(divisor), raw(quotient), raw(rest)))

    def each(self, number: Any) -> None:
        """The element that stands for all of an array."""
        self.facts.each = number

    def function(self, name: str, below: int) -> Callable[..., Any]:
        """Some function of integers, of which only the range is known."""

        def value(*given: Any) -> Integer:
            made = z3.Function(name, *[z3.IntSort()] * (len(given) + 1))(*[raw(x) for x in given])
            self.facts.known += [made >= 0, made < below]
            return Integer(made, self.facts, word=True)

        return value

    def item(self, values: Any, index: Any) -> Any:
        """One of an array, a tuple or a list."""
        return values[0] if isinstance(values, tuple) else values.at(index) if isinstance(values, Sequence) else values

    def length(self, values: Any) -> Any:
        """Of a list."""
        return values.length

    def array(self, value: Any) -> Any:
        """An array of one element."""
        return value

    def power(self, bits: Any) -> tuple[Any, Any]:
        """Some number of bits, and the power of two that it makes."""
        power = Integer(z3.Int("power"), self.facts)
        self.given(power >= 1)
        return Bits(power), power

    def instances(self) -> list[Any]:
        """The lemmas, for all divisions that were met."""
        found = list(self._lemmas)
        met = self.facts.divisions
        for a, b, q, r in met:
            found += [lemmas.division(a, b, q, r, x, y) for d, x, y in self._quotients if same(b, d)]
        for i, (a, b, q, r) in enumerate(met):
            found += [z3.Implies(a == c, z3.And(q == s, r == t)) for c, d, s, t in met[:i] if same(b, d)]
        return found


def prove(theorem: Theorem, code: Code) -> int:
    """Prove a theorem for all integers.

    Returns:
      How many questions the solver was asked.

    Raises:
      Refuted: it does not hold.
      Undecided: the solver reached its limit.
    """
    asked = 0
    for held, proof, goals in _ways(theorem, code):
        known, supposed = proof.facts.known, [*proof.givens, *proof.instances(), *held]
        for what, goal, before in [*proof.facts.duties, *[("the statement", goal, len(known)) for goal in goals]]:
            model = _model(f"{theorem.name}: {what}", *supposed, *known[:before], z3.Not(goal))
            asked += 1
            if model is not None:
                raise Refuted(f"{theorem.name}: {what} does not hold for {model}")
    return asked


def _ways(theorem: Theorem, code: Code) -> Iterator[tuple[list[Any], Proof, list[Any]]]:
    """Each way through the code: what is held there, what else is known, and what must hold."""
    proof, solver, told = Proof(code), _solver(FEW), [0, 0, 0]

    def stated() -> list[Any]:
        proof.__init__(code)  # type: ignore[misc]
        solver.reset()
        told[:] = 0, 0, 0
        goals = theorem.statement(proof, *[proof.integer(name) for name in theorem.variables], **theorem.fixed)
        return [raw(goal) for goal in _several(goals)]

    def possible(held: list[Any]) -> bool:
        *before, last = held
        for i, there in enumerate((proof.givens, proof.facts.known, before)):
            solver.add(*there[told[i] :])
            told[i] = len(there)
        solver.push()
        solver.add(last)
        found = solver.check()
        solver.pop()
        return bool(found != z3.unsat)

    for held, goals in explore(stated, possible):
        yield held, proof, goals


def _several(goals: Any) -> Iterable[Any]:
    return goals if isinstance(goals, list) else [goals]


def _solver(limit: int, *statements: Any, seed: int = 0) -> Any:
    solver = z3.Solver()
    solver.set("rlimit", limit)
    solver.set("random_seed", seed)
    solver.add(*statements)
    return solver


def _model(what: str, *statements: Any) -> Any:
    """Numbers for which all statements hold; None if there are none.

    How far the solver comes depends on what the process has asked it before, so it may begin with other seeds.

    Raises:
      Undecided: it reached its limit with each of them.
    """
    for seed in range(SEEDS):
        solver = _solver(LIMIT, *statements, seed=seed)
        answer = solver.check()
        if answer != z3.unknown:
            return solver.model() if answer == z3.sat else None
    raise Undecided(f"{what} was not decided in {LIMIT} steps: {solver.reason_unknown()}")


def example(theorem: Theorem, code: Code, *, against: bool, most: int | None = None) -> dict[str, int] | None:
    """Numbers that a theorem speaks of, found by the solver; None if it finds none.

    Args:
      theorem: what they are to be an example of, or against.
      code: the library's.
      against: it does not hold for them, or the code does not do its duties.
      most: none of them is larger; None: they may be of any size.

    Raises:
      Undecided: it finds none, and reached its limit.
    """
    undecided = None
    names = [z3.Int(name) for name in theorem.variables]
    small = [] if most is None else [z3.And(name >= 0, name <= most) for name in names]
    for held, proof, goals in _ways(theorem, code):
        wrong = z3.Not(z3.And(*goals, *[duty for _, duty, _ in proof.facts.duties])) if against else True
        try:
            model = _model(theorem.name, *proof.givens, *held, *proof.facts.known, *small, wrong)
        except Undecided as error:
            undecided = error
            continue
        if model is not None:
            return {str(name): model.eval(name, model_completion=True).as_long() for name in names}
    if undecided is not None:
        raise undecided
    return None


class Numbers:
    """The same theorem for given numbers: the code runs as it does for users.

    Args:
      code: the library's.
    """

    def __init__(self, code: Code) -> None:
        self.code = code

    def given(self, *statements: Any) -> None:
        if not all(map(bool, statements)):
            raise Unmet

    def lemma(self, lemma: Callable[..., Any], *values: Any) -> None:
        """Nothing to do: it holds for numbers."""

    def dividing(self, divisor: Any, quotient: Any, rest: Any) -> None:
        """The same."""

    def each(self, number: Any) -> None:
        """The same."""

    def item(self, values: Any, index: int) -> Any:
        return values[index]

    def length(self, values: Any) -> int:
        return len(values)

    def array(self, value: int) -> Any:
        return np.array([value])

    def power(self, bits: int) -> tuple[int, int]:
        return bits, 1 << bits


def holds(theorem: Theorem, code: Code, numbers: Mapping[str, int]) -> bool:
    """Whether a theorem holds for these numbers.

    Raises:
      Unmet: the theorem does not speak of them.
    """
    found = theorem.statement(Numbers(code), **numbers, **theorem.fixed)
    return all(bool(np.all(goal)) for goal in _several(found))
