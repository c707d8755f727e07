# SPDX-License-Identifier: Apache-2.0
"""One word, one meaning: names of classes, and of variables that are read far from where they were bound.

The rule is in `docs/glossary.md`.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tests.house.imports import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

TWICE = MappingProxyType(
    {
        "Server": "tf.distribute.Server is a task of a cluster, tf.distribute.experimental.rpc.Server answers calls",
        "TFRecordWriter": "tf.data.experimental.TFRecordWriter writes a dataset, tf.io.TFRecordWriter single records",
        "TPUStrategy": "tf.compat.v1.distribute.experimental.TPUStrategy takes the arguments in another order",
    }
)
"""Names of classes that TensorFlow gives twice, and what each of the two is."""

FORMER = MappingProxyType(
    {
        "MultiWorkerMirroredStrategy": "distinput/distribute/experimental.py",  # as `tf.distribute.experimental` names it
        "TPUStrategy": "distinput/distribute/experimental.py",  # the same
        "Column": "distinput/inspect/description.py",
        "Range": "distinput/inspect/column_statistics.py",
    }
)
"""Former names of public classes, which another class has, and the files that keep them."""

LIFE = 10
"""How many lines after it was bound a variable may be read, if its name says what happened to it."""

PARTICIPLES = """
asked at began begun built called chosen claimed closed copied counted cut dealt decoded done drawn ended expected failed
filled formed found gave given gone got grouped held joined kept known lent listed looked lost made mapped measured merged
missing moved named needed opened owned packed parsed passed picked placed put raised ran reached read received removed
restored returned said saved seen sent shared shown skipped split started stated stored taken tested told touched tried
turned used waited wanted written
"""
"""Words that say what happened to a value, or that it is somewhere, and not what it is."""

LONG_LIVED = MappingProxyType(
    {
        "at": 17,
        "began": 1,
        "chosen": 3,
        "closed": 1,
        "cut": 3,
        "done": 10,
        "drawn": 1,
        "ended": 10,
        "expected": 2,
        "failed": 2,
        "found": 12,
        "gone": 1,
        "kept": 4,
        "known": 4,
        "lent": 2,
        "looked": 1,
        "lost": 2,
        "made": 6,
        "missing": 4,
        "named": 1,
        "packed": 1,
        "placed": 1,
        "put": 1,
        "read": 1,
        "removed": 1,
        "restored": 1,
        "returned": 1,
        "saved": 3,
        "seen": 2,
        "sent": 1,
        "shared": 2,
        "stated": 1,
        "taken": 1,
        "told": 6,
        "tried": 3,
        "used": 1,
        "wanted": 2,
        "written": 1,
    }
)
"""How many variables with such a name are read more than `LIFE` lines after they were bound. The numbers may only fall."""


@cache
def files() -> dict[str, list[ast.AST]]:
    """All nodes of each file, the module first."""
    return {
        path.relative_to(ROOT).as_posix(): nodes_of(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def aliases(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Names of types that a module binds by an assignment, each with what it stands for."""
    for statement in statements:
        match statement:
            case ast.If(body=body, orelse=orelse) | ast.Try(body=body, orelse=orelse):
                yield from aliases([*body, *orelse])
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
                if not name.isupper() and not (isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"):
                    yield name, ast.unparse(value)


def lives(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, int]:
    """How many lines after it is bound first each variable of a function is read for the last time.

    Functions inside it count as readers only: what they bind is theirs.
    """
    bound: dict[str, int] = {}
    last: dict[str, int] = {}

    def walk(node: ast.AST, inner: bool) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                last[node.id] = max(last.get(node.id, 0), node.lineno)
            elif not inner:
                bound[node.id] = min(bound.get(node.id, node.lineno), node.lineno)
        for child in ast.iter_child_nodes(node):
            walk(child, inner or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    for statement in function.body:
        walk(statement, False)
    return {name: last.get(name, 0) - line for name, line in bound.items()}


def test_a_class_name_has_one_meaning() -> None:
    """Counted are the classes inside functions, too: whoever searches for a name finds them."""
    places = defaultdict(list)
    for path, nodes in files().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in several.items() if name not in TWICE} == {}, "give each its own name"
    assert set(TWICE) <= set(several), "which are there once now?"


def test_no_alias_has_the_name_of_a_class() -> None:
    classes = {node.name for nodes in files().values() for node in nodes if isinstance(node, ast.ClassDef)}
    shared = [
        f"{path}: {name} = {value}"
        for path, (module, *_) in files().items()
        for name, value in aliases(module.body)  # type: ignore[attr-defined]  # a node like all others, for a type checker
        if name in classes and value != name and FORMER.get(name) != path
    ]
    assert shared == []


def test_a_variable_that_lives_long_is_named_by_what_it_is() -> None:
    words, variables = frozenset(PARTICIPLES.split()), defaultdict(list)
    for path, nodes in files().items():
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) > node.lineno + LIFE:
                for name, lines in lives(node).items():
                    if name in words and lines > LIFE:
                        variables[name].append(f"{path}:{node.lineno} {node.name}, {lines} lines")
    more = {name: places for name, places in variables.items() if len(places) > LONG_LIVED.get(name, 0)}
    assert more == {}, "what is it: columns, position, manifest?"


def test_the_words_are_looked_for() -> None:
    counts = Counter(lives(ast.parse("def f():\n    made = 1\n" + "    pass\n" * 12 + "    return made\n").body[0]))  # type: ignore[arg-type]
    assert counts == {"made": 13}
    inner = ast.parse("def f():\n    def g():\n        made = 1\n        return made\n    return g\n").body[0]
    assert "made" not in lives(inner)  # type: ignore[arg-type]
