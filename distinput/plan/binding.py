# SPDX-License-Identifier: Apache-2.0
"""Functions as they are when a step is made: variables that they read from outside are taken then, as TensorFlow takes them.

Python reads such a variable when the function runs, so all functions that a loop makes would read its last value. The function
that a step keeps is a copy with variables of its own, each with the object of that moment; a list that is changed later is seen
changed. All else stays as Python has it:

- a variable that a function assigns (`nonlocal`, `global`), such as a counter, is shared with the copy;
- a variable that has no value yet is read when the function runs, so that functions may be defined later and call each other;
- a function that an imported module knows by its name stays itself, and copies in that module find it by its name, so that it
  can be replaced for a test. Variables of an imported module change only if somebody means them to.

What cannot be copied, such as a function inside a list, is watched: if its variable has another value later, that is an error.
"""

import functools
import sys
import types
from collections.abc import Callable, Iterator
from operator import is_
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from distinput.errors import FailedPreconditionError
from distinput.names.lazy import dataclass, later
from distinput.plan.check import callable_argument, cells_of, normalized

if TYPE_CHECKING:
    from distinput.names import words
    from distinput.plan import code as codes
else:
    codes, words = later("distinput.plan.code"), later("distinput.names.words")  # for functions that read names

_DEEPEST = 50
"""Functions that hold functions that hold functions: below so many they stay as they are."""

_MOST_ITEMS = 100
"""Items of a list or dict, and attributes of an object, among which functions are looked for."""

