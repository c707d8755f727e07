# SPDX-License-Identifier: Apache-2.0
"""A value that a function holds and others may change, as a word: arrays, lists, dicts, sets, tables, variables and objects.

The word is the same in every process, and found in bounded time: of what is large, parts at equal distances are read. Objects
of which nothing is known but their class, such as open files, locks and random generators, count by that. So do models that are
trained while the pipeline runs: their weights say nothing of the elements that a state is between.
"""

import re
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from distinput.core.digest import Digest, evenly
from distinput.plan.changed_names import attributes_changed_by_methods

__all__ = ["class_data", "is_library", "value_word"]

_MOST_ITEMS = 10_000
"""Items of all containers and attributes of all objects in one value that are looked at."""

_MOST_BYTES = 64 << 20
"""Of something that is an array once it is converted."""

_DEEPEST = 20

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.generic, np.dtype)

_MODELS = ("named_parameters", "trainable_variables")
"""Methods of models that are trained."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def value_word(value: Any, function: Callable[[Any], str]) -> str:
    """The word of a value.

    Args:
      value: anything.
      function: gives the word of a function inside it.
    """
    outer: _Reader | None = getattr(_CURRENT, "reader", None)
    if outer is not None:  # a function that a value holds may hold that value
        return outer.word(value)
    _CURRENT.reader = reader = _Reader(function)
    try:
        return reader.word(value)
    finally:
        del _CURRENT.reader


_CURRENT = threading.local()


class _Reader:
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function
        self._within: list[int] = []  # the containers around what is read
        self._left = _MOST_ITEMS

    def word(self, value: Any) -> str:
        return Digest(6).add(self._text(value)).word

    def _text(self, value: Any) -> Any:
        """What identifies a value, made of strings and tuples."""
        if isinstance(value, _PLAIN):
            return type(value).__name__, _short(repr(value))
        if id(value) in self._within or len(self._within) >= _DEEPEST or self._left <= 0:
            return ("again", type(value).__qualname__)
        self._within.append(id(value))
        try:
            return self._inside(value)
        finally:
            self._within.pop()

    def _inside(self, value: Any) -> Any:
        kind = type(value).__qualname__
        if isinstance(value, np.ndarray):
            return kind, self._array(value)
        if isinstance(value, Mapping | types.MappingProxyType):
            items = self._some(list(value.items()))
            return kind, len(value), tuple([(self._text(key), self._text(item)) for key, item in items])
        if isinstance(value, list | tuple | deque):
            return kind, len(value), tuple([self._text(item) for item in self._some(value)])
        if isinstance(value, set | frozenset):
            words = sorted([repr(self._text(item)) for item in islice(value, _MOST_ITEMS)])
            return kind, len(value), tuple(words) if len(value) <= _MOST_ITEMS else ()
        if isinstance(value, bytearray | memoryview):
            return kind, Digest(6).array(np.frombuffer(value, np.uint8)).word
        if isinstance(value, type | types.ModuleType):
            return kind, value.__name__
        if isinstance(value, types.FunctionType | types.MethodType):
            return kind, self._function(value)
        shown = _immutable(value)
        if shown is not None:
            return kind, shown
        try:
            array = _as_array(value)
        except Exception:  # noqa: BLE001 - it is of another device, or closed
            return kind
        return (kind, array) if array is not None else (kind, self._attributes(value))

    def _some(self, items: Iterable[Any]) -> list[Any]:
        """Items of a container, as many as may still be looked at, at equal distances."""
        whole = list(items)
        found = [whole[at] for at in evenly(len(whole), max(2, self._left)).tolist()]
        self._left -= len(found)
        return found

    def _array(self, array: Any) -> Any:
        if array.dtype.hasobject:
            return str(array.dtype), array.shape, tuple([self._text(item) for item in self._some(array.reshape(-1))])
        return Digest(6).array(np.asarray(array)).word, self._text(getattr(array, "mask", None))

    def _attributes(self, value: Any) -> Any:
        """The attributes of an object of Python, with those of its class, except those that its methods change."""
        root = type(value).__module__.partition(".")[0]
        if any(hasattr(type(value), name) for name in _MODELS) or root == "distinput":
            return ()
        if root in sys.stdlib_module_names - {"__main__"} and type(value).__qualname__ not in (
            "Namespace",
            "SimpleNamespace",
        ):
            return ()
        found = {**dict(class_data(type(value))), **getattr(value, "__dict__", {})}
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    found.setdefault(name, getattr(value, name))
        changed = attributes_changed_by_methods(type(value))
        return tuple([(name, self._text(found[name])) for name in sorted(found) if name not in changed])


def class_data(kind: type) -> list[tuple[str, Any]]:
    """What a class of the user's has for all its objects, apart from methods, properties and the like."""
    found: dict[str, Any] = {}
    for each in kind.__mro__:
        if not is_library(each):
            for name, held in vars(each).items():
                if not name.startswith("__") and not callable(held) and not hasattr(type(held), "__get__"):
                    found.setdefault(name, held)
    return sorted(found.items())


def is_library(value: Any) -> bool:
    """Whether a module or class is of Python itself or of an installed package, which changes with its version alone."""
    module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    root = str(module).partition(".")[0]
    if root in sys.stdlib_module_names and root != "__main__":
        return True
    place = getattr(getattr(sys.modules.get(root), "__spec__", None), "origin", None) or ""
    return root == "distinput" or "site-packages" in place or "dist-packages" in place


def _as_array(value: Any) -> Any:
    """The word of a tensor, a table or a variable, of which NumPy or Arrow can see the numbers; None for anything else."""
    if hasattr(value, "schema") and hasattr(value, "to_pylist"):  # a table of Arrow
        rows = [value.slice(int(at), 64).to_pylist() for at in evenly(max(1, value.num_rows - 63), 64)]
        return Digest(6).add(str(value.schema), value.num_rows, rows).word
    columns = getattr(value, "columns", None)
    if (
        columns is not None and hasattr(value, "dtypes") and hasattr(value, "__getitem__")
    ):  # a table of pandas or Polars
        return tuple([(str(name), _as_array(value[name])) for name in columns])
    if not hasattr(type(value), "__array__"):
        return None
    size = getattr(value, "nbytes", 0)
    if isinstance(size, int) and size > _MOST_BYTES:
        value = value[: max(1, len(value) * _MOST_BYTES // size)]
    array = np.asarray(value)
    if array.dtype.hasobject:
        array = array.reshape(-1)[evenly(array.size, _MOST_ITEMS)]
        return Digest(6).add(array.size, [_short(repr(item)) for item in array.tolist()]).word
    return Digest(6).array(array).word


def _immutable(value: Any) -> str | None:
    """Values of Python's own types whose `repr` says all of them."""
    module = type(value).__module__
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r} {value.flags}"
    return str(value) if module in ("datetime", "decimal", "fractions", "uuid", "zoneinfo", "pathlib") else None


def _short(text: str) -> str:
    return _ADDRESS.sub("", text) if len(text) <= 1000 else Digest(6).add(text).word
