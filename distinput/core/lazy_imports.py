# SPDX-License-Identifier: Apache-2.0
"""Packages whose files are loaded when they are first named, so that a program loads what it uses and no more."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

__all__ = ["files_of"]


def files_of(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package (PEP 562): `package.file` is that file, loaded when it is first named.

    Args:
      package: its `__name__`.
    """

    def load(file: str) -> ModuleType:
        name = f"{package}.{file}"
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise AttributeError(f"module {package!r} has no attribute {file!r}") from None

    return load