_LOOK_AROUND = frozenset({"eval", "exec", "globals", "vars"})
"""Names that let a function read and assign any variable of its module."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

_ORIGINALS: "WeakKeyDictionary[types.FunctionType, ref[types.FunctionType]]" = WeakKeyDictionary()
"""Copies, with what they are copies of; a reference that were not weak would keep both for ever if they hold each other."""


@dataclass(frozen=True)
class _Watched:
    """A variable of a function that could not be copied."""

    function: str
    name: str
    value: Any
    read: Callable[[], Any]

    @property
    def changed(self) -> bool:
        try:
            now = self.read()
        except (KeyError, ValueError):  # it was deleted
            return True
        return now is not self.value and not (
            isinstance(now, _PLAIN) and type(now) is type(self.value) and now == self.value
        )


@dataclass(frozen=True)
class Captured:
    """What the functions of a step read from outside.

    Args:
      watched: variables that could not be taken over.
      changeable: whether there are objects that may change while the pipeline runs, so that it must be known before what they
        were (`Node.identity`).
    """

    watched: tuple[_Watched, ...] = ()
    changeable: bool = False

    def check(self, op: str) -> None:
        """Refuse to continue with a variable that has another value than when the step was made.

        Raises:
          FailedPreconditionError: there is one.
        """
        for each in self.watched:
            if each.changed:
                raise FailedPreconditionError(
                    f"{op}: {each.function} reads the variable {each.name}, which has another value now than when the step was "
                    f"made, when it was {words.shown(each.value)}; give the function that value as an "
                    f"argument, by functools.partial or {each.name}={each.name} among its parameters, or make the step again"
                )

    def __reduce__(self) -> Any:
        return Captured, ()  # another process has variables of its own


def take_functions(node: Any, op: str, *names: str) -> None:
    """Keep the functions among the arguments of a step as they are now; for its `__post_init__`.

    Args:
      node: the step, whose `captured` is None while this was not done.
      op: its name, for the message.
      names: those of the arguments.

    Raises:
      TypeError: one of them is not callable.
    """
    for name in names:
        callable_argument(op, name, getattr(node, name))
    if node.captured is not None:  # a copy of a step that has been made
        return
    binding = _Binding()
    for name in names:
        given = getattr(node, name)
        made = binding.of(given)
        if made is not given:
            normalized(node, name, made)
    normalized(node, "captured", Captured(tuple(binding.watched), binding.changeable))


def watch_methods(node: Any) -> None:
    """Watch the variables that the methods of the `source` of a step read from outside; for its `__post_init__`.

    Python reads such a variable when the method runs: of the objects of a class that a loop makes, each would have its last
    value.

    Args:
      node: the step, whose `captured` is None while this was not done. Its `source` stays the same object.
    """
    if node.captured is None:
        binding = _Binding()
        binding.of(node.source)
        normalized(node, "captured", Captured(tuple(binding.watched)))


def bound(function: Any) -> Any:
    """A function with the variables that it reads from outside as they are now; itself where there are none to be taken.

    >>> functions = []
    >>> for k in (1, 2):
    ...     functions.append(bound(lambda x: x * k))
    >>> [function(10) for function in functions]
    [10, 20]
    """
    return _Binding().of(function)


def by_name(value: Any) -> Any:
    """What holds functions that others know by their names in the place of copies of them that do the same.

    Pickle sends such a function by its name, and a copy not at all.

    Args:
      value: a function, or a partial of one; anything else is given back as it is.
    """
    if type(value) is functools.partial:
        return _of_parts(value, by_name)
    original = _original(value)
    if original is None or not _has_name(original):
        return value
    own, known = value.__globals__, original.__globals__
    same = all(_same(known.get(name), own[name]) for name in own if not name.startswith("__"))
    cells = zip(value.__closure__ or (), original.__closure__ or (), strict=True)
    return original if same and all(a is b or _same(b.cell_contents, a.cell_contents) for a, b in cells) else value


def _of_parts(value: "functools.partial[Any]", change: Callable[[Any], Any]) -> "functools.partial[Any]":
    """A partial of what its function and its arguments become; the same one where all of them stay."""
    function, parts = change(value.func), [change(part) for part in value.args]
    named = {name: change(part) for name, part in value.keywords.items()}
    if all(map(is_, (function, *parts, *named.values()), (value.func, *value.args, *value.keywords.values()))):
        return value
    made = functools.partial(function, *parts, **named)
    made.__dict__.update(value.__dict__)
    return made


def _original(function: Any) -> Any:
    """What a function is a copy of, if it is one; otherwise None."""
    found = _ORIGINALS.get(function) if isinstance(function, types.FunctionType) else None
    return None if found is None else found()


def _same(now: Any, taken: Any) -> bool:
    return now is taken or (now is not None and _original(taken) is now)


class _Variables(dict[str, Any]):
    """Variables of a module as they were; the others are read from the module."""

    __slots__ = ("module",)

    def __init__(self, taken: dict[str, Any], module: dict[str, Any]) -> None:
        super().__init__(taken)
        self.module = module

    def __missing__(self, name: str) -> Any:
        return self.module[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.module

    def get(self, name: str, default: Any = None) -> Any:
        """As of any dict."""
        return self[name] if name in self else default  # noqa: SIM401 - this is `get`

    def __reduce__(self) -> Any:
        return dict, ({**self.module, **self},)


class _Binding:
    """Copies of functions, and of what they hold, with their variables of now.

    Attributes:
      watched: variables of functions that could not be copied.
      changeable: whether functions hold objects that may change.
    """

    def __init__(self) -> None:
        self.watched: list[_Watched] = []
        self.changeable = False
        # What was seen, kept so that no address is used twice, and its copy.
        self._made: dict[int, tuple[Any, Any]] = {}
        self._depth = 0
        self._named: frozenset[str] = frozenset({"__wrapped__", "py_func"})  # by the function that is looked at

    def of(self, value: Any) -> Any:
        """A copy of a function, or of a tuple or partial that holds functions; anything else as it is."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        if _is_compiled(value):
            return self._compiled(value)
        if not isinstance(value, _HOLDERS):
            self._look_into(value)
            return value
        if self._depth >= _DEEPEST:
            return value
        self._depth += 1
        try:
            match value:
                case types.FunctionType():
                    return self._function(value)
                case types.MethodType():
                    made = self.of(value.__func__)
                    self._look_into(value)
                    return value if made is value.__func__ else types.MethodType(made, value.__self__)
                case functools.partial():
                    return self._keep(value, _of_parts(value, self.of)) if type(value) is functools.partial else value
                case _:
                    return self._tuple(value)
        finally:
            self._depth -= 1

    def _keep(self, value: Any, made: Any) -> Any:
        self._made[id(value)] = value, made
        return made

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if type(value) is not tuple or len(value) > _MOST_ITEMS:
            self._look_into(value)
            return value
        parts = [self.of(part) for part in value]
        return value if all(map(is_, parts, value)) else tuple(parts)

    def _compiled(self, value: Any) -> Any:
        """A function of numba, which takes its variables when it is compiled for its first arguments."""
        if value.signatures:
            return self._keep(value, value)
        made = self.of(value.py_func)
        if made is value.py_func:
            return self._keep(value, value)
        if type(value._cache).__name__ != "NullCache":  # it belongs to this very function
            self._look_into(value)
            return value
        return self._keep(value, sys.modules["numba"].jit(**value.targetoptions)(made))

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        if function in _ORIGINALS or _is_ours(function) or _is_settled(function):
            read = [function.__globals__.get(name) for name in function.__code__.co_names]
            self.changeable = self.changeable or not all(
                isinstance(value, (*_NOTHING_INSIDE, *_HOLDERS)) for value in read
            )
            made: types.FunctionType = self._keep(function, function)
            return made
        named, self._named = self._named, self._named | names_in(function.__code__)
        try:
            return self._copy(function)
        finally:
            self._named = named

    def _copy(self, function: types.FunctionType) -> types.FunctionType:
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if not isinstance(value, _HOLDERS):
                self._look_into(value)
        if not function.__closure__ and not _names_variables(function) and not _holds_functions(function):
            plain: types.FunctionType = self._keep(function, function)
            return plain
        cells = _Cells(function)
        taken = self._taken(function)
        if not taken and not cells.own and not _holds_functions(function):
            settled: types.FunctionType = self._keep(function, function)
            return settled
        names: Any = function.__globals__ if taken is None or not taken else dict(taken)
        if taken:
            dunder = {name: value for name, value in function.__globals__.items() if name.startswith("__")}
            known = taken.keys() | vars(sys.modules["builtins"]).keys()
            names = {**dunder, **taken}
            if not codes.CodeNames.of(function.__code__).read <= known:
                names = _Variables(names, function.__globals__)
        closure = tuple([types.CellType() if name in cells.own else cell for name, cell in cells.all.items()])
        clone = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
        self._keep(function, clone)  # before what it holds, which may hold it
        clone.__dict__ = function.__dict__  # shared: a function may count in an attribute of its own
        for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
            setattr(clone, name, getattr(function, name))
        clone.__defaults__ = None if function.__defaults__ is None else self._tuple(function.__defaults__)
        if function.__kwdefaults__ is not None:
            clone.__kwdefaults__ = {name: self.of(value) for name, value in function.__kwdefaults__.items()}
        for name, cell in zip(cells.all, closure, strict=True):
            if name in cells.own:
                cell.cell_contents = self.of(cells.own[name])
        for name, value in taken.items() if taken else ():
            names[name] = self.of(value)
        _ORIGINALS[clone] = ref(function)
        return clone

    def _taken(self, function: types.FunctionType) -> dict[str, Any]:
        """The variables of its module that a function takes over, watching those that it cannot take."""
        values = _plain_variables(function)
        if all(isinstance(value, types.ModuleType) for value in values.values()):
            return {}
        if codes.CodeNames.of(function.__code__).read & _LOOK_AROUND or _assigns_globals(function.__code__):
            self._watch(function, values)
            return {}
        return values

    def _watch(self, function: types.FunctionType, found: dict[str, Any]) -> None:
        for name, value in found.items():
            if not isinstance(value, types.ModuleType):
                read = functools.partial(function.__globals__.__getitem__, name)
                self.watched.append(_Watched(function.__qualname__, name, value, read))

    def _look_into(self, value: Any) -> None:
        """Watch the variables of functions inside what cannot be copied: a list, a dict, or an object with attributes."""
        if isinstance(value, _NOTHING_INSIDE):
            return
        self.changeable = True
        if id(value) in self._made or self._depth >= _DEEPEST:
            return
        self._keep(value, value)
        self._depth += 1
        for inside in _inside(value, self._named):
            if isinstance(inside, types.FunctionType):
                self._watch_function(inside)
            else:
                self._look_into(inside)
        self._depth -= 1

    def _watch_function(self, function: types.FunctionType) -> None:
        if function in _ORIGINALS or id(function) in self._made or _is_settled(function):
            return
        self._keep(function, function)
        for name, held in _Cells(function).own.items():
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
            read = functools.partial(getattr, cell, "cell_contents")
            self.watched.append(_Watched(function.__qualname__, name, held, read))
        self._watch(function, _plain_variables(function))


