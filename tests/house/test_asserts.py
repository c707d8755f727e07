# SPDX-License-Identifier: Apache-2.0
"""Nothing is checked by an `assert`, which `python -O` leaves out: it says what is so, or narrows a type."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.imports import nodes_of

PACKAGE = Path(__file__).parents[2] / "distinput"
_KNOWS = {"any", "isinstance", "len", "type"}
"""Functions that refuse nothing."""


def properties(source: str) -> Iterator[str]:
    """Names of properties that give no None, so that to ask whether they do is to have them checked."""
    for node in nodes_of(source):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            kinds = {getattr(each, "id", getattr(each, "attr", "")) for each in node.decorator_list}
            gives = ast.unparse(node.returns)
            if kinds & {"property", "cached_property"} and gives != "Any" and not gives.endswith("None"):
                yield node.name


def checks(source: str) -> Iterator[int]:
    """Lines of asserts that may raise another error: they call something, or ask a property that is always there."""
    known = set(properties(source))
    for node in nodes_of(source):
        if isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                calls = isinstance(part, ast.Call) and getattr(part.func, "id", "") not in _KNOWS
                if calls or (isinstance(part, ast.Attribute) and part.attr in known):
                    yield node.lineno


def test_no_assert_checks_what_users_give() -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if "testing" not in path.parts]
    found = [f"{path.relative_to(PACKAGE)}:{line}" for path in files for line in checks(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "statement, finds",
    [
        ("assert self.spec is not None", True),
        ("assert self.checked()", True),
        ("assert self.table is not None", False),
        ("assert isinstance(self.value, int)", False),
        ("self.spec", False),
    ],
)
def test_asserts_that_check_are_found(statement: str, finds: bool) -> None:
    source = f"""
class Step:
    @cached_property
    def spec(self) -> Spec: ...
    @property
    def table(self) -> Table | None: ...
    def __post_init__(self):
        {statement}
"""
    assert bool(list(checks(source))) == finds
