# SPDX-License-Identifier: Apache-2.0
"""A class is not a chapter of another: one whose only use is to be the base of one other class is a heading in that class."""

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.house.imports import nodes_of

PACKAGE = Path(__file__).parents[2] / "distinput"

PARTS = MappingProxyType(
    {
        "TextRecords": "it finds the records of a text in pieces, whatever TextTable makes of them",
    }
)
"""Classes that are the base of one class alone, and why they are more than a chapter of it."""


def chapters(sources: Iterable[str]) -> set[str]:
    """The classes that are named nowhere but as the base of one other class, and where their names are listed."""
    defined: set[str] = set()
    subclasses: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for source in sources:
        for node in nodes_of(source):
            if isinstance(node, ast.ClassDef):
                defined.add(node.name)
                for base in node.bases:
                    named = base.value if isinstance(base, ast.Subscript) else base
                    name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
                    subclasses[name] += 1
                    uses[name] -= 1  # which the walk counts as a use
            elif isinstance(node, ast.Name | ast.Attribute):
                uses[node.id if isinstance(node, ast.Name) else node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and ":" in node.value:
                uses[node.value.rpartition(":")[2]] += 1  # a table of what is loaded when it is named
    return {name for name in defined if subclasses[name] == 1 and uses[name] == 0}


def test_no_class_is_a_chapter_of_another() -> None:
    found = chapters(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    assert found <= PARTS.keys(), "make it a heading in its one subclass, or say in PARTS why it is more"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("class A: ...\nclass B(A): ...", {"A"}),
        ("class A: ...\nclass B(A[int]): ...", {"A"}),
        ("class A: ...\nclass B(A): ...\nclass C(A): ...", set()),
        ("class A: ...\nclass B(A): ...\nA()", set()),
        ("class A: ...\nclass B(A): ...\ndef f(a):\n    return isinstance(a, A)", set()),
        ("class A: ...\nclass B(A): ...\nTABLE = {'a': 'package.module:A'}", set()),
    ],
)
def test_chapters_are_found(source: str, expected: set[str]) -> None:
    assert chapters([source]) == expected
