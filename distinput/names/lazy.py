# SPDX-License-Identifier: Apache-2.0
"""What is loaded or made when it is first named: names of packages, modules, methods of dataclasses, tables, extensions."""

import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

# ----------------------------------------------------------------------------
# The names of packages, each written once, and modules that few programs need.
# ----------------------------------------------------------------------------


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
        self._loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # asked for by Python itself
            raise AttributeError(f"no attribute {name!r}", name=name, obj=self)
        self._loaded = self._loaded or import_module(self._module)
        return getattr(self._loaded, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._module,)  # without what is loaded

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


def without_secrets(text: str) -> str:
    """A text with the secrets of all URLs in it cut out; what finds them is loaded for texts that have a URL.

    An error must be told also where no more files can be opened, those of modules either.
    """
    return str(placed("distinput.url_secrets:without_secrets")(text)) if "://" in text else text


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


# ----------------------------------------------------------------------------
# `dataclass`: Python's own, except that a method of a class is made when it is first used.
#
# Python compiles up to six methods for each class at once, and a job uses few of those that it loads.
# ----------------------------------------------------------------------------


if TYPE_CHECKING:
    import dataclasses
    from dataclasses import dataclass as dataclass
else:
    dataclasses = library("dataclasses")

    def dataclass(kind: type | None = None, /, **options: bool) -> Any:
        """As `dataclasses.dataclass`, which it is with options that `_with_lazy_methods` does not have.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     "A place."
        ...
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), dataclasses.replace(Point(1), y=2)
        (Point(x=1, y=0), True, Point(x=1, y=2))
        """
        if kind is None:
            return partial(dataclass, **options)
        lazily = options.keys() <= {"init", "frozen", "eq", "repr", "kw_only", "slots"}
        return _with_lazy_methods(kind, **options) if lazily else dataclasses.dataclass(**options)(kind)


def _with_lazy_methods(
    kind: Any,
    init: bool = True,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,
    kw_only: bool = False,
    slots: bool = False,
) -> Any:
    parameters = {"init": init, "repr": repr, "eq": eq, "frozen": frozen}
    if slots:  # another class, and its fields, are made by Python; of methods only those that refuse changes
        nothing = {"init": False, "repr": False, "eq": False}
        kind = dataclasses.dataclass(slots=True, frozen=frozen, kw_only=kw_only, **nothing)(kind)
        _tell(kind.__dataclass_params__, parameters)
    own = dict(vars(kind))
    defaults = {name: own[name] for name in kind.__annotations__ if name in own}

    def described(name: str) -> Any:
        """The fields, or what follows from them: Python collects them, in another class with the same ones."""
        above: dict[str, Any] = {}
        for base in reversed(kind.__mro__[1:]):
            above |= getattr(base, "__dataclass_fields__", {})
        fields = {"__module__": kind.__module__, "__annotations__": kind.__annotations__, **defaults}
        names = _standard(fields, kind, above, init=False, repr=False, eq=False, kw_only=kw_only)
        _tell(names["__dataclass_params__"], parameters)
        for each in description:
            setattr(kind, each, names[each])
        return names[name]

    def method(name: str) -> Any:
        names = {
            key: getattr(kind, key) for key in ("__module__", "__qualname__", "__post_init__") if hasattr(kind, key)
        }
        parts = {part: f"__{part}__" == name for part in ("init", "repr")}
        parts |= {"eq": name in ("__eq__", "__hash__"), "frozen": frozen, "slots": slots}
        return _standard(names, kind, kind.__dataclass_fields__, **parts)[name]

    for name, value in defaults.items():
        if isinstance(value, dataclasses.Field):
            delattr(kind, name) if value.default is dataclasses.MISSING else setattr(kind, name, value.default)
    description = [name for name in _DESCRIPTION if name not in own]
    for name in description:
        setattr(kind, name, _Later(kind, name, described))
    for name, wanted in (("__init__", init), ("__repr__", repr), ("__eq__", eq)):
        if wanted and name not in own:
            setattr(kind, name, (_LaterInit if name == "__init__" else _Later)(kind, name, method))
    if eq and own.get("__hash__") is None and ("__eq__" in own or "__hash__" not in own):
        kind.__hash__ = _Later(kind, "__hash__", method) if frozen else None
    if frozen and not slots:
        kind.__setattr__, kind.__delattr__ = _refusal(kind, "__setattr__"), _refusal(kind, "__delattr__")
    return kind


_DESCRIPTION = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
if sys.version_info >= (3, 13):
    _DESCRIPTION += ("__replace__",)


def _tell(parameters: Any, values: dict[str, bool]) -> None:
    for name, value in values.items():
        setattr(parameters, name, value)


def _standard(names: dict[str, Any], kind: type, fields: dict[str, Any], **options: bool) -> dict[str, Any]:
    """What is in a class with these names, once Python has made it a dataclass that has these fields as well."""
    settings = SimpleNamespace(frozen=options.get("frozen", False))
    base = type("Fields", (), {"__dataclass_fields__": fields, "__dataclass_params__": settings})
    named = type(kind.__name__, (base,), names | {"__doc__": "The same."})  # without a text Python would make one
    return dict(vars(dataclasses.dataclass(**options)(named)))


