# SPDX-License-Identifier: Apache-2.0
"""Modules that moved: the old path stays importable for one release, with a warning that names the new one."""

import warnings
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["moved_spec", "new_path"]

_MOVED = {"names.registry": "names.lazy"}
"""Each old path, and where what stood there is now."""


def new_path(old: str) -> str | None:
    """Where a module is now; None if it did not move.

    >>> new_path("distinput.names.registry"), new_path("distinput.names.lazy")
    ('distinput.names.lazy', None)
    """
    house, _, path = old.partition(".")
    return f"distinput.{_MOVED[path]}" if house == "distinput" and path in _MOVED else None


def moved_spec(name: str) -> ModuleSpec | None:
    """What the import system needs of a moved module; None for others. The old name stands for the very same module."""
    new = new_path(name)
    return None if new is None else ModuleSpec(name, _Alias(new))


class _Alias(Loader):
    """Loads the module of the new path in the place of the old one."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._own_spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module; for one whose place is a package a stand-in, which has its names."""
        warnings.warn(
            f"{spec.name} moved: import {self._new} instead; the old path goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        made = import_module(self._new)
        if hasattr(made, "__path__"):
            stand_in = ModuleType(spec.name)
            stand_in.__getattr__ = partial(getattr, made)  # type: ignore[method-assign]
            return stand_in
        self._own_spec = made.__spec__
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, which the import system has replaced."""
        if self._own_spec is not None:
            module.__spec__ = self._own_spec
