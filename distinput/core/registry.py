# SPDX-License-Identifier: Apache-2.0
"""Tables that are open to others: a name, and the function or class that it stands for, imported when it is first used."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from distinput.core.extensions import failures, load_extensions

__all__ = ["Registry"]

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
        module, _, attribute = target.partition(":")
        try:
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            error.add_note(f"{self._kind} {name!r} is registered as {target!r}")
            raise
        return cast(F, found)

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
