# SPDX-License-Identifier: Apache-2.0
"""Reads the imports of a source file without running it."""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


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


@cache
def _statements(source: str) -> list[tuple[ast.Import | ast.ImportFrom | ast.Call, str | None]]:
    """What imports in a file, and the innermost function around it; several tests look at all files of the package."""
    found: list[tuple[ast.Import | ast.ImportFrom | ast.Call, str | None]] = []

    def walk(node: ast.AST, function: str | None) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, function))
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__", "library") and node.args:
                found.append((node, function))
        for child in ast.iter_child_nodes(node):
            walk(child, function)

    walk(ast.parse(source), None)
    return found
