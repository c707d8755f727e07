# SPDX-License-Identifier: Apache-2.0
"""`Transplant`: a copy of a function that reads nothing from outside but what cannot change during a block.

Numbers, text, NumPy, and functions of Python that pass the same examination may be read. Arrays may be read too: they are
handed over read-only, and compared before every block with how they were. Anything else, such as a list or an object with
state, may give another value at the next call, so the function is called element by element.
"""

import functools
import math
import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from distinput.functions.vectorized.constant_array import table_of
from distinput.functions.vectorized.numpy_names import NAMES, NumPy
from distinput.functions.vectorized.pure_code import check_code, names_read
from distinput.functions.vectorized.refusal import Refused
from distinput.functions.vectorized.rules import Rules

__all__ = ["Transplant"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_TYPES = (bool, int, float)
_BUILTINS = frozenset(
    (abs, all, any, dict, enumerate, len, list, max, min, range, reversed, slice, sum, tuple, zip, bool, int, float)
)
_MATH = frozenset(vars(math))
_MOST_HELD = 1 << 20
"""Bytes of arrays from outside that are compared before every block."""


class Transplant:
    """A copy of a function for stand-ins, and what tells whether it still is one.

    Args:
      function: the user's.
      rules: for the stand-ins.

    Raises:
      Refused: it may have effects outside, or read something that changes.
    """

    def __init__(self, function: Callable[..., Any], rules: Rules) -> None:
        self._rules, self._numpy = rules, NumPy(rules)
        self._made: dict[int, Any] = {}
        self._bindings: list[tuple[Callable[[], Any], Any, str]] = []
        self._arrays: list[tuple[Any, Any, str]] = []
        self._held = 0
        self.call: Callable[..., Any] = self._function(function)

    def check(self) -> None:
        """Refuse to go on if something that the function reads has changed.

        Raises:
          Refused: it has.
        """
        for read, value, name in self._bindings:
            if read() is not value:
                raise Refused(f"`{name}`, which it reads, has changed")
        for array, copy, name in self._arrays:
            if array.shape != copy.shape or array.tobytes() != copy.tobytes():
                raise Refused(f"the array `{name}`, which it reads, has changed")

    def _function(self, function: Any) -> Any:
        if isinstance(function, functools.partial):
            given = [self._value(f"argument {i}", value) for i, value in enumerate(function.args)]
            named = {name: self._value(name, value) for name, value in function.keywords.items()}
            return functools.partial(self._function(function.func), *given, **named)
        if isinstance(function, types.FunctionType):
            return self._python(function)
        if isinstance(function, np.ufunc) or _is_numpy(function) or _is_builtin(function):
            return function
        raise Refused(
            f"{getattr(function, '__qualname__', type(function).__qualname__)} is no function of Python or NumPy"
        )

    def _python(self, function: types.FunctionType) -> Any:
        if id(function) in self._made:
            return self._made[id(function)]
        code = function.__code__
        check_code(code, NAMES | _MATH)
        names: dict[str, Any] = {"__builtins__": {"__import__": __import__}}  # which methods of arrays need
        cells = tuple([types.CellType() for _ in code.co_freevars])
        clone = types.FunctionType(code, names, function.__name__, None, cells or None)
        self._made[id(function)] = clone
        self._watch(lambda: function.__code__, code, function.__name__)
        self._watch(lambda: function.__defaults__, function.__defaults__, function.__name__)
        self._watch(lambda: function.__kwdefaults__, function.__kwdefaults__, function.__name__)
        clone.__defaults__ = self._values(function.__defaults__)
        if function.__kwdefaults__:
            clone.__kwdefaults__ = {name: self._value(name, v) for name, v in function.__kwdefaults__.items()}
        for name in sorted(names_read(code)):
            names[name] = self._global(function.__globals__, name)
        for name, cell, new in zip(code.co_freevars, function.__closure__ or (), cells, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                raise Refused(f"`{name}`, which it reads, has no value yet") from None
            self._watch(functools.partial(getattr, cell, "cell_contents", None), value, name)
            new.cell_contents = self._value(name, value)
        return clone

    def _global(self, space: dict[str, Any], name: str) -> Any:
        if name in space:
            self._watch(functools.partial(space.get, name), space[name], name)
            return self._value(name, space[name])
        builtins = space.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        value = builtins.get(name)
        self._watch(functools.partial(space.get, name), None, name)
        if value is None or not _is_builtin(value):
            raise Refused(f"it uses {name}, which has no rule")
        return value

    def _watch(self, read: Callable[[], Any], value: Any, name: str) -> None:
        self._bindings.append((read, value, name))

    def _values(self, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple([self._value("a default", value) for value in values])

    def _value(self, name: str, value: Any) -> Any:
        """What stands for a value from outside."""
        if isinstance(value, types.ModuleType):
            if value is np:
                return self._numpy
            if value is math:
                return _Math()
            raise Refused(f"it uses the module {value.__name__}, which has no rule")
        if isinstance(value, type):
            if value in _TYPES or issubclass(value, np.generic):
                return value
            raise Refused(f"it uses the class {value.__qualname__}")
        if type(value) is np.ndarray:
            return self._array(name, value)
        if type(value) is tuple:
            return tuple([self._value(name, part) for part in value])
        if type(value) in _PLAIN or isinstance(value, np.generic | np.dtype):
            return value
        if callable(value) and not hasattr(value, "node"):
            return self._function(value)
        raise Refused(f"it reads `{name}`, a {type(value).__name__}, which may change from call to call")

    def _array(self, name: str, array: Any) -> Any:
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise Refused(f"it reads `{name}`, an array of {array.dtype}")
        table = table_of(array, self._rules)
        base = array.base
        fixed = not array.flags.writeable and (base is None or (type(base) is np.ndarray and not base.flags.writeable))
        if not fixed:
            self._held += array.nbytes
            if self._held > _MOST_HELD:
                raise Refused(
                    f"it reads `{name}`, and arrays of more than {_MOST_HELD >> 20} MiB may change from call to call unless "
                    f"they are read-only (`{name}.flags.writeable = False`)"
                )
            self._arrays.append((array, array.copy(), name))
        table.flags.writeable = False
        return table


class _Math:
    """Stands for the module `math`: its functions make a Python number, which no stand-in is."""

    e, inf, nan, pi, tau = math.e, math.inf, math.nan, math.pi, math.tau

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"it uses math.{name}, which has no rule")


def _is_numpy(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return name in NAMES and getattr(np, name, None) is function and name not in ("array", "asarray")


def _is_builtin(value: Any) -> bool:
    try:
        return value in _BUILTINS
    except TypeError:  # it has no hash
        return False
