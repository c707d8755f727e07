# SPDX-License-Identifier: Apache-2.0
"""What a function does and what it reads from outside, as text that is the same in every process."""

import dataclasses
import enum
import functools
import os
import re
import sys
import threading
import types
from collections import UserList, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from distinput.columns.state import Digest, evenly
from distinput.names.lazy import dataclass
from distinput.plan.check import cells_of
from distinput.values.leaves import array_of

# ----------------------------------------------------------------------------
# Which of the things that a function reads by name it also changes: lists that it appends to, dicts in which it counts.
#
# What a function changes itself says nothing of what it does: it is where it writes. Found in the code, without running it:
# by the methods that it calls, and by assignments to items and attributes.
# ----------------------------------------------------------------------------


_METHODS = frozenset({
    "acquire", "add", "append", "appendleft", "assign", "assign_add", "assign_sub", "clear", "discard", "emit", "extend",
    "extendleft", "fill", "inc", "increment", "insert", "intersection_update", "move_to_end", "pop", "popitem", "popleft",
    "push", "put", "put_nowait", "remove", "reset", "resize", "reverse", "rotate", "set", "setdefault", "setflags", "sort",
    "subtract", "symmetric_difference_update", "update", "write", "writelines",
})  # fmt: skip
"""Methods that change their object."""

