# SPDX-License-Identifier: Apache-2.0
"""`as_text`, `as_rows`, `as_decimal`, `as_uint8`: values of Python, made when they are handed out; text as other columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from distinput.columns.column import Column, Dense, Strings
from distinput.columns.python_values import RowDicts, as_decimals, as_str, in_lists
from distinput.columns.ragged import Arrays, Objects, Ragged, RaggedBatches, batches_of
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.names.words import meant, shown
from distinput.plan.check import normalized
from distinput.plan.families import Restructured
from distinput.values.leaves import STRING
from distinput.values.nest import Structure, flatten
from distinput.values.nullable import is_nullable
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec

# ----------------------------------------------------------------------------
# The ops: the columns are those of the input, and the structure of blocks makes something else of them.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _OfText(Restructured):
    """What is done with text, all or that of some columns."""

    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        normalized(self, "columns", _names(self.op, self.columns))

    def _chooses(self, at: Structure) -> bool:
        """Whether text is chosen where no columns are named."""
        return at.mapping is not as_decimals

    def _found(self, mapping: Callable[[Any], Any] | None) -> tuple[Structure, list[int]]:
        """The structure, in which this makes the text of elements, and the places of the leaves that are this text."""
        spec, left, places = self.input.spec, dict.fromkeys(self.columns or ()), []
        leaves = enumerate(spec.leaves)

        def walk(at: Structure, names: Names) -> Structure:
            if at.kind == "leaf":
                place, leaf = next(leaves)
                name = next((name for name in _called(at, names) if name in left), None)
                if not isinstance(leaf, TensorSpec) or leaf.dtype != STRING:
                    return at
                if name is None if self.columns else not self._chooses(at):
                    return at
                if name is not None:
                    del left[name]
                places.append(place)
                return replace(at, mapping=mapping)
            return _with_children(at, names, walk)

        made = walk(spec.structure, (None,))
        if left:
            raise InvalidArgumentError(
                f"{self.op}: {next(iter(left))!r} is not a component of text; elements are {spec.nest}"
            )
        return made, places


class AsText(_OfText):
    """Deliver text as `str`; arrays of text, in batches and lists, have the dtype `np.dtypes.StringDType`.

    Inside, and in `element_spec`, text stays bytes: it is decoded where an element is handed out, to a loop or to a function.
    What a function returns is bytes again, as everywhere, so call it before the function that wants text, or last.

    Shapes: unchanged. Order: unchanged. State: that of the input.

    Args:
      columns: names of components, with dots in them for those of inner dicts; all text when None.

    Raises:
      InvalidArgumentError: a column is not there or is not a text; at iteration, a text is not UTF-8.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices({"name": ["Ada", "Zoë"], "age": [30, 41]})
    >>> ds.as_text().to_list()
    [{'name': 'Ada', 'age': 30}, {'name': 'Zoë', 'age': 41}]
    >>> ds.batch(2).as_text()[0]["name"].tolist()
    ['Ada', 'Zoë']

    Source: distinput's own.
    """

    @cached_property
    def spec(self) -> Spec:
        return replace(self.input.spec, structure=self._found(as_str)[0])


DTYPES = ("decimal", "float64")
"""What `as_decimal` makes of digits."""


@dataclass(frozen=True, eq=False)
class AsDecimal(_OfText):
    """Deliver decimals as `decimal.Decimal`, or as float64.

    A decimal of a file is the text of its digits, at any precision, since NumPy has no type for it. Objects are made where an
    element is handed out, to a loop or to a function, as those of `as_text`; inside, and in `element_spec`, the text stays.
    An array of float64 has the nearest numbers, so most decimals are rounded.

    Shapes: unchanged. Order: unchanged. State: that of the input.

    Args:
      columns: names of components, with dots in them for those of inner dicts; all that are decimals in files when None.
      dtype: "decimal" or "float64".

    Raises:
      InvalidArgumentError: a column is not there or is not a text, or `dtype` is neither; at iteration, a text is no number.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices({"price": ["1.50", "2.00"], "name": ["a", "b"]})
    >>> ds.as_decimal(["price"]).to_list()
    [{'price': Decimal('1.50'), 'name': b'a'}, {'price': Decimal('2.00'), 'name': b'b'}]
    >>> ds.as_decimal(["price"], dtype="float64").to_list()
    [{'price': 1.5, 'name': b'a'}, {'price': 2.0, 'name': b'b'}]

    Source: distinput's own.
    """

    dtype: str = "decimal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype not in DTYPES:
            raise InvalidArgumentError(
                f"as_decimal: there is no dtype {self.dtype!r}, {meant(str(self.dtype), DTYPES, 'there are')}"
            )

    def _chooses(self, at: Structure) -> bool:
        return at.told == "decimal"

    @cached_property
    def _chosen(self) -> tuple[Structure, list[int]]:
        return self._found(as_decimals if self.dtype == "decimal" else None)

    @cached_property
    def spec(self) -> Spec:
        structure, places = self._chosen
        if self.dtype == "decimal":
            return replace(self.input.spec, structure=structure)
        leaves: list[Any] = list(self.input.spec.leaves)
        for place in places:
            leaf = leaves[place]
            ragged = leaf.ragged_rank
            leaves[place] = RaggedTensorSpec(leaf.shape, float, ragged) if ragged else TensorSpec(leaf.shape, float)
        return Spec(structure, tuple(leaves))

    def _kept(self, columns: Sequence[Column]) -> Sequence[Column]:
        if self.dtype == "decimal":
            return columns
        chosen = set(self._chosen[1])
        return [_floats_of(column) if place in chosen else column for place, column in enumerate(columns)]


def _floats_of(column: Any) -> Any:
    """The numbers whose digits are texts, in the same lists."""
    column = column.materialize()
    if isinstance(column, Arrays):
        column = column.joined()
    if isinstance(column, Ragged):
        return Ragged(_floats_of(column.flat), column.starts, column.sizes, column.loose)
    if isinstance(column, RaggedBatches):
        return RaggedBatches(_floats_of(column.flat), column.starts, column.sizes)
    texts = (column if isinstance(column, Strings) else Strings.of(column.items)).objects()
    try:
        return Dense(np.array([float(text) for text in texts.reshape(-1)], np.float64).reshape(texts.shape))
    except ValueError as error:
        raise InvalidArgumentError(f"as_decimal: a text is not a number: {error}; leave it as text") from error


class AsUint8(_OfText):
    """Deliver text as uint8 arrays of its bytes, without a Python object for each text, for PyTorch and JAX.

    Behind `batch` a batch of text is a `RaggedTensor`: the bytes of all texts, and where each begins and ends. That is a nested
    tensor of PyTorch, and a pair of values and row splits for JAX. `bytes(row)` is the text again.

    Shapes: text is `[length]`, arrays of text `[n]` are ragged tensors `[n, length]`, of uint8; the rest is unchanged.
    Order: unchanged. State: that of the input.

    Args:
      columns: names of components, with dots in them for those of inner dicts; all text when None.

    Raises:
      InvalidArgumentError: a column is not there or is no text, is part of a sparse tensor, or of rows that `as_rows` makes.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices({"name": ["Ada", "Zoë"], "age": [30, 41]})
    >>> next(iter(ds.batch(2).as_uint8()))["name"]
    RaggedTensor([[65, 100, 97], [90, 111, 195, 171]], dtype=uint8)

    Source: distinput's own; `tf.io.decode_raw` is for texts of one length.
    """

    @cached_property
    def _chosen(self) -> tuple[Structure, list[int]]:
        structure, places = self._found(None)
        if structure.makes_rows or {first + 1 for first in structure.sparse} & set(places):
            raise InvalidArgumentError(
                "as_uint8: text of sparse tensors or of as_rows has no arrays; call it before as_rows"
            )
        return structure, places

    @cached_property
    def spec(self) -> Spec:
        structure, places = self._chosen
        leaves = list(self.input.spec.leaves)
        for place in places:
            shape = leaves[place].shape
            if shape is None:
                raise InvalidArgumentError(
                    "as_uint8: text must have a known number of dimensions; give it with ensure_shape"
                )
            leaves[place] = RaggedTensorSpec((*shape, None), np.uint8) if shape else TensorSpec([None], np.uint8)
        return Spec(structure, tuple(leaves))

    def _kept(self, columns: Sequence[Column]) -> Sequence[Column]:
        chosen = set(self._chosen[1])
        return [_bytes_of(column) if place in chosen else column for place, column in enumerate(columns)]


def _bytes_of(column: Column) -> Ragged | RaggedBatches:
    """Text as arrays of its bytes, which are not moved."""
    column = column.materialize()
    if isinstance(column, Objects) and all(isinstance(item, bytes) for item in column.items):
        column = Strings.of(column.items)
    if isinstance(column, Arrays):
        column = column.joined()
    if isinstance(column, Ragged | RaggedBatches):
        return RaggedBatches(_bytes_of(column.flat), column.starts, column.sizes)
    if not isinstance(column, Strings):
        raise InvalidArgumentError("as_uint8: arrays of text must differ in their first dimension alone")
    data = column.data.view()
    data.flags.writeable = False  # other texts may be the same memory
    count, *inner = column.starts.shape
    rows: Any = Ragged(Dense(data), column.starts.reshape(-1), column.sizes.reshape(-1), loose=bool(inner))
    for place in reversed(range(len(inner))):
        rows = batches_of(rows, np.full(count * prod(inner[:place]), inner[place], np.int64))
    return rows  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class AsRows(Restructured):
    """Deliver lists of structs as lists of dicts, as Hugging Face does, for chat templates and tokenizers.

    A list of objects in a file, such as the messages of a chat, is a dict of lists. It stays that inside and in `element_spec`.
    Where an element is handed out, a list of dicts is made of it, with Python's numbers; a `Nullable` in it is the value, or
    None. In a batch there is a list of them for each row. In tables and files of tables they are lists of structs.

    Shapes: unchanged. Order: unchanged. State: that of the input.

    Args:
      columns: names of components, at least one; "messages.calls" for lists of structs in lists of structs. None: all that are
        lists of structs in files; a struct of lists stays one.

    Raises:
      InvalidArgumentError: a column is not there, or is not a dict of lists; at iteration, its lists differ in length.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.jsonl").write_text('{"messages": [{"role": "user", "n": 1}, {"role": "tool", "n": 2}]}')
    >>> ds = di.data.JsonLinesDataset("a.jsonl")
    >>> ds.as_rows(["messages"]).as_text().to_list()
    [{'messages': [{'role': 'user', 'n': 1}, {'role': 'tool', 'n': 2}]}]

    Source: rows of `datasets.Dataset`.
    """

    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        normalized(self, "columns", _names("as_rows", self.columns))
        if self.columns == ():
            raise InvalidArgumentError("as_rows: columns must be at least one name")

    @cached_property
    def spec(self) -> Spec:
        spec = self.input.spec
        wanted = tuple(_told_rows(spec.structure)) if self.columns is None else self.columns
        left = dict.fromkeys(wanted)
        leaves = iter(spec.leaves)

        def walk(at: Structure, names: Names) -> Structure:
            if at.kind == "leaf":
                next(leaves)
                return at
            name = next((name for name in _called(at, names) if name in left), None)
            if at.kind != "dict" or name is None:
                return _with_children(at, names, walk)
            own = [next(leaves) for _ in range(at.num_leaves)]
            nest = at.build(own)
            lists = nest["value"] if is_nullable(at) else nest
            found = flatten(lists) if isinstance(lists, dict) else []
            if not found or any(not isinstance(leaf, TensorSpec) or not leaf.shape for leaf in found):
                raise InvalidArgumentError(f"as_rows: {name!r} is not a dict of lists: {shown(nest, 200)}")
            first = next(iter(lists.values()))
            while isinstance(first, dict):
                first = next(iter(first.values()))
            form = _form_of(at, iter(own), names, left, 0)
            cls = getattr(at.mapping, "cls", None)
            return replace(at, mapping=RowDicts(name, len(first.shape), form, cls))

        structure = walk(spec.structure, (None,))
        for name in self.columns or ():
            outer = _around(spec, name)
            if outer is not None and outer not in wanted:
                raise InvalidArgumentError(
                    f"as_rows: {name!r} lies inside of {outer!r}, a dict of lists: name that too"
                )
        for name in left:
            known = dict.fromkeys(each for names, _ in _components(spec.structure) for each in names)
            if name in known:
                raise InvalidArgumentError(f"as_rows: {name!r} is not a dict of lists")
            raise InvalidArgumentError(f"as_rows: there is no component {name!r}, {meant(name, known, 'there are')}")
        return replace(spec, structure=structure)


Names = tuple[str | None, ...]
"""How columns may be called: a part of the value of a `Nullable` also as if it were a part of what is above.

