# SPDX-License-Identifier: Apache-2.0
"""Calls a function once the program has imported a package that this library does not import itself."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["when_imported"]


def when_imported(package: str, run: Callable[[], object]) -> None:
    """Call a function when a package has been imported: now, if it has been already.

    Args:
      package: the name of a top-level package.
      run: called once, without arguments; what it raises is raised by the import.

    >>> calls = []
    >>> when_imported("sys", lambda: calls.append("there"))
    >>> calls
    ['there']
    """
    if package in sys.modules:
        run()
        return
    sys.meta_path.insert(0, _Watcher(package, run))


class _Watcher(MetaPathFinder):
    """Waits for the import of one package, and takes no part in that of others."""

    def __init__(self, package: str, run: Callable[[], object]) -> None:
        self._package, self._run = package, run

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, except for the package: its spec, with a loader that calls the function at last."""
        if fullname != self._package or self not in sys.meta_path:
            return None
        place = sys.meta_path.index(self)
        sys.meta_path.remove(self)  # the others are asked
        spec = find_spec(fullname)
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if execute is None:  # not installed: it may be later
            sys.meta_path.insert(place, self)
            return spec

        def exec_module(module: ModuleType) -> None:
            # The loader itself is unchanged, so resources of the package are found as usual.
            vars(loader).pop("exec_module", None)
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._run()

        loader: Any = spec.loader  # type: ignore[union-attr]
        loader.exec_module = exec_module
        sys.meta_path.insert(place, self)  # the spec may have been asked for without an import
        return spec