_PUSH_NAME = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_NOTHING = ("RESUME", "CACHE", "NOP", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL", "KW_NAMES")
_ONLY_POP = ("POP_", "STORE_", "JUMP_", "RETURN", "FOR_ITER")

_Item = tuple[str | None, str | None]
"""Something on the stack: the variable that it came from, and the attribute of it."""

_UNKNOWN: _Item = (None, None)

MAKERS = frozenset({"__init__", "__new__", "__post_init__"})
"""Methods that make objects."""


@functools.lru_cache(maxsize=1024)
def changed_names(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The variables from outside whose objects a function changes, and the attributes that it assigns or changes.

    >>> def count(x):
    ...     calls.append(x)
    ...     seen.by_key[x] += 1
    >>> [sorted(names) for names in changed_names(count.__code__)]
    [['calls', 'seen'], ['by_key']]
    """
    stack = _Stack()
    for step in _instructions(code):
        stack.take(step)
    return frozenset(stack.names), frozenset(stack.attributes)


def with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of all functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_inner(constant)


def attributes_changed_by_methods(kind: type) -> set[str]:
    """Attributes that the methods of a class assign, or whose objects they change, after its objects were made."""
    return set().union(*[uses.altered for uses in _used_by_methods(kind)])


def _used_by_methods(kind: type) -> "list[CodeNames]":
    """What the methods of a class do with names, except those that make its objects."""
    return [
        CodeNames.of(method.__code__)
        for each in kind.__mro__
        for name, method in vars(each).items()
        if isinstance(method, types.FunctionType) and name not in MAKERS
    ]


class _Stack:
    """What lies on the stack while code runs from its beginning to its end, as far as that can be told without running it.

    Attributes:
      names: variables whose objects were changed so far.
      attributes: attributes whose objects were.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self._items: list[_Item] = []

    def take(self, step: Any) -> None:
        """Do what an instruction does."""
        name, effect, items = step.opname, _effect(step), self._items
        if name in _PUSH_NAME:
            items += [(str(step.argval), None)] * max(1, effect)
        elif name == "STORE_FAST_LOAD_FAST":  # of Python 3.13: what was on top goes, and a local variable comes
            items[-1:] = [_UNKNOWN]
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            if step.argval in _METHODS:
                self._changed(self._item(1))
            item: _Item = (self._item(1)[0], str(step.argval))
            del items[-1:]
            items += [item] * max(1, effect + 1)
        elif name in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            self._changed(self._item(2))
            del items[effect:]
        elif name in ("STORE_ATTR", "DELETE_ATTR"):
            self._changed((self._item(1)[0], str(step.argval)))
            del items[effect:]
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
            item = self._item(2)
            del items[-2:]
            items.append(item)
        else:
            self._move(name, step.arg or 0, effect)

    def _move(self, name: str, arg: int, effect: int) -> None:
        items = self._items
        if name == "COPY":
            items.append(self._item(arg))
        elif name == "SWAP" and 0 < arg <= len(items):
            items[-1], items[-arg] = items[-arg], items[-1]
        elif effect > 0:
            items += [_UNKNOWN] * effect
        elif name not in _NOTHING:
            if effect:
                del items[effect:]
            if items and not name.startswith(_ONLY_POP):
                items[-1] = _UNKNOWN

    def _item(self, depth: int) -> _Item:
        return self._items[-depth] if 0 < depth <= len(self._items) else _UNKNOWN

    def _changed(self, found: _Item) -> None:
        name, attribute = found
        self.names |= set() if name is None else {name}
        self.attributes |= set() if attribute is None else {attribute}


def _effect(step: Any) -> int:
    """How many items more an instruction leaves, where it does not jump."""
    from dis import stack_effect

    try:
        return int(stack_effect(step.opcode, step.arg, jump=False))
    except ValueError:  # an instruction without an argument
        return int(stack_effect(step.opcode, None, jump=False))


# ----------------------------------------------------------------------------
# A value that a function holds and others may change, as a word: arrays, lists, dicts, sets, tables, variables and objects.
#
# The word is the same in every process, and found in bounded time: of what is large, parts at equal distances are read.
# Objects of which nothing is known but their class, such as open files, locks and random generators, count by that. So do
# models that are trained while the pipeline runs: their weights say nothing of the elements that a state is between.
# ----------------------------------------------------------------------------


_MOST_ITEMS = 10_000
"""Items of all containers and attributes of all objects in one value that are looked at."""

_MOST_BYTES = 64 << 20
"""Of something that is an array once it is converted."""

_DEEPEST = 20

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.generic, np.dtype)

_MODELS = ("named_parameters", "trainable_variables")
"""Methods of models that are trained."""

_DATA_OF_PYTHON = ("Namespace", "SimpleNamespace", "Template", "UserString")
"""Classes of Python's library whose objects are what their attributes say."""

_ADDRESS = r" at 0x[0-9a-fA-F]+"


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
        if isinstance(value, list | tuple | deque | UserList):
            return kind, len(value), tuple([self._text(item) for item in self._some(value)])
        if isinstance(value, set | frozenset):
            words = sorted([repr(self._text(item)) for item in islice(value, _MOST_ITEMS)])
            return kind, len(value), tuple(words) if len(value) <= _MOST_ITEMS else ()
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
        if root in sys.stdlib_module_names - {"__main__"} and type(value).__qualname__ not in _DATA_OF_PYTHON:
            return ()
        found = {**dict(class_data(type(value))), **getattr(value, "__dict__", {})}
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    found.setdefault(name, getattr(value, name))
        changed = attributes_changed_by_methods(type(value))
        return tuple([(name, self._text(found[name])) for name in sorted(found) if name not in changed])


def weights_word(value: Any) -> str | None:
    """The word of the numbers that a model computes with; None for what is no model of PyTorch or Keras."""
    if not any(hasattr(type(value), name) for name in _MODELS):
        return None
    if hasattr(value, "named_parameters"):
        held = [*value.named_parameters(), *value.named_buffers()]
    else:
        held = list(enumerate(value.weights))
    return Digest(6).add([(str(name), value_word(numbers, repr)) for name, numbers in held]).word


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
    module = str(value.__name__ if isinstance(value, types.ModuleType) else value.__module__)
    root = module.partition(".")[0]
    if root == "distinput" or (root in sys.stdlib_module_names and root != "__main__"):
        return True
    # A root that several packages share has no file.
    specs = [getattr(sys.modules.get(name), "__spec__", None) for name in (root, module)]
    places = [getattr(spec, "origin", None) or "" for spec in specs]
    return any("site-packages" in place or "dist-packages" in place for place in places)


def _as_array(value: Any) -> Any:
    """The word of a tensor, a table or a variable, of which NumPy or Arrow can see the numbers; None for anything else."""
    if hasattr(value, "schema") and hasattr(value, "to_pylist"):  # a table of Arrow
        rows = [value.slice(int(at), 64).to_pylist() for at in evenly(max(1, value.num_rows - 63), 64)]
        return Digest(6).add(str(value.schema), value.num_rows, rows).word
    columns = getattr(value, "columns", None)
    # A table of pandas or Polars.
    if columns is not None and hasattr(value, "dtypes") and hasattr(value, "__getitem__"):
        return tuple([(str(name), _as_array(value[name])) for name in columns])
    if not hasattr(type(value), "__array__"):
        try:
            return Digest(6).array(np.asarray(memoryview(value))).word
        except TypeError:  # no buffer
            return None
    size = getattr(value, "nbytes", 0)
    if isinstance(size, int) and size > _MOST_BYTES:
        value = value[: max(1, len(value) * _MOST_BYTES // size)]
    array = array_of(value)
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
    return re.sub(_ADDRESS, "", text) if len(text) <= 1000 else Digest(6).add(text).word


# ----------------------------------------------------------------------------
# What a function does and what it reads from outside, as text that is the same in every process of one Python version.
#
# Line numbers, the names of variables and of the function itself, docstrings and addresses do not count. Functions that it
# holds are followed, and so are those of its own module that it calls by name; of functions in other modules only the name
# counts.
# ----------------------------------------------------------------------------


PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The version by which code is compared: another one compiles the same function into other code."""

_PLAIN_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_KINDS = 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200  # *args, **kwargs, generators and coroutines
_MOST_FUNCTIONS = 100
_DEEPEST_MEMBER = 4


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
        self._holders: list[Mapping[str, Any]] = []  # what it names, which have data and functions
        self._members_at: list[tuple[int, str]] = []  # where the data of these stands, and its name

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
        outer = self._uses, self._holders, self._members_at
        self._uses, self._holders, self._members_at = names, [], []
        self._variables(function, names)
        if self._members_at:
            altered = _altered(
                [(names.read, function.__globals__), *[(names.attributes, held) for held in self._holders]]
            )
            for place, member in reversed(self._members_at):
                if member in altered:
                    del self.data[place]
        self._uses, self._holders, self._members_at = outer

    def _variables(self, function: types.FunctionType, names: "CodeNames") -> None:
        for name, value in cells_of(function).items():
            if name not in names.stored:
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
            elif isinstance(value, types.FunctionType | type):
                self._members(name, value)

    def _outside(self, name: str, value: Any) -> None:
        """Something that a function holds: its value if it is immutable, or the function that it is."""
        if isinstance(value, types.ModuleType | type):  # its name is in the code
            self._members(name, value)
            return
        value = getattr(value, "argument_of_states", value)
        node = getattr(value, "node", value)
        if hasattr(type(node), "steps"):  # a dataset
            self.held.append(f"{name}={[step.identity for step in node.steps]}")
        elif callable(value):
            self.code.append(name)
            if isinstance(value, types.FunctionType):
                self._members(name, value)
            self._function(value)
        else:
            if (text := lasting(value)) is not None:
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
        """The data of a class, module or function of the user's that the function names, and of those in it.

        What functions change that it names as well, such as tables that they fill when asked, is left out later.
        """
        if is_library(value) or self._uses is None or name.partition(".")[0] in self._uses.changed:
            return
        self._holders.append(vars(value))
        for member in sorted(self._uses.attributes):
            held = vars(value).get(member)  # asked for it in another way, a module may import something
            if isinstance(held, types.ModuleType | types.FunctionType | type):  # such count by their names
                if name.count(".") < _DEEPEST_MEMBER:
                    self._members(f"{name}.{member}", held)
            elif held is not None and not callable(held) and not isinstance(held, property | classmethod):
                self._members_at.append((len(self.data), member))
                self.data.append(f"{name}.{member}={value_word(held, self._word)}")

    def _attributes(self, value: Any) -> None:
        """The attributes of an object and of its class, except those that its methods assign or change while they run.

        Nor is a dataset told that calls the object: its steps would be told by themselves.
        """
        if isinstance(value, type | types.ModuleType):
            return
        altered = attributes_changed_by_methods(type(value))
        assigned = set().union(*[uses.assigned for uses in _used_by_methods(type(value))])
        uses, self._uses = self._uses, None
        for name, held in sorted(getattr(value, "__dict__", {}).items()):
            if name not in assigned and (name not in altered or lasting(held) is not None) and not _calls(held, value):
                self._outside(f".{name}", held)
        self._uses = uses
        for name, held in class_data(type(value)):
            if name not in altered:
                self.data.append(f"{type(value).__qualname__}.{name}={value_word(held, self._word)}")


def _calls(held: Any, owner: Any) -> bool:
    """Whether this is a dataset with a step that calls an object or a method of it."""
    node = getattr(held, "node", held)
    if not hasattr(type(node), "steps"):
        return False
    return any(_called(value) is owner for step in node.steps for value in step.arguments().values())


def _called(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__self__", function)


@dataclass(frozen=True)
class CodeNames:
    """Names that a function uses, including those of the functions inside it.

    Args:
      read: from its module.
      stored: variables of its module and of functions around it that it assigns.
      assigned: attributes that it assigns.
      attributes: attributes and methods that it names.
      imported: modules that it imports itself.
      code: its code.
    """

    read: frozenset[str]
    stored: frozenset[str]
    assigned: frozenset[str]
    attributes: frozenset[str]
    imported: frozenset[str]
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
        kinds = {
            "LOAD_GLOBAL": "read", "LOAD_NAME": "read", "LOAD_FROM_DICT_OR_GLOBALS": "read",
            "STORE_GLOBAL": "stored", "DELETE_GLOBAL": "stored", "STORE_DEREF": "stored", "DELETE_DEREF": "stored",
            "STORE_ATTR": "assigned", "DELETE_ATTR": "assigned", "LOAD_ATTR": "attributes", "LOAD_METHOD": "attributes",
            "IMPORT_NAME": "imported",
        }  # fmt: skip
        found: dict[str, set[str]] = {name: set() for name in kinds.values()}
        for part in with_inner(code):
            for step in _instructions(part):
                if step.opname in kinds:
                    found[kinds[step.opname]].add(str(step.argval))
        return CodeNames(**{name: frozenset(names) for name, names in found.items()}, code=code)


def _altered(named: list[tuple[Collection[str], Mapping[str, Any]]]) -> set[str]:
    """Attributes that functions change which have one of some names somewhere, or those that they name."""
    altered: set[str] = set()
    seen: dict[int, types.FunctionType] = {}
    while named and len(seen) < _MOST_FUNCTIONS:
        names, held = named.pop(0)
        for value in [held.get(name) for name in sorted(names)]:
            function = getattr(value, "__func__", value)
            if isinstance(function, types.FunctionType) and id(function) not in seen and not is_library(function):
                seen[id(function)] = function
                uses = CodeNames.of(function.__code__)
                altered |= uses.altered
                named += [(uses.read, function.__globals__), (uses.attributes, held)]
    return altered


def _instructions(code: types.CodeType) -> Iterable[Any]:
    from dis import get_instructions  # for states, which few first batches come with

    return get_instructions(code)


@functools.lru_cache(maxsize=1024)
def code_text(code: types.CodeType) -> str:
    """What compiled code does: its instructions with the names and constants that they use, not the indices of these."""
    from dis import hasconst, hasjabs, hasjrel, hasname

    by_value = {*hasjabs, *hasjrel, *hasname}
    steps: list[Any] = []
    for step in _instructions(code):
        if step.opcode in hasconst:
            steps.append((step.opname, _constant(step.argval)))
        elif step.opcode in by_value:
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


def lasting(value: Any) -> str | None:
    """An immutable value as text; None for one that its holder may change."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, np.generic | np.dtype):
        return f"{type(value).__name__} {value}"
    if isinstance(value, _PLAIN_CONSTANTS):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, os.PathLike):
        return f"path {os.fspath(value)!r}"
    if isinstance(value, tuple | frozenset):
        parts = [lasting(part) for part in value]
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
    return re.sub(_ADDRESS, "", str(value))


def _array(value: Any) -> str:
    if value.dtype == object:
        return Digest().add(re.sub(_ADDRESS, "", str(value.tolist()))).word
    return Digest().array(value).word
