# SPDX-License-Identifier: Apache-2.0
"""No circle of imports: those inside functions and those for type checkers alone count as all others do."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.house.imports import imports, module_name

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"


def import_graph(package: Path, root: Path) -> dict[str, set[str]]:
    """For each module of the package, the modules of the package that its file imports, wherever the statement stands."""
    files = {module_name(file, root): file for file in sorted(package.rglob("*.py"))}
    return {
        module: {
            item.name
            for item in imports(file.read_text(encoding="utf-8"), module, file.name == "__init__.py", files)
            if item.name in files and item.name != module
        }
        for module, file in files.items()
    }


def circles(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The strongly connected components of more than one module, each sorted.

    Source: Tarjan's algorithm (1972), without recursion.
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []
    for root in graph:
        if root in number:
            continue
        path = [(root, iter(sorted(graph[root])))]
        number[root] = lowest[root] = len(number)
        open_ones.append(root)
        while path:
            module, rest = path[-1]
            for other in rest:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    open_ones.append(other)
                    path.append((other, iter(sorted(graph[other]))))
                    break
                if other in open_ones:
                    lowest[module] = min(lowest[module], number[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[module])
                if lowest[module] == number[module]:
                    at = open_ones.index(module)
                    members, open_ones[at:] = open_ones[at:], []
                    if len(members) > 1:
                        yield sorted(members)


def test_there_is_no_circle_of_imports() -> None:
    found = list(circles(import_graph(PACKAGE, ROOT)))
    told = "\n".join("  " + ", ".join(circle) for circle in found)
    assert not found, f"these files import one another; hand down what they share as a value:\n{told}"


@pytest.mark.parametrize(
    "graph, expected",
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, [["a", "b", "c"]]),
        ({"a": {"b", "c"}, "b": {"a"}, "c": {"d"}, "d": {"c"}}, [["c", "d"], ["a", "b"]]),
        ({"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"a"}}, [["a", "b", "c", "d"]]),
    ],
)
def test_circles_are_found(graph: dict[str, set[str]], expected: Sequence[list[str]]) -> None:
    assert list(circles(graph)) == expected


def test_imports_for_type_checkers_alone_and_those_inside_functions_count(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.b import B\n")
    (package / "b.py").write_text("def f():\n    from house import a\n")
    assert import_graph(package, tmp_path) == {"house": set(), "house.a": {"house.b"}, "house.b": {"house.a"}}
