# SPDX-License-Identifier: Apache-2.0
"""Messages of errors speak of names that a user can write: of no class that is not public."""

import ast
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.house.imports import nodes_of

ROOT = Path(__file__).parents[2] / "distinput"
PUBLIC = (
    "distinput",
    "distinput.data",
    "distinput.data.experimental",
    "distinput.data.experimental.service",
    "distinput.distribute",
    "distinput.distribute.engines",
    "distinput.distribute.cluster_resolver",
    "distinput.distribute.coordinator",
    "distinput.distribute.experimental",
    "distinput.distribute.rpc",
    "distinput.distribute.variables",
    "distinput.errors",
    "distinput.io",
    "distinput.lineage",
    "distinput.reports",
    "distinput.testing",
)
ORDINARY = {"Call", "Cut", "Deal", "End", "Need", "Place", "Request", "Turn", "Wait", "Mode", "Scope", "Step"}
"""Names of classes that may also begin a sentence."""


def hidden(folder: Path) -> set[str]:
    """The classes below a folder that no public module has."""
    public = {name for module in PUBLIC for name in dir(import_module(module))}
    files = [nodes_of(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")]
    names = {node.name for nodes in files for node in nodes if isinstance(node, ast.ClassDef)}
    return {name for name in names if not name.startswith("_")} - public - ORDINARY


def raised(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """The words of every error that is raised or made, with their lines."""
    for node in nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


@pytest.mark.parametrize("package", ["cluster", "data", "distribute", "files", "plan"])
def test_messages_name_no_hidden_class(package: str) -> None:
    secret = hidden(ROOT / package)
    assert secret
    found = []
    for path in (ROOT / package).rglob("*.py"):
        for line, text in raised(nodes_of(path.read_text(encoding="utf-8"))):
            found += [f"{path.name}:{line}: {word}" for word in re.findall(r"\b[A-Z]\w+", text) if word in secret]
    assert found == []