def init_is_later(kind: Any) -> bool:
    """Whether something is a dataclass whose `__init__` would be made by asking for it, and has what its fields say."""
    return isinstance(kind, type) and isinstance(vars(kind).get("__init__"), _LaterInit)


class _Later:
    """Stands in a class for what Python puts there, until that is asked for."""

    def __init__(self, kind: Any, name: str, make: Callable[[str], Any]) -> None:
        self._kind, self._name, self._make = kind, name, make

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        value = self._make(self._name)
        setattr(self._kind, self._name, value)
        return value.__get__(instance, owner) if callable(value) else value


class _LaterInit(_Later):
    """Stands in for `__init__`, and fills the first few objects itself: to compile it costs as much as to fill a hundred."""

    _few = 20

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self._few and self._kind in type(instance).__mro__:
            self._few -= 1
            return partial(self._fill, instance)
        return super().__get__(instance, owner)

    def _fill(self, instance: Any, /, *values: Any, **named: Any) -> None:
        """What `__init__` does; where arguments are missing or too many, it says so itself."""
        fields, none = dataclasses.fields(self._kind), dataclasses.MISSING
        asked = [each for each in fields if each.init]
        needed = {each.name for each in asked if each.default is none and each.default_factory is none}
        by_place = [each.name for each in asked if not each.kw_only]
        given = {**dict(zip(by_place, values, strict=False)), **named}
        if len(given) < len(values) + len(named) or not needed <= given.keys() <= {each.name for each in asked}:
            super().__get__(instance)(*values, **named)
            return
        put = object.__setattr__ if self._kind.__dataclass_params__.frozen else setattr
        for each in fields:
            if each.name in given:
                put(instance, each.name, given[each.name])
            elif each.default_factory is not none:
                put(instance, each.name, each.default_factory())
            elif each.init or (each.default is not none and "__slots__" in vars(self._kind)):
                put(instance, each.name, each.default)
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()


def _refusal(kind: type, name: str) -> Any:
    """What objects whose fields do not change do instead of `__setattr__` or `__delattr__`."""
    doing = "assign to" if name == "__setattr__" else "delete"

    def refuse(self: object, field: str, *value: object) -> None:
        if type(self) is kind or field in kind.__dataclass_fields__:  # type: ignore[attr-defined]
            raise dataclasses.FrozenInstanceError(f"cannot {doing} field {field!r}")
        getattr(super(kind, self), name)(field, *value)

    return refuse


# ----------------------------------------------------------------------------
# Packages that add names to distinput: they are imported when a name is first asked for that is not known.
#
# A package names its module, or a function of it, as an entry point of the group `distinput.extensions`. Nothing is looked
# for at `import distinput`, nor as long as all names are known.
# ----------------------------------------------------------------------------


GROUP = "distinput.extensions"
"""The group of entry points."""

_lock = threading.RLock()
_loading: int | None = None  # the thread that loads them
_looked = False
_failures: list[str] = []


def load_extensions() -> bool:
    """Load the extensions of all installed packages, once in a process; True if this call did, and there are any.

    An entry point is a module, which registers its names when it is imported, or a function without arguments, which is called.
    One that fails is left out: `failures` tells of it.

    >>> load_extensions() and load_extensions()
    False
    """
    global _looked, _loading
    if _looked:
        return False
    from importlib.metadata import entry_points  # costs as much as the rest of a first batch

    with _lock:
        if _looked:
            return False
        _looked, _loading = True, threading.get_ident()
        points = entry_points(group=GROUP)
        for point in points:
            try:
                made = point.load()
                if callable(made):
                    made()
            except Exception as error:  # noqa: BLE001 - in a package of somebody else anything may be wrong
                package = "unknown" if point.dist is None else point.dist.name
                _failures.append(f"extension {point.name!r} of the package {package!r} could not be loaded: {error!r}")
        _loading = None
        return len(points) > 0


def _after_fork() -> None:
    """What another thread was loading is loaded anew in a child, which does not have that thread."""
    global _lock, _looked, _loading
    if _loading not in (None, threading.get_ident()):
        _lock, _looked, _loading = threading.RLock(), False, None
        _failures.clear()


if hasattr(os, "register_at_fork"):  # there is none on Windows, nor a fork
    os.register_at_fork(after_in_child=_after_fork)


def failures() -> str:
    """The end of a message about an unknown name: which extensions failed; empty if none did."""
    return "".join([f"; {failure}" for failure in _failures])


# ----------------------------------------------------------------------------
# Tables that are open to others: a name, and the function or class that it stands for, imported when it is first used.
# ----------------------------------------------------------------------------


F = TypeVar("F", bound=Callable[..., Any])

# Compiled when a name is registered: a first batch has no use for them.
_NAME = r"[a-z][a-z0-9_]*"
_PLACE = r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*"


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
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            raise ValueError(
                f"{self._kind}: a name must be lower-case letters, digits and underscores, and begin with a letter, "
                f"got {name!r}"
            )
        if isinstance(target, str):
            if not re.fullmatch(_PLACE, target):
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


util = library("importlib.util")


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
        spec: ModuleSpec | None = util.find_spec(fullname)
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