_HOLDERS = (types.FunctionType, types.MethodType, functools.partial, tuple)
_NOTHING_INSIDE = (*_PLAIN, types.ModuleType, types.BuiltinFunctionType, np.ufunc)


class _Cells:
    """The variables of the functions around a function.

    Attributes:
      all: every cell, by the name of its variable.
      own: the contents of those that its copy has for itself: they have a value, and no function assigns them.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.all = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.own: dict[str, Any] = {}
        if not self.all:
            return
        assigned = codes.CodeNames.of(function.__code__).stored
        around = list(_around(function))
        for name, value in cells_of(function).items():
            if name not in assigned and not any(_assigns(code, name) for code in around):
                self.own[name] = value


def _around(function: types.FunctionType) -> Iterator[types.CodeType]:
    """The codes of the functions that define a function, as far as they can be found; a sibling may assign a variable."""
    seen: set[int] = set()
    frame: Any = sys._getframe(1)
    roots = []
    definers = set(function.__qualname__.split("."))
    while frame is not None:
        if frame.f_code.co_name in definers:
            roots.append(frame.f_code)
        frame = frame.f_back
    outer = function.__globals__.get(function.__qualname__.split(".")[0])
    outermost = vars(outer).values() if isinstance(outer, type) else (outer,)
    roots += [each.__code__ for each in outermost if isinstance(each, types.FunctionType)]
    for code in roots:
        if id(code) not in seen:
            seen.add(id(code))
            yield from _path_to(function.__code__, code) or ()


def _path_to(wanted: types.CodeType, code: types.CodeType) -> list[types.CodeType] | None:
    """The functions from `code` down to the one that defines `wanted`; None if that is not inside."""
    for inner in code.co_consts:
        if inner is wanted:
            return [code]
        below = _path_to(wanted, inner) if isinstance(inner, types.CodeType) else None
        if below is not None:
            return [code, *below]
    return None


def _assigns(code: types.CodeType, name: str) -> bool:
    """Whether a function inside this one assigns a variable of this one, or of one around it."""
    return any(
        name in inner.co_freevars and name in codes.CodeNames.of(inner).stored
        for inner in codes.with_inner(code)
        if inner is not code
    )


def _is_assigned(name: str, known: dict[str, Any]) -> bool:
    """Whether a function of a module assigns a variable of it."""
    return any(
        name in inner.co_names and name in codes.CodeNames.of(code).stored
        for value in list(known.values())
        for code in _codes(value, known)
        for inner in codes.with_inner(code)
    )


def _codes(value: Any, known: dict[str, Any]) -> Iterator[types.CodeType]:
    """What a variable of a module lets run, if it is a function or a class of this module."""
    functions = (
        list(vars(value).values()) if isinstance(value, type) and value.__module__ == known.get("__name__") else [value]
    )
    for function in functions:
        if isinstance(function, types.FunctionType) and function.__globals__ is known:
            yield function.__code__


@functools.lru_cache(maxsize=1024)
def _assigns_globals(code: types.CodeType) -> bool:
    from dis import get_instructions

    return any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        for part in codes.with_inner(code)
        for step in get_instructions(part)
    )


def _is_compiled(value: Any) -> bool:
    """Whether it is a function that numba compiles."""
    return type(value).__module__ == "numba.core.registry" and hasattr(value, "py_func")


def _holds_functions(function: types.FunctionType) -> bool:
    """Whether one of its defaults may have variables to be taken."""
    held = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return any(isinstance(value, _HOLDERS) for value in held)


def _is_definition(name: str, known: dict[str, Any]) -> bool:
    """Whether a name of a module is that of one of its own functions or classes, which is looked up when it is called."""
    value = known[name]
    if not isinstance(value, types.FunctionType | type) or getattr(value, "__name__", None) != name:
        return False
    return value.__module__ == known.get("__name__") and _is_known(value) and not _is_unfinished(value.__module__)


def _plain_variables(function: types.FunctionType) -> dict[str, Any]:
    """The variables of its module that a function reads, without those that functions assign, and definitions."""
    names, known = codes.CodeNames.of(function.__code__), function.__globals__
    read = [name for name in sorted(names.read - names.stored) if name in known and not name.startswith("__")]
    return {name: known[name] for name in read if not _is_definition(name, known) and not _is_assigned(name, known)}


def _is_settled(function: types.FunctionType) -> bool:
    """Whether an imported module knows a function by its name, so that its variables change only if somebody means them to."""
    return _has_name(function) and not _is_unfinished(function.__module__)


def _is_ours(function: types.FunctionType) -> bool:
    """Whether it is a function of this library, whose variables nobody assigns."""
    name = function.__module__ or ""
    return name.startswith("distinput.") and function.__globals__ is vars(sys.modules.get(name, sys))


def _has_name(function: types.FunctionType) -> bool:
    """Whether pickle can send a function by its name."""
    module = sys.modules.get(function.__module__ or "")
    return module is not None and function.__globals__ is vars(module) and _is_known(function)


def _is_known(value: Any) -> bool:
    """Whether its module has a function or class under its name."""
    found: Any = sys.modules.get(value.__module__ or "")
    for part in value.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found is value or getattr(found, "__func__", None) is value


def _is_unfinished(module: str) -> bool:
    """Whether the code of a module goes on: a script, a notebook, or a module that is being imported."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return module in ("__main__", "__mp_main__") or spec is None or getattr(spec, "_initializing", False)


