# SPDX-License-Identifier: Apache-2.0
"""Reads source files without running them: once for all tests of a process, and their imports."""

import ast
import gc
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@cache
def nodes_of(source: str) -> list[ast.AST]:
    """All nodes of a file as `ast.walk` gives them, the module first.

    They stay as long as the process, so garbage is not collected meanwhile: each collection would look at all that are there.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return list(ast.walk(ast.parse(source)))
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def tree_of(source: str) -> ast.Module:
    """The syntax tree of a file, which nobody may change."""
    tree = nodes_of(source)[0]
    assert isinstance(tree, ast.Module)
    return tree


@dataclass(frozen=True)
class Import:
    """One imported module, and where the statement stands."""

    name: str  # dotted, absolute
    line: int
    function: str | None  # the innermost function around it, None at the top of the file


def module_name(path: Path, root: Path) -> str:
    """`distinput.values.nest` for `root/distinput/values/nest.py`; a package's name for its `__init__.py`."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lazy_names(source: str) -> range:
    """The lines of the block in which a module tells `distinput.names.lazy` its names: none is loaded until it is asked for."""
    before, found, block = source.partition("\nif TYPE_CHECKING:\n")
    names, ends, _ = block.partition("\nelse:\n    __getattr__, __dir__, ")
    first = before.count("\n") + 3
    return range(first, first + names.count("\n") + 1) if found and ends else range(0)


def imports(source: str, module: str, is_package: bool, known: Collection[str]) -> Iterator[Import]:
    """Every import of a file, also inside functions and in calls of `import_module` or `library` with a literal name.

    Args:
      source: the text of the file.
      module: its dotted name.
      is_package: whether it is an `__init__.py`.
      known: names of all modules of the project, to tell `from package import module` from `from module import name`.
    """

    for node, function in _statements(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, function)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                package = module.split(".") if is_package else module.split(".")[:-1]
                kept = package[: len(package) - node.level + 1]
                origin = ".".join([*kept, *([origin] if origin else [])])
            for alias in node.names:
                child = f"{origin}.{alias.name}"
                yield Import(child if child in known else origin, node.lineno, function)
        else:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield Import(argument.value, node.lineno, function)


_CALLED = ("import_module", "__import__", "library")


@cache
def _statements(source: str) -> list[tuple[ast.Import | ast.ImportFrom | ast.Call, str | None]]:
    """What imports in a file, and the innermost function around it; several tests look at all files of the package."""
    found: list[tuple[ast.Import | ast.ImportFrom | ast.Call, str | None]] = []
    calls = any(name in source for name in _CALLED)

    def walk(node: ast.AST, function: str | None) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, function))
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in _CALLED and node.args:
                found.append((node, function))
        for child in ast.iter_child_nodes(node):
            if calls or isinstance(
                child, ast.stmt | ast.excepthandler | ast.match_case
            ):  # no expression imports otherwise
                walk(child, function)

    walk(tree_of(source), None)
    return found
