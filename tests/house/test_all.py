# SPDX-License-Identifier: Apache-2.0
"""What a module does not offer begins with an underscore; a list `__all__` is for modules that hand on names of others."""

import ast
from pathlib import Path

import pytest

from tests.house.imports import tree_of

PACKAGE = Path(__file__).parents[2] / "distinput"


def lacking(source: str) -> list[str]:
    """The functions, classes and constants of a module that are named as public ones, and are not in its `__all__`.

    Types and type variables (`Array = np.ndarray[...]`) may be left out, and so may names of a module without a list.
    """
    listed: set[str] | None = None
    public: list[str] = []
    for node in tree_of(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            public.append(node.name)
            continue
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names == ["__all__"] and isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            listed = set(ast.literal_eval(node.value))
        public += [name for name in names if name.isupper() and len(name) > 1]
    return [] if listed is None else [name for name in public if not name.startswith("_") and name not in listed]


ROOMS = (
    "arrow",
    "cli",
    "cluster",
    "columns",
    "data",
    "decoders",
    "distribute",
    "files",
    "formats",
    "functions",
    "inspect",
    "kernels",
    "lineage",
    "names",
    "ops",
    "plan",
    "reports",
    "rewrite",
    "run",
    "sharding",
    "streaming",
    "testing",
    "tf",
    "tpu",
    "train",
    "values",
    "writers",
)
"""Rooms without lists that repeat what underscores say."""

READ_BY_USERS = ("__init__.py", "partitioners.py")
"""Modules that users import, whose lists the reference is written from."""


def repeats(source: str) -> bool:
    """Whether a module has a list of names, all of which it defines itself."""
    body = tree_of(source).body
    own = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {name.id for node in body if _sets(node) for name in ast.walk(node) if isinstance(name, ast.Name)}
    lists = [node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    return any(isinstance(names, ast.List) and set(ast.literal_eval(names)) <= own for names in lists)


def _sets(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign)


@pytest.mark.parametrize("room", ROOMS)
def test_no_list_repeats_what_underscores_say(room: str) -> None:
    modules = [path for path in (PACKAGE / room).rglob("*.py") if path.name not in READ_BY_USERS]
    assert [path.name for path in modules if repeats(path.read_text(encoding="utf-8"))] == []


def test_a_list_that_repeats_is_found() -> None:
    assert repeats("A = 1\ndef f(): ...\n__all__ = ['A', 'f']\n")
    assert not repeats("from b import C\n__all__ = ['C']\n")
    assert not repeats("A = 1\n")


def test_what_a_module_offers_is_in_its_list() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): lacking(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


def test_what_is_lacking_is_found() -> None:
    source = (
        "__all__ = ['a']\nA = 1\nMOST: int = 2\n_B = 3\nIds = list[int]\ndef a(): ...\ndef b(): ...\nclass C: ...\n"
    )
    assert lacking(source) == ["MOST", "b", "C"]
    assert lacking("def a(): ...") == []
