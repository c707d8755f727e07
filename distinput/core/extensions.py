# SPDX-License-Identifier: Apache-2.0
"""Packages that add names to distinput: they are imported when a name is first asked for that is not known.

A package names its module, or a function of it, as an entry point of the group `distinput.extensions`. Nothing is looked for at
`import distinput`, nor as long as all names are known.
"""

import threading

__all__ = ["GROUP", "failures", "load_extensions"]

GROUP = "distinput.extensions"
"""The group of entry points."""

_lock = threading.RLock()
_looked = False
_failures: list[str] = []


def load_extensions() -> bool:
    """Load the extensions of all installed packages, once in a process; True if this call did, and there are any.

    An entry point is a module, which registers its names when it is imported, or a function without arguments, which is called.
    One that fails is left out: `failures` tells of it.

    >>> load_extensions() and load_extensions()
    False
    """
    global _looked
    if _looked:
        return False
    from importlib.metadata import entry_points  # costs as much as the rest of a first batch

    with _lock:
        if _looked:
            return False
        _looked = True
        points = entry_points(group=GROUP)
        for point in points:
            try:
                made = point.load()
                if callable(made):
                    made()
            except Exception as error:  # noqa: BLE001 - in a package of somebody else anything may be wrong
                package = "unknown" if point.dist is None else point.dist.name
                _failures.append(f"extension {point.name!r} of the package {package!r} could not be loaded: {error!r}")
        return len(points) > 0


def failures() -> str:
    """The end of a message about an unknown name: which extensions failed; empty if none did."""
    return "".join([f"; {failure}" for failure in _failures])
