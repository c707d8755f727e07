# SPDX-License-Identifier: Apache-2.0
"""The prover itself: it refutes what is wrong, says what it could not decide, and goes every way through the code."""

from typing import Any

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed: make test")

import numpy as np

from tests.proofs import prover
from tests.proofs.facts import Facts
from tests.proofs.integers import Integer
from tests.proofs.prover import Refuted, Theorem, Undecided, Unmet, example, holds, prove
from tests.proofs.source import Code
from tests.proofs.statements import all_of, implies, smaller

CODE = Code(symbolic=True)


def same_way_round(proof: Any, a: Any, b: Any) -> Any:
    proof.given(b > 0)
    return a // b * b + a % b == a


def never_above_five(proof: Any, a: Any) -> Any:
    return min(a, 5) == smaller(a, 5)


def test_what_holds_is_proved_and_what_does_not_is_refuted() -> None:
    assert prove(Theorem("it", same_way_round), CODE) == 2
    with pytest.raises(Refuted, match=r"^it: the statement does not hold for \[a = "):
        prove(Theorem("it", lambda proof, a: a * a > a), CODE)
    assert example(Theorem("it", lambda proof, a: a * a > a), CODE, against=True, most=9) in ({"a": 0}, {"a": 1})


def test_every_branch_is_taken() -> None:
    assert prove(Theorem("it", never_above_five), CODE) == 2
    with pytest.raises(Refuted, match="for "):
        prove(Theorem("it", lambda proof, a: a != 7 if a < 7 else a > 7), CODE)


def test_a_branch_that_cannot_be_taken_is_not() -> None:
    def five_at_most(proof: Any, a: Any) -> Any:
        proof.given(a >= 0, a <= 5)
        count = 0
        while a > 0:
            a, count = a - 1, count + 1
        return count <= 5

    assert prove(Theorem("it", five_at_most), CODE) == 6


def test_a_loop_without_an_end_is_an_error() -> None:
    def without_an_end(proof: Any, a: Any) -> Any:
        while a > 0:
            a = a - 1
        return a <= 0

    with pytest.raises(RecursionError, match="more than 128 branches"):
        prove(Theorem("it", without_an_end), CODE)


def test_dividing_by_what_may_be_zero_is_found() -> None:
    with pytest.raises(Refuted, match="it: a divisor is positive does not hold"):
        prove(Theorem("it", lambda proof, a, b: a // b * b <= a), CODE)


def test_a_word_that_overflows_is_found() -> None:
    def doubled(proof: Any, a: Any) -> Any:
        proof.given(a >= 0, a < 1 << 63)
        return a.astype(np.uint64) + a.astype(np.uint64) + 1 > a

    assert prove(Theorem("it", doubled), CODE) > 0
    with pytest.raises(Refuted, match="a word of 64 bits holds it"):
        prove(Theorem("it", lambda proof, a: doubled(proof, a) if a.astype(np.uint64) * 3 > a else True), CODE)


def test_what_is_not_decided_is_a_failure_with_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "LIMIT", 1000)
    fermat = Theorem(
        "cubes", lambda proof, a, b, c: implies(all_of(a > 0, b > 0, c > 0), a * a * a + b * b * b != c * c * c)
    )
    with pytest.raises(Undecided, match="cubes: the statement was not decided in 1000 steps"):
        prove(fermat, CODE)


def test_numbers_that_it_does_not_speak_of_are_told() -> None:
    theorem = Theorem("it", same_way_round)
    assert holds(theorem, CODE, {"a": 7, "b": 2})
    with pytest.raises(Unmet):
        holds(theorem, CODE, {"a": 7, "b": 0})


def test_a_branch_outside_of_a_proof_is_an_error() -> None:
    import z3

    with pytest.raises(RuntimeError, match="outside of explore"):
        bool(Integer(z3.Int("a"), Facts()) > 0)
