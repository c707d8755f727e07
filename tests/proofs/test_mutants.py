# SPDX-License-Identifier: Apache-2.0
"""What is wrong in the code is found: changes to its source, each with the theorem that does not survive it."""

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed: make test")

from tests.proofs.prover import example, holds
from tests.proofs.source import Change, Code
from tests.proofs.theorems import MUTANTS, THEOREMS


@pytest.mark.parametrize("change, name", MUTANTS, ids=[f"{change[0]}: {change[2]}" for change, _ in MUTANTS])
def test_changed_code_breaks_its_theorem(change: Change, name: str) -> None:
    theorem = THEOREMS[name]
    against = example(theorem, Code(symbolic=True, change=change), against=True, most=5 if theorem.numbers else None)
    assert against is not None, f"{name} holds for {change}"
    if theorem.numbers:  # with these, the changed code gives what is wrong, and the code as it is what is right
        assert holds(theorem, Code(symbolic=False), against)
        assert not holds(theorem, Code(symbolic=False, change=change), against)


def test_a_change_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match="must hold 'nowhere' once, and has it 0 times"):
        Code(symbolic=True, change=("distinput.columns.block", "nowhere", ""))
    with pytest.raises(LookupError, match=r"has it [1-9][0-9]* times"):
        Code(symbolic=True, change=("distinput.columns.block", "index", ""))
