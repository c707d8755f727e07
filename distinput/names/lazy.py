# SPDX-License-Identifier: Apache-2.0
"""What is loaded when it is first named: the names of packages, each written once, and modules that few programs need."""

import sys
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any


def lazy(
    module: str, own: Collection[str] = (), besides: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__, __dir__, __all__` of a module (PEP 562) whose names stand in its block for type checkers, and nowhere else.

    The block is read as text when the module is imported, and a name of it is imported when it is first asked for::

        if TYPE_CHECKING:
            from distinput.data.dataset import Dataset as Dataset
        else:
            __getattr__, __dir__, __all__ = lazy(__name__)

    A name that is not in the block may be a module of the package. For any other, the error says which name was probably meant,
    or what to write in the place of a name of TensorFlow.

    Args:
      module: its `__name__`.
      own: public names that are defined in the module itself.
      besides: names of the block that are no part of `__all__`.
    """
    here: Any = sys.modules[module]
    places = _places(here.__loader__.get_data(here.__file__).decode())
    public = sorted({*places, *own}.difference(besides))

    def load(name: str) -> Any:
        if name in places:
            origin, original = places[name]
            if origin == module:
                value = import_module(f"{module}.{name}")
            else:
                value = getattr(__import__(origin, fromlist=[original]), original)
            setattr(here, name, value)
            return value
        if not name.startswith("_"):
            try:
                return import_module(f"{module}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{module}.{name}":
                    raise
        # Without `obj=`: Python would add names that look alike to what is said here.
        raise AttributeError(placed("distinput.names.absent:absent")(module, name, public), name=name)

    return load, lambda: sorted({*vars(here), *places}), public


def _places(source: str) -> dict[str, tuple[str, str]]:
    """Each public name of the block for type checkers: the module that it is imported from, and its name there.

    Public is what is imported `as` what it is called, as type checkers have it, and what is set to something imported.
    """
    block = source.partition("\nif TYPE_CHECKING:\n")[2].partition("\nelse:\n")[0]
    imported, public = {}, {}
    # A line for each statement.
    for line in block.replace("\n        ", " ").replace("\n    )", "").replace("(", "").splitlines():
        origin, _, names = line.strip().removeprefix("from ").partition(" import ")
        for each in names.split(","):
            original, known, name = each.strip().partition(" as ")
            imported[original] = origin, original
            if known:
                public[name] = origin, original
        name, is_set, original = line.strip().partition(" = ")
        if is_set:
            public[name] = imported[original]
    return public


class later:  # noqa: N801 - it is called as a function is, and stands for a module
    """A module that is loaded when one of its names is asked for; type checkers are told of the module itself.

    It is for what few programs need, where loading it at once would make all others start later::

        if TYPE_CHECKING:
            from distinput.data import export
        else:
            export = later("distinput.data.export")

    >>> later("fractions").Fraction(1, 2)
    Fraction(1, 2)
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # asked for by Python itself
            raise AttributeError(f"no attribute {name!r}", name=name, obj=self)
        return getattr(import_module(self._module), name)

    def __repr__(self) -> str:
        return f"<{self._module}, loaded when it is used>"


class library(later):  # noqa: N801 - the same
    """A module of another package that is loaded when it is first used; each of its names is looked up once.

    >>> fractions = library("fractions")
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """

    def __getattr__(self, name: str) -> Any:
        return self.__dict__.setdefault(name, super().__getattr__(name))

    def __reduce__(self) -> tuple[Any, ...]:
        return library, (self._module,)  # without the names


def placed(place: str) -> Any:
    """What is at `package.module:attribute`.

    >>> placed("fractions:Fraction.limit_denominator").__name__
    'limit_denominator'
    """
    module, _, path = place.partition(":")
    value: Any = import_module(module)
    for attribute in path.split("."):
        value = getattr(value, attribute)
    return value


class Moved:
    """Finds modules of this package by their old paths, after all others: see `distinput.moved`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG004 - what the import system asks
        """The module, if it moved."""
        return placed("distinput.moved:moved_spec")(name) if name.startswith("distinput.") else None
