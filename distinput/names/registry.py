# SPDX-License-Identifier: Apache-2.0
"""Names that stand for what is loaded when it is named: tables that are open to others, packages, extensions."""

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from distinput.names.lazy import placed

# ----------------------------------------------------------------------------
# Packages that add names to distinput: they are imported when a name is first asked for that is not known.
#
# A package names its module, or a function of it, as an entry point of the group `distinput.extensions`. Nothing is looked
# for at `import distinput`, nor as long as all names are known.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# Tables that are open to others: a name, and the function or class that it stands for, imported when it is first used.
# ----------------------------------------------------------------------------


F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class Registry(Generic[F]):
    """Names of one kind, in alphabetical order.

    Args:
      kind: what the names are names of, for messages.
      known: each name, and where its function is, as `package.module:attribute`.

    >>> numbers: Registry[Callable[[str], Any]] = Registry("number", {"fraction": "fractions:Fraction"})
    >>> numbers.register("decimal", "decimal:Decimal")
    >>> numbers.find("decimal")("0.5"), list(numbers)
    (Decimal('0.5'), ['decimal', 'fraction'])
    """

    def __init__(self, kind: str, known: Mapping[str, str]) -> None:
        self._kind = kind
        self._known: dict[str, str | F] = dict(known)

    def register(self, name: str, target: str | F) -> None:
        """Add a name.

        Registering the same function again is no error, so that a cell of a notebook may be run twice.

        Args:
          name: lower-case letters, digits and underscores.
          target: the function or class, or `package.module:attribute`, which is imported when it is first needed.

        Raises:
          ValueError: the name or the place is malformed, or the name is taken.
          TypeError: the target can be neither called nor imported.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{self._kind}: a name must be lower-case letters, digits and underscores, and begin with a letter, "
                f"got {name!r}"
            )
        if isinstance(target, str):
            if not _PLACE.fullmatch(target):
                raise ValueError(f"{self._kind} {name!r}: a place must be 'package.module:attribute', got {target!r}")
        elif not callable(target):
            raise TypeError(
                f"{self._kind} {name!r}: needs a function, a class, or 'package.module:attribute', "
                f"got {type(target).__name__}"
            )
        taken = self._known.get(name)
        if taken is not None and _place(taken) != _place(target):
            raise ValueError(
                f"{self._kind} {name!r}: the name is taken by {_place(taken)}, so {_place(target)} needs another one"
            )
        self._known[name] = target

    def find(self, name: str) -> F:
        """The function of a name, which the extension of an installed package may add now.

        Raises:
          ValueError: an unknown name.
          ImportError: the module cannot be imported.
          AttributeError: the module does not have it.
        """
        if name not in self._known:
            load_extensions()
        if name not in self._known:
            raise ValueError(f"unknown {self._kind} {name!r}; known are {', '.join(self)}{failures()}")
        target = self._known[name]
        if not isinstance(target, str):
            return target
        try:
            return cast(F, placed(target))
        except (ImportError, AttributeError) as error:
            error.add_note(f"{self._kind} {name!r} is registered as {target!r}")
            raise

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._known))

    def __len__(self) -> int:
        return len(self._known)


def _place(target: str | Callable[..., Any]) -> str:
    """Where a function is, in the spelling of `register`."""
    if isinstance(target, str):
        return target
    return f"{target.__module__}:{getattr(target, '__qualname__', type(target).__qualname__)}"


# ----------------------------------------------------------------------------
# Calls a function once the program has imported a package that this library does not import itself.
# ----------------------------------------------------------------------------


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


class _Watcher:
    """Waits for the import of one package, and takes no part in that of others.

    It is a `MetaPathFinder` by what it does; the module that has that class loads more than a first batch does.
    """

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
