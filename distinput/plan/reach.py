# SPDX-License-Identifier: Apache-2.0
"""All code of the user's that functions can reach, and what it reads, as a word: what a cache must not survive the change of.

A state is compared by the functions of its steps and those of their module that they call. A cache lives longer: a method that
a method calls, a class, a function of another module, and a tokenizer make elements as well. From the arguments of steps they
are followed: through variables, defaults, containers, attributes of objects, classes with their bases, and modules; variables
of the environment that they name count too. Code of Python's own and of installed packages is not followed, since it changes
with its version alone.
"""

import functools
import importlib.util
import os
import pickle
import random
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

import numpy as np

from distinput.columns.state import Digest
from distinput.names.lazy import dataclass
from distinput.plan.binding import function_in
from distinput.plan.check import cells_of
from distinput.plan.code import (
    MAKERS,
    CodeNames,
    attributes_changed_by_methods,
    class_data,
    code_text,
    is_library,
    lasting,
    value_word,
    weights_word,
    with_inner,
)
from distinput.plan.node import Node, walk

_MOST_CODES = 2_000
"""Functions that are read."""

_MOST_ITEMS = 10_000
"""Items of one container, or attributes of one object, that are followed; a table of functions may be long."""

_MOST_MODELS = 100
"""Items of one container in which models are looked for."""

_NOTHING_INSIDE = (bool, int, float, complex, str, bytes, type(None))

_RUNNING = frozenset({"numpy", "torch", "jax", "jaxlib", "tensorflow", "keras"})
"""Packages whose objects change while a job runs, such as generators and models, or are read as arrays."""

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
"""What each process that is sent one, or makes one of the same seed, draws the same numbers from."""


_Name = tuple[str, str]
"""A module or function, and a variable in it."""


