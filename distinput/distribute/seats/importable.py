# SPDX-License-Identifier: Apache-2.0
"""Which modules of this process can be imported at the seats, where the same functions would be found in them.

A function of a module travels as a name where that will do, and else as it is, with what it uses. What was installed and what
belongs to Python is the same everywhere, or else the job cannot run; a user's own files need not even be there.
"""

import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

__all__ = ["is_installed", "same_modules", "sources"]


def is_installed(module: ModuleType) -> bool:
    """Whether a module comes with Python, with an installed package, or with distinput itself.

    >>> import json
    >>> is_installed(json)
    True
    """
    name = module.__name__
    if name.partition(".")[0] in sys.builtin_module_names or name.partition(".")[0] in ("distinput", "builtins"):
        return True
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    file = getattr(module, "__file__", None)
    return bool(file) and str(file).startswith(_installed_places())


def _installed_places() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[kind] for kind in ("purelib", "platlib", "stdlib", "platstdlib")})


def sources(names: Iterable[str]) -> dict[str, str]:
    """The digest of the source of each module of this process; empty where it has none."""
    return {name: _digest(getattr(sys.modules.get(name), "__file__", None)) for name in names}


def same_modules(known: dict[str, str]) -> list[str]:
    """Those modules that can be imported here, with the same source.

    Args:
      known: name -> digest of the source.
    """
    return [name for name, digest in known.items() if digest and _digest(_origin(name)) == digest]


def _origin(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # noqa: BLE001 - importing the package of a module may raise anything; then it cannot be imported
        return None
    return None if spec is None else spec.origin


def _digest(file: str | None) -> str:
    if not file:
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""