def _inside(value: Any, named: frozenset[str]) -> Iterator[Any]:
    """The functions inside something, and what may hold others: its items, the attributes that are named, its methods."""
    if isinstance(value, list | set | frozenset | tuple | dict):
        if len(value) > _MOST_ITEMS:
            return
        items = list(value.values() if isinstance(value, dict) else value)
    elif isinstance(value, types.MethodType):
        items = list(_inside(value.__self__, named | names_in(value.__func__.__code__)))
    else:
        call = getattr(type(value), "__call__", None)  # noqa: B004 - what it does, not whether it can be called
        named |= names_in(call.__code__) if isinstance(call, types.FunctionType) else frozenset()
        methods = _methods(value, named)
        named = named.union(*(names_in(method.__code__) for method in methods))
        held = [] if isinstance(value, type) else list(getattr(value, "__dict__", {}).items())
        items = [call, *methods, *(item for name, item in held if name in named), getattr(value, "__wrapped__", None)]
    if len(items) <= _MOST_ITEMS:
        for item in items:
            while isinstance(item, functools.partial):
                item = item.func
            if isinstance(item, _CAN_HOLD) or (isinstance(item, type) and _is_own(item)):
                yield item


_CAN_HOLD = (types.FunctionType, types.MethodType, list, set, frozenset, tuple, dict)