None is the whole element, which begins no other name. It may be called "" where no column has this name.
"""


def _told_rows(at: Structure, names: Names = (None,)) -> Iterator[str]:
    """The names of all lists of structs, as readers tell of them."""
    if at.told.startswith("rows"):
        yield names[-1] or ""
    for key, child in at.members:
        yield from _told_rows(child, _names_below(at, key, names))


def _names(op: str, columns: Any) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str | bytes) or not all(isinstance(name, str) for name in columns):
        raise InvalidArgumentError(f"{op}: columns must be a list of names, got {columns!r}")
    return tuple(columns)


def _called(at: Structure, names: Names) -> list[str]:
    """The names that a user may give."""
    return [name or "" for name in names if name is not None or "" not in at.keys]


def _names_below(at: Structure, key: Any, names: Names) -> Names:
    below = tuple([str(key) if name is None else f"{name}.{key}" for name in names])
    return (*below, *names) if key == "value" and is_nullable(at) else below


def _components(at: Structure, names: Names = (None,)) -> Iterator[tuple[list[str], bool]]:
    """What the components of an element may be called, in order, and whether they are leaves; marks have no names."""
    for key, child in at.members:
        below = () if is_nullable(at) and key == "valid" else _names_below(at, key, names)
        yield _called(child, below), child.kind == "leaf"
        yield from _components(child, below)


def _around(spec: Spec, name: str) -> str | None:
    """The dict of lists with shorter ones than those in `name`, which is inside of it: it is a list of structs, as a rule."""
    called = [names for names, is_leaf in _components(spec.structure) if is_leaf]
    ranks = [
        (names, len(leaf.shape))
        for names, leaf in zip(called, spec.leaves, strict=True)
        if isinstance(leaf, TensorSpec | RaggedTensorSpec) and leaf.shape is not None
    ]
    own = min((rank for names, rank in ranks if any(each.startswith(f"{name}.") for each in names)), default=0)
    parts = name.split(".")
    for end in range(1, len(parts)):
        outer = ".".join(parts[:end])
        inside = [rank for names, rank in ranks if any(each.startswith(f"{outer}.") for each in names)]
        if inside and 0 < min(inside) < own:
            return outer
    return None


def _with_children(at: Structure, names: Names, walk: Callable[[Structure, Names], Structure]) -> Structure:
    return replace(at, children=tuple([walk(child, _names_below(at, key, names)) for key, child in at.members]))


def _form_of(
    at: Structure, leaves: Iterator[Any], names: Names, left: dict[str, None], level: int, rows: int = 0
) -> Any:
    """What `RowDicts` makes of a part, whose lists are at this level: see `RowDicts._made`.

    Args:
      at: the part.
      leaves: those in it, and behind it.
      names: of the part.
      left: the names of what becomes rows, less those that did.
      level: how many lists are around it.
      rows: how many lists of it become rows; more than one: all but the innermost are lists of lists of rows.
    """
    if at.kind == "leaf":
        next(leaves)
        return ("leaf",)
    own = [next(leaves) for _ in range(at.num_leaves)]
    again = iter(own)
    named = [name for name in names if name in left]
    rows = rows or (_lists_of_rows(at) if named else 0)
    for name in named:
        del left[name]
    if is_nullable(at):
        next(again)
        told = len(own[0].shape) - level  # a mark of items makes the rows itself
        value = _form_of(at.children[1], again, names, left, level + told, max(0, rows - told))
        return in_lists(("told", value), told)
    parts = {}
    for key, child in zip(at.keys, at.children, strict=True):
        parts[key] = _form_of(child, again, _names_below(at, key, names), left, level + rows)
    return in_lists(("dict", tuple([(key, parts[key]) for key in at.order or at.keys])), rows)


def _lists_of_rows(at: Structure) -> int:
    """How many lists are around the structs that a dict of lists is made of, as readers tell of it; 1 where they do not."""
    while is_nullable(at):
        at = at.children[at.keys.index("value")]
    return max(1, at.told.count("rows"))