@dataclass
class ReachedCode:
    """What the arguments of steps reach."""

    _codes: set[str] = field(default_factory=set)
    _by_name: dict[str, set[str]] = field(default_factory=dict)  # the codes of functions that have a name to import
    _code_alone: bool = False  # whether nobody asks for data
    _data: set[tuple[_Name, str]] = field(default_factory=set)
    _changed: set[_Name] = field(default_factory=set)
    _pickles: set[str] = field(default_factory=set)
    _generators: list[tuple[str | None, Any]] = field(default_factory=list)  # with the name of the attribute
    _named: set[str] = field(default_factory=set)  # attributes that functions name, apart from those that make objects
    _left: deque[tuple[Any, frozenset[str]]] = field(default_factory=deque)
    _seen: dict[tuple[int, frozenset[str]], Any] = field(default_factory=dict)  # kept, so that no address is used twice

    @staticmethod
    def of(arguments: Sequence[Any], *, code_alone: bool = False) -> "ReachedCode":
        """Follow the arguments of steps; with `code_alone`, what they read is not looked at, which may be large."""
        given = deque([(argument, _NO_NAMES) for argument in arguments])
        reached = ReachedCode(_left=given, _code_alone=code_alone)
        for argument in arguments:
            reached._weigh("argument", argument)
        while reached._left and len(reached._codes) < _MOST_CODES:
            value, names = reached._left.popleft()
            names = _for_members(value, names)
            if (id(value), names) not in reached._seen:
                reached._seen[id(value), names] = value
                reached._visit(value, names)
        return reached

    @staticmethod
    def by(node: Node) -> "ReachedCode":
        """Follow the arguments of all steps of a pipeline."""
        return ReachedCode.of([argument for step in walk(node) for argument in step.arguments().values()])

    @property
    def by_name(self) -> dict[str, list[str]]:
        """The words of the code of each function that has a name to import, so that another process has its own."""
        return {name: sorted(words) for name, words in self._by_name.items()}

    @property
    def code_word(self) -> str:
        """A word of the code, and of the data that it reads and does not change; empty if there is nothing."""
        data = sorted([(name, word) for name, word in self._data if name not in self._changed])
        return Digest(6).add(sorted(self._codes), data).word if self._codes or data else ""

    @property
    def word(self) -> str:
        """A word of that and of the objects of packages, such as tokenizers, by their pickles; empty if there is nothing."""
        return Digest(6).add(self.code_word, sorted(self._pickles)).word if self.code_word or self._pickles else ""

    @property
    def generators(self) -> list[Any]:
        """The random generators of NumPy and Python that they read; not those with which objects were made alone."""
        return [each for name, each in self._generators if name is None or name in self._named]

    def _follow(self, values: Iterable[Any], names: frozenset[str] = frozenset()) -> None:
        self._left.extend([(value, names) for value in values if not isinstance(value, _NOTHING_INSIDE)])

    def _visit(self, value: Any, names: frozenset[str]) -> None:
        match value:
            case types.FunctionType():
                if not is_library(value):
                    self._function(value)
                    for own in sorted(names):
                        self._holds(_place(value), own, vars(value)[own], _NO_NAMES)
                self._follow([inner] if (inner := getattr(value, "__wrapped__", None)) is not None else [])
            case types.MethodType():
                self._follow([value.__func__, value.__self__])
            case types.BuiltinFunctionType():  # a method of an object written in C, such as `table.get`
                self._holds(value.__name__, "self", value.__self__, _NO_NAMES)
            case functools.partial():
                self._follow([value.func])
                place = str(getattr(value.func, "__qualname__", ""))
                for name, held in (dict(enumerate(value.args)) | value.keywords).items():
                    self._reads(place, f"partial {name}", held, _NO_NAMES)
            case types.ModuleType():
                if not is_library(value):
                    for name in sorted(names & vars(value).keys()):  # asked otherwise, a module may import something
                        self._holds(value.__name__, name, vars(value)[name], names)
            case type():
                if not is_library(value):
                    self._class(value)
            case Mapping() | list() | tuple() | set() | frozenset() | deque():
                if len(value) <= _MOST_ITEMS:
                    self._follow(value.values() if isinstance(value, Mapping) else value)
            case _:
                self._object(value)

    def _class(self, kind: type) -> None:
        members = [function_in(member) for member in vars(kind).values()]
        self._follow([*[each for each in members if isinstance(each, types.FunctionType | type)], *kind.__bases__])
        place = _place(kind)
        for name, held in class_data(kind):
            self._holds(place, name, held, _NO_NAMES)
        of_class = [member.__func__ for member in vars(kind).values() if isinstance(member, classmethod)]
        uses = [CodeNames.of(function.__code__) for function in of_class if isinstance(function, types.FunctionType)]
        changed = attributes_changed_by_methods(kind).union(*[names.altered for names in uses])
        self._changed |= {(place, name) for name in changed}

    def _object(self, value: Any) -> None:
        node: Any = value.node if hasattr(type(value), "node") else None
        if hasattr(type(node), "steps"):  # a dataset
            self._follow([argument for step in node.steps for argument in step.arguments().values()])
            return
        if isinstance(value, _GENERATORS) and not isinstance(value, random.SystemRandom):
            self._generators.append((None, value))
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        if isinstance(inner, types.FunctionType | types.MethodType):
            self._follow([inner])
        kind, held = type(value), getattr(value, "__dict__", None)
        if not is_library(kind):
            self._follow([kind])
            place = _place(kind)
            for name, attribute in list((held or {}).items())[:_MOST_ITEMS]:
                if not self._code_alone or not isinstance(attribute, _GENERATORS):
                    self._holds(place, name, attribute, _NO_NAMES)
                elif not isinstance(attribute, random.SystemRandom) and _is_sent_whole(kind):
                    self._generators.append((name, attribute))
        elif not self._code_alone and (callable(value) or not held) and (pickled := _pickled(value)) is not None:
            self._pickles.add(f"{kind.__qualname__} {pickled}")

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        own = Digest(8).add(function.__qualname__, code_text(code)).word
        self._codes.add(own)
        if function.__module__ in sys.modules.keys() - {"__main__"} and "<" not in function.__qualname__:
            self._by_name.setdefault(f"{function.__module__}.{function.__qualname__}", set()).add(own)
        uses = CodeNames.of(code)
        names = uses.attributes | frozenset(_texts(code))
        self._named |= names if function.__name__ not in MAKERS else _NO_NAMES
        place, module = _place(function), str(function.__module__)
        around = cells_of(function)
        for name, value in around.items():
            self._reads(place, name, value, names)
        defaults = {str(number): default for number, default in enumerate(function.__defaults__ or ())}
        for name, default in (defaults | (function.__kwdefaults__ or {})).items():
            self._reads(place, name, default, names)
        for name in sorted(uses.read):
            if name in function.__globals__ and not name.startswith("__"):
                self._reads(module, name, function.__globals__[name], names)
        self._changed |= {(owner, name) for owner in (place, module) for name in uses.changed | uses.stored}
        for changed in [around.get(name, function.__globals__.get(name)) for name in uses.changed]:
            if isinstance(changed, types.FunctionType | types.ModuleType | type):
                self._changed |= {(_place(changed), name) for name in uses.altered}
        if uses.attributes & {"environ", "getenv"}:
            self._data |= {((place, f"${name}"), os.environ[name]) for name in names & os.environ.keys()}
        for name in sorted(uses.imported):
            if (word := _word_of_file(name)) is not None:
                self._data.add(((module, f"import {name}"), word))

    def _reads(self, owner: str, name: str, value: Any, names: frozenset[str]) -> None:
        """Something that a function names itself."""
        self._holds(owner, name, value, names)
        self._weigh(name, value)

    def _weigh(self, name: str, value: Any, depth: int = 3) -> None:
        """Take in the weights of models that make elements; others, which objects hold besides, may be trained meanwhile."""
        if self._code_alone:
            return
        if (word := weights_word(value)) is not None:
            self._data.add((("weights", name), word))
        elif depth and isinstance(value, Mapping | list | tuple) and len(value) <= _MOST_MODELS:
            for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
                self._weigh(f"{name}.{key}", inner, depth - 1)
        elif depth and callable(value) and not isinstance(value, types.FunctionType | type):
            owner, method = getattr(value, "__self__", value), getattr(value, "__func__", type(value).__call__)
            if owner is not value and is_library(type(owner)):
                self._weigh(name, owner, 0)
            elif (code := getattr(method, "__code__", None)) is not None:
                held = {**getattr(owner, "__dict__", {}), **getattr(owner, "_modules", {})}
                for used in CodeNames.of(code).attributes & held.keys():
                    self._weigh(used, held[used], depth - 1)

    def _holds(self, owner: str, name: str, value: Any, names: frozenset[str]) -> None:
        """Something that a function, or a module, has under a name."""
        if (text := lasting(value)) is not None:
            self._data.add(((owner, name), text))
            return
        followed = callable(value) or isinstance(value, types.ModuleType) or hasattr(type(value), "node")
        if not followed and not self._code_alone:
            self._data.add(((owner, name), value_word(value, _name_of)))
        self._follow([value], names)