def _is_own(kind: type) -> bool:
    """Whether a class belongs to a running function, a script or a notebook, whose variables change."""
    return not _is_known(kind) or _is_unfinished(kind.__module__)


_MAKING = frozenset({"__new__", "__init__", "__post_init__"})


def _methods(value: Any, named: frozenset[str]) -> list[types.FunctionType]:
    """The methods of an object, or class, of one's own that are named, by others too, and those that Python calls."""
    kind = value if isinstance(value, type) else type(value)
    defined: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if _is_own(base):
            defined |= vars(base)
    found: dict[str, types.FunctionType] = {}
    names = {name for name in defined if name in named or name.startswith("__")} - (set() if kind is value else _MAKING)
    while names:
        held = {name: function_in(defined.pop(name)) for name in names if name in defined}
        new = {name: function for name, function in held.items() if isinstance(function, types.FunctionType)}
        names = set().union(*(names_in(function.__code__) for function in new.values()))
        found |= new
    return list(found.values())


def function_in(member: Any) -> Any:
    """The function inside what a class has: a property, a method of any kind, a cached property; otherwise that itself."""
    if hasattr(type(member), "__get__"):  # others, such as proxies, may raise anything when they are asked
        for name in ("__func__", "fget", "func"):
            if isinstance(inner := getattr(member, name, None), types.FunctionType):
                return inner
    return member


@functools.lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> frozenset[str]:
    """Every name of a variable of a module, and of an attribute, in a function and in those inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*map(names_in, inner))


def _names_variables(function: types.FunctionType) -> bool:
    """Whether a name in a function may be a variable of its module, and not only a module; found without reading its code."""
    known = function.__globals__
    found = [known[name] for name in names_in(function.__code__) if name in known and not name.startswith("__")]
    return not all(isinstance(value, types.ModuleType) for value in found)
