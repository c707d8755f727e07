# SPDX-License-Identifier: Apache-2.0
"""What is proved of the library's code for all integers; docs/proofs.md says what each theorem is good for."""

import random
from itertools import islice

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed: make test")

import z3

from tests.depth import cases
from tests.proofs.lemmas import LEMMAS
from tests.proofs.prover import Unmet, example, holds, prove
from tests.proofs.source import Code
from tests.proofs.theorems import THEOREMS


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: lemma.__name__)
def test_each_lemma_holds(lemma) -> None:
    names = lemma.__code__.co_varnames[: lemma.__code__.co_argcount]
    solver = z3.Solver()
    solver.set("rlimit", 10_000_000)
    solver.add(z3.Not(lemma(*z3.Ints(" ".join(names)))))
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("name", THEOREMS)
def test_each_theorem_holds(name: str) -> None:
    assert prove(THEOREMS[name], Code(symbolic=True)) > 0


@pytest.mark.parametrize("name", [name for name, theorem in THEOREMS.items() if theorem.numbers])
def test_the_code_as_users_run_it(name: str) -> None:
    """So that arithmetic on all integers is that of Python and NumPy, and no theorem speaks of nothing."""
    theorem, code, draw = THEOREMS[name], Code(symbolic=False), random.Random(name)
    tried = 0
    for _ in range(200_000):
        try:
            most = draw.choice((2, 4, 8, 20))
            assert holds(theorem, code, numbers := {each: draw.randint(0, most) for each in theorem.variables}), numbers
        except Unmet:
            continue
        tried += 1
        if tried == cases(25, 1000):
            return
    raise AssertionError(f"{name}: only {tried} numbers are what it speaks of")


@pytest.mark.parametrize("name", [name for name, theorem in THEOREMS.items() if not theorem.numbers])
def test_what_is_supposed_can_be(name: str) -> None:
    assert example(THEOREMS[name], Code(symbolic=True), against=False, most=None) is not None


def test_each_theorem_has_a_name_of_its_own() -> None:
    assert len(list(islice(THEOREMS, 100))) == len(THEOREMS) > 40
