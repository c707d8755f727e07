# SPDX-License-Identifier: Apache-2.0
"""What a function does and what it reads from outside, as text that is the same in every process of one Python version.

Line numbers, the names of variables and of the function itself, docstrings and addresses do not count. Functions that it holds
are followed, and so are those of its own module that it calls by name; of functions in other modules only the name counts.
"""

import dataclasses
import enum
import functools
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from distinput.core.digest import Digest
from distinput.plan.changed_names import changed_names, with_inner
from distinput.plan.held_value import class_data, is_library, value_word

__all__ = ["PYTHON", "ArgumentReader", "CodeNames", "function_word"]

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The version by which code is compared: another one compiles the same function into other code."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_KINDS = 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200  # *args, **kwargs, generators and coroutines
_MOST_FUNCTIONS = 100
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def function_word(function: Any) -> str:
    """A hash of what a function does, and of what it reads from outside."""
    return _word(ArgumentReader(), function)


def _inner_word(function: Any) -> str:
    """The same of a function in a table of functions; of those in the tables that it reads, the code alone.

    A table may hold the very functions that read it.
    """
    return _word(ArgumentReader(_code_word), function)


def _code_word(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return Digest().add(getattr(function, "__qualname__", ""), "" if code is None else code_text(code)).word


def _word(reading: "ArgumentReader", function: Any) -> str:
    reading.argument(function)
    data = (reading.data,) if reading.data else ()
    return Digest().add(reading.names, reading.code, reading.held, *data).word


class ArgumentReader:
    """Reads the arguments of one step.

    Attributes:
      names: of its functions.
      code: what they do.
      held: what they read from outside and cannot be changed: closures, defaults, constants of their module, attributes of
        objects.
      data: words of what they read from outside and others may change, such as arrays, lists and objects.
    """

    def __init__(self, word: Callable[[Any], str] = _inner_word) -> None:
        self._word = word  # of a function in a container
        self.names: list[str] = []
        self.code: list[str] = []
        self.held: list[str] = []
        self.data: list[str] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no address is used twice
        self._uses: CodeNames | None = None  # what the function that is read does with names

    def argument(self, value: Any) -> str:
        """An argument as text, except for what functions do, which goes to `code` and `held`."""
        if isinstance(value, type):
            return value.__qualname__
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{list(value.shape)}#{_array(value)}"
        if isinstance(value, Mapping):
            return "{" + ", ".join([f"{self.argument(k)}: {self.argument(v)}" for k, v in value.items()]) + "}"
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return f"{type(value).__name__}({', '.join([self.argument(v) for v in value])})"
        if isinstance(value, set | frozenset):
            return f"set({', '.join(sorted([self.argument(v) for v in value]))})"
        if isinstance(value, str):
            return repr(value)
        if isinstance(value, np.generic):
            return str(value)
        if callable(value):
            self.names.append(getattr(value, "__qualname__", None) or type(value).__qualname__)
            self._function(value)
            return "function"
        return _shown(value)

    def _function(self, value: Any) -> None:
        """Anything that can be called."""
        if id(value) in self._seen or len(self._seen) >= _MOST_FUNCTIONS:
            self.code.append(f"again {self._seen.get(id(value))}")
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        match value:
            case types.FunctionType():
                self._python(value)
            case functools.partial():
                self._function(value.func)
                for name, held in [*enumerate(value.args), *sorted(value.keywords.items())]:
                    self._outside(str(name), held)
            case types.MethodType():
                self._function(value.__func__)
                self._attributes(value.__self__)
            case type() | types.BuiltinFunctionType() | np.ufunc():
                self.code.append(f"{getattr(value, '__module__', None)}.{value.__name__}")
            case _ if inner is not None:
                self._function(inner)
            case _:
                self.code.append(type(value).__qualname__)
                call = getattr(type(value), "__call__", None)  # noqa: B004 - what it does, not whether it can be called
                if isinstance(call, types.FunctionType):
                    self._function(call)
                self._attributes(value)

    def _python(self, function: types.FunctionType) -> None:
        if (function.__module__ or "").startswith("distinput."):
            self.code.append(function.__qualname__)  # another release may write it otherwise
        else:
            self.code.append(code_text(function.__code__))
        names = CodeNames.of(function.__code__)
        outer, self._uses = self._uses, names
        self._variables(function, names)
        self._uses = outer

    def _variables(self, function: types.FunctionType, names: "CodeNames") -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            if name not in names.stored:
                try:
                    value = cell.cell_contents
                except ValueError:  # not set yet
                    continue
                self._outside(name, value)
        for place, value in enumerate(function.__defaults__ or ()):
            self._outside(f"default {place}", value)
        for name, value in sorted((function.__kwdefaults__ or {}).items()):
            self._outside(f"default {name}", value)
        for name in sorted(names.read - names.stored):
            value = function.__globals__.get(name)
            ours = isinstance(value, types.FunctionType) and value.__module__ == function.__module__
            if ours or (not callable(value) and not name.startswith("__") and name in function.__globals__):
                self._outside(name, value)

    def _outside(self, name: str, value: Any) -> None:
        """Something that a function holds: its value if it is immutable, or the function that it is."""
        if isinstance(value, types.ModuleType | type):  # its name is in the code
            self._members(name, value)
            return
        node = getattr(value, "node", value)
        if hasattr(type(node), "steps"):  # a dataset
            self.held.append(f"{name}={[step.identity for step in node.steps]}")
        elif callable(value):
            self.code.append(name)
            self._function(value)
        else:
            if (text := _lasting(value)) is not None:
                self.held.append(f"{name}={text}")
            if text is None or dataclasses.is_dataclass(value):
                self._changeable(name, value)

    def _changeable(self, name: str, value: Any) -> None:
        """Something that others may change; not what the function changes itself, such as a list of its calls."""
        if self._uses is None or name not in self._uses.changed:
            self.data.append(f"{name}={value_word(value, self._word)}")
            self._methods(value)

    def _methods(self, value: Any) -> None:
        """What those methods of an object do that the function names."""
        for name in sorted(self._uses.attributes if self._uses is not None else ()):
            method = getattr(type(value), name, None)
            if isinstance(method, types.FunctionType) and not is_library(type(value)) and id(method) not in self._seen:
                self._seen[id(method)] = len(self._seen)
                self._kept.append(method)
                self.data.append(f"{name}: {self._word(method)}")

    def _members(self, name: str, value: Any) -> None:
        """The data of a class or module of the user's that the function names; functions count by their names."""
        if is_library(value) or self._uses is None or name in self._uses.changed:
            return
        for member in sorted(self._uses.attributes):
            held = vars(value).get(member)  # asked for it in another way, a module may import something
            if (
                held is not None
                and not callable(held)
                and not isinstance(held, types.ModuleType | property | classmethod)
            ):
                self.data.append(f"{name}.{member}={value_word(held, self._word)}")

    def _attributes(self, value: Any) -> None:
        """The attributes of an object and of its class, except those that its methods assign or change while they run."""
        if isinstance(value, type | types.ModuleType):
            return
        altered: set[str] = set()
        assigned: set[str] = set()
        for kind in type(value).__mro__:
            for name, method in vars(kind).items():
                if isinstance(method, types.FunctionType) and name not in ("__init__", "__post_init__", "__new__"):
                    assigned |= CodeNames.of(method.__code__).assigned
                    altered |= CodeNames.of(method.__code__).altered
        uses, self._uses = self._uses, None
        for name, held in sorted(getattr(value, "__dict__", {}).items()):
            if name not in assigned and (name not in altered or _lasting(held) is not None):
                self._outside(f".{name}", held)
        self._uses = uses
        for name, held in class_data(type(value)):
            if name not in assigned and name not in altered:
                self.data.append(f"{type(value).__qualname__}.{name}={value_word(held, self._word)}")


@dataclasses.dataclass(frozen=True)
class CodeNames:
    """Names that a function uses, including those of the functions inside it.

    Args:
      read: from its module.
      stored: variables of its module and of functions around it that it assigns.
      assigned: attributes that it assigns.
      attributes: attributes and methods that it names.
      code: its code.
    """

    read: frozenset[str]
    stored: frozenset[str]
    assigned: frozenset[str]
    attributes: frozenset[str]
    code: types.CodeType

    @functools.cached_property
    def changed(self) -> frozenset[str]:
        """Variables whose objects it changes."""
        return frozenset().union(*[changed_names(part)[0] for part in with_inner(self.code)])

    @functools.cached_property
    def altered(self) -> frozenset[str]:
        """Attributes that it assigns, or whose objects it changes."""
        return frozenset().union(*[changed_names(part)[1] for part in with_inner(self.code)])

    @staticmethod
    @functools.lru_cache(maxsize=1024)
    def of(code: types.CodeType) -> "CodeNames":
        found: dict[str, set[str]] = {"read": set(), "stored": set(), "assigned": set(), "attributes": set()}
        kinds = {
            "LOAD_GLOBAL": "read", "LOAD_NAME": "read", "LOAD_FROM_DICT_OR_GLOBALS": "read",
            "STORE_GLOBAL": "stored", "DELETE_GLOBAL": "stored", "STORE_DEREF": "stored", "DELETE_DEREF": "stored",
            "STORE_ATTR": "assigned", "DELETE_ATTR": "assigned", "LOAD_ATTR": "attributes", "LOAD_METHOD": "attributes",
        }  # fmt: skip
        for part in with_inner(code):
            for step in _instructions(part):
                if step.opname in kinds:
                    found[kinds[step.opname]].add(str(step.argval))
        return CodeNames(**{name: frozenset(names) for name, names in found.items()}, code=code)


def _instructions(code: types.CodeType) -> Iterable[Any]:
    from dis import get_instructions  # for states, which few first batches come with

    return get_instructions(code)


def code_text(code: types.CodeType) -> str:
    """What compiled code does: its instructions with the names and constants that they use, not the indices of these."""
    from dis import hasconst, hasjabs, hasjrel, hasname

    jumps, by_value = {*hasjabs, *hasjrel}, {*hasname}
    steps: list[Any] = []
    for step in _instructions(code):
        if step.opcode in hasconst:
            steps.append((step.opname, _constant(step.argval)))
        elif step.opcode in jumps or step.opcode in by_value:
            steps.append((step.opname, str(step.argval)))
        else:
            steps.append((step.opname, step.arg))
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KINDS
    return repr((counts, steps, getattr(code, "co_exceptiontable", b"")))


def _constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return code_text(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"set({', '.join(sorted(map(_constant, value)))})"
    return f"{type(value).__name__} {value!r}"


def _lasting(value: Any) -> str | None:
    """An immutable value as text; None for one that its holder may change."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, np.generic | np.dtype):
        return f"{type(value).__name__} {value}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, os.PathLike):
        return f"path {os.fspath(value)!r}"
    if isinstance(value, tuple | frozenset):
        parts = [_lasting(part) for part in value]
        if None in parts:
            return None
        shown = parts if isinstance(value, tuple) else sorted(map(str, parts))
        return f"{type(value).__name__} {shown}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return _shown(value) if type(value).__repr__ is not object.__repr__ else type(value).__qualname__
    return None


def _shown(value: Any) -> str:
    """`str(value)` without the parts that differ between processes."""
    kind: Any = type(value)
    if kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__:
        return type(value).__qualname__
    return _ADDRESS.sub("", str(value))


def _array(value: Any) -> str:
    if value.dtype == object:
        return Digest().add(_ADDRESS.sub("", str(value.tolist()))).word
    return Digest().array(value).word
