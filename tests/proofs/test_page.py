# SPDX-License-Identifier: Apache-2.0
"""docs/proofs.md lists what is proved, and nothing else."""

import re
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed: make test")

from tests.proofs.theorems import THEOREMS

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"


def test_the_page_lists_the_theorems() -> None:
    text = PAGE.read_text(encoding="utf-8")
    listed = re.findall(
        r"^\* (.*)$", text[text.index("## What is proved") : text.index("## What is wrong")], re.MULTILINE
    )
    kinds = {name.split(",")[0] for name in THEOREMS}
    assert [line for line in listed if not any(line.startswith(kind) for kind in kinds)] == []
    assert [kind for kind in kinds if not any(line.startswith(kind) for line in listed)] == []
