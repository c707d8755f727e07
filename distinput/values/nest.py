# SPDX-License-Identifier: Apache-2.0
"""Nests: elements as structures of tuples, dicts, namedtuples and dataclasses around leaves.

A `Structure` is the shape of a nest without its leaves. Dicts flatten in sorted key order (the rule of `tf.nest`) and are
rebuilt in their own order, other mappings as what they were. Flattening and building are compiled once for each structure,
because they run per element.
"""

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass

Nest = Any
Leaf = Any


@dataclass(frozen=True)
class Structure:
    """The shape of a nest.

    Args:
      kind: "leaf", "none", "tuple", "list", "dict", "namedtuple" or "dataclass".
      keys: sorted keys of a dict, field names of a namedtuple or dataclass.
      children: one structure for each member, in flattening order.
      cls: the class of a namedtuple or dataclass.
      order: the keys of a dict in the order in which it is rebuilt (no part of equality).
      mapping: what makes a mapping that is no plain dict of its items, or something else of a leaf (no part of equality:
        mappings of the same keys may stand for each other, as in `tf.nest`).
      told: what a reader tells of it that its columns do not say: "rows" of a dict of lists that is a list of structs in the
        file, with the word once more for each list around it; "decimal" of a text that is the digits of a decimal; else ""
        (no part of equality).
    """

    kind: str
    keys: tuple[Any, ...] = ()
    children: tuple["Structure", ...] = ()
    cls: type | None = None
    order: tuple[Any, ...] = field(default=(), compare=False)
    mapping: Callable[[Any], Any] | None = field(default=None, compare=False)
    told: str = field(default="", compare=False, repr=False)

    @cached_property
    def num_leaves(self) -> int:
        """How many leaves the nest has."""
        return 1 if self.kind == "leaf" else sum(child.num_leaves for child in self.children)

    @cached_property
    def is_leaf(self) -> bool:
        """True for a bare leaf."""
        return self.kind == "leaf"

    @cached_property
    def is_plain_leaf(self) -> bool:
        """True for a bare leaf of which nothing else is made."""
        return self.kind == "leaf" and self.mapping is None

    @cached_property
    def is_flat_tuple(self) -> bool:
        """True for a plain tuple of leaves of which nothing else is made, at least one."""
        return self.kind == "tuple" and bool(self.children) and all(child.is_plain_leaf for child in self.children)

    @cached_property
    def is_flat_dict(self) -> bool:
        """True for a dict of leaves, at least one."""
        return self.kind == "dict" and bool(self.children) and all(child.is_leaf for child in self.children)

    @property
    def is_rows(self) -> bool:
        """Whether a list of dicts is made of this dict of lists, by `as_rows`."""
        return self.kind == "dict" and self.mapping is not None and not isinstance(self.mapping, _Mapping)

    @cached_property
    def makes_rows(self) -> bool:
        """Whether a list of dicts is made of a dict of lists in it, by `as_rows`."""
        return self.is_rows or any(child.makes_rows for child in self.children)

    @cached_property
    def makes_anew(self) -> bool:
        """Whether something else is made of leaves or dicts where an element is handed out; nothing else refers to that."""
        own = self.mapping is not None and not isinstance(self.mapping, _Mapping)
        return own or any(child.makes_anew for child in self.children)

    @cached_property
    def parted(self) -> "tuple[Structure, tuple[tuple[Structure, int, int], ...]]":
        """The same nest with one leaf in the place of each sparse tensor, and of each part of which something else is made.

        And for each of these and of the other leaves its own nest, and where its leaves begin and end among all.
        """
        parts: list[tuple[Structure, int, int]] = []

        def walk(at: Structure, first: int) -> Structure:
            made = at.mapping is not None and not isinstance(at.mapping, _Mapping)
            if at.kind == "leaf" or made or getattr(at.cls, "is_sparse", False):
                parts.append((at, first, first + at.num_leaves))
                return LEAF
            children = []
            for child in at.children:
                children.append(walk(child, first))
                first += child.num_leaves
            return dataclasses.replace(at, children=tuple(children))

        return walk(self, 0), tuple(parts)

    @property
    def kept(self) -> "Structure":
        """The same nest of the leaves as they are, of which nothing else is made."""
        if not self.makes_anew:
            return self
        own = self.mapping if isinstance(self.mapping, _Mapping) else None
        return dataclasses.replace(self, children=tuple([child.kept for child in self.children]), mapping=own)

    @cached_property
    def sparse(self) -> tuple[int, ...]:
        """Where the three leaves of each sparse tensor begin, among all leaves."""
        if getattr(self.cls, "is_sparse", False):
            return (0,)
        found: list[int] = []
        before = 0
        for child in self.children:
            found += [before + first for first in child.sparse]
            before += child.num_leaves
        return tuple(found)

    @cached_property
    def folded(self) -> "Structure":
        """The same nest with one leaf in the place of each sparse tensor."""
        if not self.sparse:
            return self
        if getattr(self.cls, "is_sparse", False):
            return LEAF
        return dataclasses.replace(self, children=tuple([child.folded for child in self.children]))

    @cached_property
    def form(self) -> tuple[Any, ...]:
        """What equality leaves out: the order of keys and the classes of mappings, of all nests in it; () if there are none."""
        inner = tuple([child.form for child in self.children])
        own = (
            (self.order or self.keys, self.mapping) if self.kind == "dict" else (self.mapping,) if self.mapping else ()
        )
        return (own, inner) if own or any(inner) else ()

    @cached_property
    def build(self) -> Callable[[Sequence[Leaf]], Nest]:
        """Compiled: a sequence of leaves -> the nest."""
        return self._built("c[{}]", "c")

    @cached_property
    def build_of(self) -> Callable[..., Nest]:
        """Compiled: leaves, each an argument -> the nest. `map` calls it without a tuple of them."""
        return self._built("c{}")

    def _built(self, leaf: str, parameters: str = "") -> Callable[..., Nest]:
        names: dict[str, Any] = {}
        leaves = list(map(leaf.format, range(self.num_leaves)))
        source = _build_source(self, iter(leaves), names)
        return _compiled(f"lambda {parameters or ', '.join(leaves)}: {source}", tuple(names.items()))

    @property
    def members(self) -> Iterator[tuple[Any, "Structure"]]:
        """Its members by key, or by number where they have none."""
        return zip(self.keys or range(len(self.children)), self.children, strict=True)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """A readable path of each leaf, such as `['image']` or `[0]['x']`; `` for a bare leaf."""
        if self.kind == "leaf":
            return ("",)
        found = []
        for key, child in self.members:
            step = f".{key}" if self.kind in ("namedtuple", "dataclass") else f"[{key!r}]"
            found += [step + rest for rest in child.paths]
        return tuple(found)

    def flatten(self, value: Nest) -> list[Leaf]:
        """The leaves of `value`, which must have this structure.

        Raises:
          TypeError: `value` has another structure.
        """
        leaves: list[Leaf] = []
        _flatten_like(self, value, leaves)
        return leaves

    def as_told(self, other: "Structure") -> "Structure":
        """The dict with what another one of the same columns, or of some of them, tells of these."""
        told = dict(zip(other.keys, other.children, strict=True))
        children = zip(self.keys, self.children, strict=True)
        return dataclasses.replace(
            self, children=tuple([told[k] if told.get(k) == own else own for k, own in children])
        )

    def graft(self, children: Sequence["Structure"]) -> "Structure":
        """The structure with each leaf replaced by one of `children`, in flattening order."""
        left = iter(children)

        def walk(at: Structure) -> Structure:
            if at.kind == "leaf":
                return next(left)
            return dataclasses.replace(at, children=tuple([walk(child) for child in at.children]))

        return walk(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # What was compiled for it cannot be sent to another process, and is compiled there again.
        return Structure, (self.kind, self.keys, self.children, self.cls, self.order, self.mapping, self.told)

    def __str__(self) -> str:
        return str(self.build(["."] * self.num_leaves)).replace("'.'", ".")


@dataclass(frozen=True)
class _Mapping:
    """Makes a mapping of a class of its own from its items in order.

    Args:
      cls: the class.
      factory: of a `defaultdict`.
    """

    cls: type[Any]
    factory: Callable[[], Any] | None = None

    @staticmethod
    def of(value: Mapping[Any, Any]) -> "_Mapping | None":
        """What makes mappings like `value`; None for a plain dict, which stands too for what cannot be made from its items."""
        kind = type(value)
        if kind is dict or not _can_be_made(kind):
            return None
        return _Mapping(kind, value.default_factory if isinstance(value, defaultdict) else None)

    def __call__(self, items: dict[Any, Any]) -> Any:
        if not issubclass(self.cls, MutableMapping):
            return self.cls(items)
        made = self.cls(self.factory) if issubclass(self.cls, defaultdict) else self.cls()
        for key, value in items.items():
            made[key] = value
        return made


@lru_cache(maxsize=256)
def _can_be_made(kind: type[Any]) -> bool:
    try:
        made = _Mapping(kind)({})
    except Exception:  # noqa: BLE001 - a class of the user's may want anything
        return False
    return type(made) is kind


# ----------------------------------------------------------------------------
# Objects of the user's classes. Code of theirs that runs when one is made, such as `__post_init__`, ran when the element was
# made; a copy has the fields of the element, whatever that code would make of them.
# ----------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def maker(cls: type[Any]) -> Callable[..., Any]:
    """What makes an object of a namedtuple or a dataclass from its fields, by name: exactly those.

    It is the class itself, unless that has code of its own. What such code sets beside the fields is there where it leaves the
    fields as they are, and does not fail.

    >>> @dataclass
    ... class Scaled:
    ...     x: float
    ...     def __post_init__(self) -> None:
    ...         self.x *= 2
    >>> Scaled(1.0), maker(Scaled)(x=1.0)
    (Scaled(x=2.0), Scaled(x=1.0))
    """
    if getattr(cls, "is_sparse", False) or not _has_code(cls):  # ours takes parts of any kind
        return cls
    init = None if issubclass(cls, tuple) else {each.name for each in dataclasses.fields(cls) if each.init}

    def made(**fields: Any) -> Any:
        try:
            whole = cls(**{name: value for name, value in fields.items() if init is None or name in init})
            if all(getattr(whole, name) is value for name, value in fields.items()):
                return whole
        except Exception:  # noqa: BLE001 - the constructor wants something else, or refuses batches
            pass
        if init is None:
            return tuple.__new__(cls, fields.values())
        bare = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(bare, name, value)  # also of a frozen one
        return bare

    return made


def _has_code(cls: Any) -> bool:
    """Whether code of the user's runs when an object of a namedtuple or dataclass is made, or a field is not to be given."""
    if issubclass(cls, tuple):
        new = next(each for each in cls.__mro__ if "__new__" in vars(each))
        return "_make" not in vars(new) or cls.__init__ is not object.__init__
    written = getattr(getattr(cls.__init__, "__code__", None), "co_filename", "") != "<string>"
    own = written or hasattr(cls, "__post_init__") or cls.__new__ is not object.__new__
    return own or not all(each.init for each in dataclasses.fields(cls))


LEAF = Structure("leaf")
NONE = Structure("none")


def tuple_of(children: Iterable[Structure]) -> Structure:
    """The structure of a tuple with these members."""
    return Structure("tuple", children=tuple(children))


def structure_of(value: Nest, *, lists: bool = False, is_leaf: Callable[[Any], bool] | None = None) -> Structure:
    """The structure of `value`.

    Args:
      value: any nest.
      lists: True: a list is a nest like a tuple (`tf.nest`); False: a list is a leaf, an array to be (`tf.data`).
      is_leaf: values for which this is true are leaves, whatever their type.

    Raises:
      InvalidArgumentError: the nest is too deep, or holds itself.

    >>> str(structure_of({"b": 1, "a": (2, 3)}))
    "{'b': ., 'a': (., .)}"
    """

    def walk(x: Nest) -> Structure:
        if is_leaf is not None and is_leaf(x):
            return LEAF
        if x is None:
            return NONE
        kind = type(x)
        if kind is tuple:
            return Structure("tuple", children=tuple([walk(v) for v in x]))
        if kind is dict or isinstance(x, Mapping):
            keys = _sorted_keys(x)
            children = tuple([walk(x[k]) for k in keys])
            return Structure("dict", keys, children, order=tuple(x), mapping=None if kind is dict else _Mapping.of(x))
        if lists and kind is list:
            return Structure("list", children=tuple([walk(v) for v in x]))
        if isinstance(x, tuple):
            kind = x.__class__  # of what a proxy stands for
            fields = getattr(kind, "_fields", None)
            if fields is None:
                return Structure("tuple", children=tuple([walk(v) for v in x]))
            return Structure("namedtuple", tuple(fields), tuple([walk(v) for v in x]), kind)
        if dataclasses.is_dataclass(x) and not isinstance(x, type) and not getattr(kind, "nest_leaf", False):
            names = tuple(f.name for f in dataclasses.fields(x))
            return Structure("dataclass", names, tuple([walk(getattr(x, n)) for n in names]), kind)
        return LEAF

    try:
        return walk(value)
    except RecursionError:
        raise too_deep() from None


def too_deep() -> InvalidArgumentError:
    """What to raise for a nest of more levels than Python follows."""
    return InvalidArgumentError(
        f"a nest has more levels than Python follows ({sys.getrecursionlimit()} calls); if no list or dict in it holds itself, "
        "put its values side by side, or in an array"
    )


def component(path: str) -> str:
    """What messages call the leaf at a path of `Structure.paths`.

    >>> component("['x']"), component("")
    ("component ['x']", 'the element')
    """
    return f"component {path}" if path else "the element"


def flatten(value: Nest, *, lists: bool = False) -> list[Leaf]:
    """The leaves of a nest, dicts in sorted key order.

    >>> flatten({"b": 1, "a": (2, 3)})
    [2, 3, 1]
    """
    return structure_of(value, lists=lists).flatten(value)


def map_leaves(function: Callable[..., Any], *values: Nest, lists: bool = True) -> Nest:
    """`function` over the leaves of one or more nests of the same structure.

    Raises:
      TypeError: the structures differ.
    """
    structure = structure_of(values[0], lists=lists)
    columns = [structure.flatten(value) for value in values]
    return structure.build([function(*leaves) for leaves in zip(*columns, strict=True)])


def _sorted_keys(value: Mapping[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(value))
    except TypeError:  # keys of several types have no order of their own
        return tuple(sorted(value, key=lambda k: (type(k).__name__, str(k))))


def _flatten_like(structure: Structure, value: Nest, leaves: list[Leaf]) -> None:
    kind = structure.kind
    if kind == "leaf":
        leaves.append(value)
        return
    if kind == "none":
        if value is not None:
            raise TypeError(f"the structures differ: expected None, got {type(value).__name__}")
        return
    members: Iterable[Any]
    if kind == "dict":
        if (
            not isinstance(value, Mapping)
            or len(value) != len(structure.keys)
            or any(k not in value for k in structure.keys)
        ):
            raise TypeError(
                f"the structures differ: expected a dict with keys {list(structure.keys)}, got {_shape(value)}"
            )
        members = [value[k] for k in structure.keys]
    elif kind == "dataclass":
        if type(value) is not structure.cls:
            raise TypeError(f"the structures differ: expected {structure.cls}, got {_shape(value)}")
        members = [getattr(value, k) for k in structure.keys]
    else:
        want = list if kind == "list" else tuple
        if not isinstance(value, want) or len(value) != len(structure.children):
            raise TypeError(
                f"the structures differ: expected a {want.__name__} of {len(structure.children)}, got {_shape(value)}"
            )
        members = value
    for child, member in zip(structure.children, members, strict=True):
        _flatten_like(child, member, leaves)


def _shape(value: Nest) -> str:
    if isinstance(value, Mapping):
        return f"a dict with keys {list(_sorted_keys(value))}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


_MOST_LEVELS = 60
"""Of a nest that is built by one function; those below are built by another one."""


@lru_cache(maxsize=4096)
def _compiled(source: str, names: tuple[tuple[str, Any], ...]) -> Callable[..., Nest]:
    return eval(source, dict(names))  # type: ignore[no-any-return]  # noqa: S307 - only our own words


def _named(value: Any, names: dict[str, Any]) -> str:
    """A name for a value in the source."""
    name = f"k{len(names)}"
    names[name] = value
    return name


def _build_source(structure: Structure, leaves: Iterator[str], names: dict[str, Any], level: int = 0) -> str:
    kind = structure.kind
    if kind == "leaf":
        return next(leaves) if structure.mapping is None else f"{_named(structure.mapping, names)}({next(leaves)})"
    if kind == "none":
        return "None"
    if level == _MOST_LEVELS:  # Python compiles no more than 200 brackets in brackets
        return f"{_named(structure.build_of, names)}({', '.join(islice(leaves, structure.num_leaves))})"
    parts = [_build_source(child, leaves, names, level + 1) for child in structure.children]
    if kind == "tuple":
        return "(" + "".join(part + ", " for part in parts) + ")"
    if kind == "list":
        return "[" + ", ".join(parts) + "]"
    if kind == "dict":
        by_key = dict(zip(structure.keys, parts, strict=True))
        members = [f"{_named(key, names)}: {by_key[key]}" for key in structure.order or structure.keys]
        items = "{" + ", ".join(members) + "}"
        return items if structure.mapping is None else f"{_named(structure.mapping, names)}({items})"
    assert structure.cls is not None, "of a namedtuple or dataclass"
    fields = ", ".join(f"{key}={part}" for key, part in zip(structure.keys, parts, strict=True))
    return f"{_named(maker(structure.cls), names)}({fields})"