OF_MAP = "use the one that map(..., rng=True, seed=1) calls the function with"
"""The cure for functions of `map`."""


def warn_of_copied_generators(step: Node, arguments: Sequence[Any], cure: str) -> None:
    """Warn of random generators that functions of a step read, where worker processes call them: each has its own copy.

    Args:
      step: that has workers.
      arguments: what is sent to them.
      cure: what to do instead.
    """
    found = ReachedCode.of(arguments, code_alone=True).generators
    if not any(getattr(argument, "__module__", None) == "__main__" for argument in arguments):
        # Functions that are imported there find those of the modules there, which draw their own seeds.
        found = [each for each in found if each is not random.random.__self__ and each is not np.random.rand.__self__]  # type: ignore[attr-defined]
    if found:
        kind = type(found[0])
        step.origin.warn(
            f"{step.op}: what worker processes call holds a random generator ({kind.__module__.partition('.')[0]}'s "
            f"{kind.__name__}), of which each process has its own copy: several elements get the same random numbers, and "
            f"others after a restart; {cure}"
        )


_NO_NAMES: frozenset[str] = frozenset()


def _place(value: types.FunctionType | types.ModuleType | type) -> str:
    return value.__name__ if isinstance(value, types.ModuleType) else f"{value.__module__}.{value.__qualname__}"


def _is_sent_whole(kind: type) -> bool:
    """Whether an object goes to another process with all its attributes, as far as its class does not say otherwise."""
    return all(getattr(kind, name) is getattr(object, name) for name in ("__getstate__", "__reduce__", "__reduce_ex__"))


def _for_members(value: Any, names: frozenset[str]) -> frozenset[str]:
    """Those names that may be of what a module or a function has."""
    if isinstance(value, types.FunctionType):
        return frozenset(names & vars(value).keys())
    return names if isinstance(value, types.ModuleType) else _NO_NAMES


def _name_of(function: Any) -> str:
    """For a function in a container; what it does is read when it is followed."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _texts(code: types.CodeType) -> Iterator[str]:
    """The texts in some code: `getattr(module, "name")` reads a name as well."""
    for part in with_inner(code):
        yield from [constant for constant in part.co_consts if isinstance(constant, str)]


def _word_of_file(name: str) -> str | None:
    """The word of the file of a module that a function imports itself, which may not be loaded yet; None: a package's."""
    with suppress(Exception):  # a module that cannot be found, in a way of its own
        spec = importlib.util.find_spec(name)
        origin = "" if spec is None else spec.origin or ""
        own = name.partition(".")[0] not in sys.stdlib_module_names | {"distinput"} and origin.endswith(".py")
        if own and "site-packages" not in origin and "dist-packages" not in origin:
            with open(origin, "rb") as file:
                return Digest(6).add(file.read()).word
    return None


def _pickled(value: Any) -> str | None:
    """A word of what an object of a package holds, by its pickle; None for what is of Python, or changes while it runs."""
    if type(value).__module__.partition(".")[0] in sys.stdlib_module_names | _RUNNING | {"distinput"}:
        return None
    try:
        return Digest(6).add(pickle.dumps(value, 4)).word
    except Exception:  # noqa: BLE001 - it cannot be pickled, in a way of its own
        return None
