# SPDX-License-Identifier: Apache-2.0
"""Text and rows of Python, which are made of the leaves of elements where these are handed out: of one, or of many at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from distinput.columns.column import Column, Dense, Ints, Strings, objects_between
from distinput.columns.ragged import Ragged, RaggedBatches
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass, library
from distinput.values.leaves import STRING
from distinput.values.nest import Structure
from distinput.values.nullable import is_nullable
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec_json import MalformedJson, items_of, member, of_kind

decimal = library("decimal")  # few tables have decimals

# ----------------------------------------------------------------------------
# What a structure makes of the leaves of an element; of specs, names and columns it makes what it would without.
# ----------------------------------------------------------------------------


def as_str(value: Any) -> Any:
    r"""The bytes of a value as `str`, or of all values of an array as an array of `np.dtypes.StringDType`.

    Raises:
      InvalidArgumentError: they are no UTF-8.

    >>> as_str(b"caf\xc3\xa9"), as_str(np.array([b"a"], object)).tolist()
    ('café', ['a'])
    """
    try:
        match value:
            case bytes():
                return value.decode()
            case np.ndarray() if value.dtype == STRING:
                made = [item.decode() for item in value.reshape(-1)]
                return np.array(made, np.dtypes.StringDType()).reshape(value.shape)
            case RaggedTensor():
                return RaggedTensor(as_str(value.values), value.row_splits)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"as_text: a text is not UTF-8: {error}; leave it as bytes, and decode it in map"
        ) from error
    return value


def as_decimals(value: Any) -> Any:
    """The bytes of a value as a `decimal.Decimal`, or of all values of an array as an array of them.

    Raises:
      InvalidArgumentError: they are not the digits of a number.

    >>> as_decimals(b"1.50"), as_decimals(np.array([b"2"], object))
    (Decimal('1.50'), array([Decimal('2')], dtype=object))
    """
    match value:
        case bytes():
            try:
                return decimal.Decimal(value.decode())
            except (decimal.InvalidOperation, UnicodeDecodeError):
                raise InvalidArgumentError(f"as_decimal: {value!r} is no number; leave it as text") from None
        case np.ndarray() if value.dtype == STRING:
            made = np.empty(value.shape, object)
            made.reshape(-1)[:] = [as_decimals(item) for item in value.reshape(-1)]
            return made
        case RaggedTensor():
            return RaggedTensor(as_decimals(value.values), value.row_splits)
    return value


@dataclass(frozen=True)
class RowDicts:
    """Makes a list of dicts of a dict of lists.

    Args:
      name: of the dict, for errors.
      rank: dimensions of the first list in it where a single element is handed out; a batch has one more.
      form: of what is in it: "leaf"; "told", and the form of the value; "lists", and the form of their items; or
        "dict", and the forms of the parts by name.
      cls: of the dict, if that is no plain one.
    """

    name: str
    rank: int
    form: Any
    cls: type | None = None

    def __call__(self, items: dict[str, Any]) -> Any:
        first: Any = items
        while isinstance(first, dict):
            first = next(iter(first.values()), None)
        if not isinstance(first, np.ndarray | RaggedTensor):
            return items if self.cls is None else self.cls(items)
        return self._made(in_lists(self.form, first.ndim - self.rank), _listed(items))

    def _made(self, form: Any, lists: Any) -> Any:
        match form:
            case ("told", inner):
                return self._made(inner, lists["value"]) if lists["valid"] else None
            case ("lists", ("dict", parts)) if all(part == ("leaf",) for _, part in parts):
                self._length(lists)
                names = [name for name, _ in parts]
                return [dict(zip(names, row, strict=True)) for row in zip(*map(lists.get, names), strict=True)]
            case ("lists", inner):
                return [self._made(inner, _at(lists, row)) for row in range(self._length(lists))]
            case ("dict", parts):
                return {name: self._made(part, lists[name]) for name, part in parts}
        return lists

    def at_once(self, structure: Structure, columns: Sequence[Column]) -> list[Any]:
        """What `__call__` makes of each row of the columns of such a dict.

        Raises:
          NotAtOnceError: that is left to `__call__`.
        """
        lists = _columns_of(structure, iter(columns))
        first, place = structure, 0
        while first.kind == "dict" and first.keys:
            before = first.keys.index((first.order or first.keys)[0])
            place += sum([child.num_leaves for child in first.children[:before]])
            first = first.children[before]
        rank = _rank(columns[place])
        if first.kind != "leaf" or not rank or rank < self.rank:
            raise NotAtOnceError
        return _values(in_lists(self.form, rank - self.rank), lists)

    def _length(self, lists: Any) -> int:
        sizes = set(_sizes(lists))
        if len(sizes) != 1:
            raise InvalidArgumentError(
                f"as_rows: the lists in {self.name!r} have {' and '.join(map(str, sorted(sizes)))} items; "
                "they must have the same length"
            )
        return sizes.pop()


def in_lists(form: Any, depth: int) -> Any:
    """The form of lists in lists, so many, of what has a form."""
    for _ in range(depth):
        form = ("lists", form)
    return form


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _listed(part) for name, part in value.items()}
    if isinstance(value, RaggedTensor):
        return value.to_list()
    return value if not isinstance(value, np.ndarray) or value.dtype.kind in "mM" else value.tolist()


def _at(lists: Any, row: int) -> Any:
    return {name: _at(part, row) for name, part in lists.items()} if isinstance(lists, dict) else lists[row]


def _sizes(lists: Any) -> Iterator[int]:
    if not isinstance(lists, dict):
        yield len(lists)
        return
    for part in lists.values():
        yield from _sizes(part)


# ----------------------------------------------------------------------------
# What a structure makes, as members of the JSON of a spec; files that say it are read by other programs, and may be damaged.
# ----------------------------------------------------------------------------


_OF_TEXT: dict[str, Callable[[Any], Any]] = {"decimal": as_decimals, "str": as_str}
_MOST_DIMENSIONS = 64
"""Of an array of NumPy."""


def made_json(at: Structure) -> dict[str, Any]:
    """What is made of a leaf or a dict where an element is handed out, and what its reader told of it.

    >>> made_json(Structure("leaf", mapping=as_str)), made_json(Structure("leaf"))
    ({'made': 'str'}, {})
    """
    made: dict[str, Any] = {"told": at.told} if at.told else {}
    if isinstance(at.mapping, RowDicts):
        made["rows"] = {"name": at.mapping.name, "rank": at.mapping.rank, "form": _form_json(at.mapping.form, at)}
    for name, mapping in _OF_TEXT.items():
        if at.mapping is mapping:
            made["made"] = name
    return made


def with_made(at: Structure, value: dict[str, Any]) -> Structure:
    """The leaf or dict of which a JSON value says it, see `made_json`.

    Raises:
      MalformedJson: that is nothing that can be made of it.
    """
    made: Any = at.mapping
    if "rows" in value and at.kind == "dict":
        rows = member(value, "rows", dict)
        form = _form_of_json(member(rows, "form"), at)
        made = RowDicts(member(rows, "name", str), _dimensions(rows, "rank"), form, getattr(made, "cls", None))
    if "made" in value and at.kind == "leaf":
        made = _OF_TEXT.get(member(value, "made", str))
        if made is None or value.get("dtype") != "string":
            raise MalformedJson(f"{value['made']!r:.60} is made of no {value.get('dtype')!r:.60}")
    told = member(value, "told", str) if "told" in value else at.told
    return replace(at, mapping=made, told=told)


def _form_json(form: Any, at: Structure, depth: int = 0) -> Any:
    """A form in so many lists: of a value that is told their number, of a dict all but one, which makes "rows" of it."""
    match form:
        case ("leaf",):
            return "leaf"
        case ("lists", inner):
            return _form_json(inner, at, depth + 1)
        case ("told", inner):
            return {"told": depth, "value": _form_json(inner, at.children[1])}
        case (_, parts):
            by_key = dict(parts)
            found = [_form_json(by_key[key], child) for key, child in zip(at.keys, at.children, strict=True)]
            made: Any = {"rows" if depth else "dict": found}
            for _ in range(depth - 1):
                made = {"lists": made}
            return made


def _form_of_json(value: Any, at: Structure) -> Any:
    if at.kind == "leaf":
        return ("leaf",)
    of_kind(value, "a form of rows", dict)
    if "told" in value and at.keys == ("valid", "value"):
        told = ("told", _form_of_json(member(value, "value"), at.children[1]))
        return in_lists(told, _dimensions(value, "told"))
    if "lists" in value:
        return ("lists", _form_of_json(value["lists"], at))
    kind = "rows" if "rows" in value else "dict"
    parts = items_of(member(value, kind), repr(kind), len(at.keys))
    made = {key: _form_of_json(part, child) for key, part, child in zip(at.keys, parts, at.children, strict=True)}
    return in_lists(("dict", tuple([(key, made[key]) for key in at.order or at.keys])), kind == "rows")


def _dimensions(value: Any, key: str) -> int:
    count: int = member(value, key, int)
    if not 0 <= count <= _MOST_DIMENSIONS:
        raise MalformedJson(f"{key!r} must be a number of dimensions, got {count}")
    return count


# ----------------------------------------------------------------------------
# The same of many elements at once: all text of a column is decoded together, and all dicts are made in one loop.
#
# Whatever differs from the usual, such as text that is no UTF-8 or lists of several lengths, is left to the functions above,
# one element after the other: so they alone say what is made and what is wrong.
# ----------------------------------------------------------------------------


class NotAtOnceError(Exception):
    """Something is to be made of one element after the other."""


def made_at_once(structure: Structure, columns: Sequence[Column]) -> list[Any] | None:
    r"""What a structure with a mapping makes of the leaves of each row; None where it must make them one by one.

    >>> made_at_once(Structure("leaf", mapping=as_str), [Strings.of([b"a", b"caf\xc3\xa9"])])
    ['a', 'café']
    >>> made_at_once(Structure("leaf", mapping=as_str), [Strings.of([b"a", b"\xff"])])
    >>> made_at_once(Structure("leaf", mapping=as_decimals), [Strings.of([b"1.50"])])
    [Decimal('1.50')]
    """
    try:
        if isinstance(structure.mapping, RowDicts):
            return structure.mapping.at_once(structure, [column.materialize() for column in columns])
        if structure.kind == "leaf" and structure.mapping in (as_str, as_decimals):
            column = columns[0].materialize()
            texts = _texts(column) if isinstance(column, Strings) and column.starts.ndim == 1 else None
            return texts if texts is None or structure.mapping is as_str else list(map(decimal.Decimal, texts))
    except Exception:  # noqa: BLE001 - comes again for the element that is at fault
        return None
    return None


_FEW = 64
"""Up to so many texts are decoded one by one: Arrow's way begins with the import of pandas, where that is installed."""


def _texts(strings: Strings) -> list[str]:
    """All texts, one after the other.

    Raises:
      Exception: one is no UTF-8.
    """
    if strings.starts.size <= _FEW or strings.made is not None:
        return [text.decode() for text in strings.objects().reshape(-1).tolist()]
    data, offsets = strings.side_by_side()
    return objects_between(data, offsets, text=True).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Leaf:
    """A column that rows are made of, and whether its text becomes `str`."""

    column: Column
    decoded: bool


def _columns_of(at: Structure, columns: Iterator[Column]) -> Any:
    """The nest of columns; dicts that `RowDicts` looks at as plain ones."""
    if at.kind == "leaf":
        if at.mapping not in (None, as_str):
            raise NotAtOnceError
        return _Leaf(next(columns), at.mapping is as_str)
    if at.kind != "dict" or not (at.mapping is None or is_nullable(at) or isinstance(at.mapping, RowDicts)):
        raise NotAtOnceError
    return {key: _columns_of(child, columns) for key, child in zip(at.keys, at.children, strict=True)}


def _rank(column: Column) -> int:
    """The dimensions of a row."""
    if isinstance(column, Ragged | RaggedBatches):
        return 1 + _rank(column.flat)
    if column.inner is None:
        raise NotAtOnceError
    return len(column.inner)


def _values(form: Any, lists: Any) -> list[Any]:
    """See `RowDicts._made`: of all rows of the columns."""
    match form:
        case ("told", inner):
            values, valid = _values(inner, lists["value"]), _listed_rows(lists["valid"])
            return [value if here else None for value, here in zip(values, valid, strict=True)]
        case ("lists", inner):
            sizes, below = _below(lists)
            return _sliced(_values(inner, below), sizes)
        case ("dict", parts):
            names = tuple([name for name, _ in parts])
            return _zipped(names)(*[_values(part, lists[name]) for name, part in parts])  # type: ignore[no-any-return]
    return _listed_rows(lists)


@lru_cache(maxsize=256)
def _zipped(names: tuple[Any, ...]) -> Callable[..., Any]:
    """Compiled: lists of equal length -> a list of dicts with these names."""
    keys = {f"k{place}": name for place, name in enumerate(names)}
    given, values = ", ".join(f"c{key}" for key in keys), "".join(f"v{key}, " for key in keys)
    items = ", ".join(f"{key}: v{key}" for key in keys)
    source = f"lambda {given}: [{{{items}}} for {values} in zip({given}, strict=True)]"
    return eval(source, keys)  # type: ignore[no-any-return]  # noqa: S307 - only our own words


def _listed_rows(leaf: Any) -> list[Any]:
    """See `_listed`: of all rows of a column."""
    column = leaf.column
    if isinstance(column, Ragged | RaggedBatches):
        sizes, below = _below(leaf)
        return _sliced(_listed_rows(below), sizes)
    if isinstance(column, Strings):
        if not leaf.decoded or column.starts.ndim == 1:
            return _texts(column) if leaf.decoded else column.objects().tolist()
        sizes, below = _below(leaf)
        return _sliced(_listed_rows(below), sizes)
    if not isinstance(column, Dense) or column.array.dtype.kind in "mM":
        raise NotAtOnceError
    return column.array.tolist()  # type: ignore[no-any-return]


def _below(lists: Any) -> tuple[Ints, Any]:
    """The lengths of lists, which all columns have in common, and their items."""
    sizes: list[Ints] = []

    def walk(at: Any) -> Any:
        if isinstance(at, dict):
            return {name: walk(part) for name, part in at.items()}
        column = at.column
        lengths = column.lengths()
        if lengths is None or not isinstance(column, Dense | Strings | Ragged | RaggedBatches):
            raise NotAtOnceError
        sizes.append(np.full(len(column), lengths) if isinstance(lengths, int) else lengths)
        return _Leaf(column.unstack(), at.decoded)

    below = walk(lists)
    if not all(np.array_equal(other, sizes[0]) for other in sizes[1:]):
        raise NotAtOnceError
    return sizes[0], below


def _sliced(items: list[Any], sizes: Ints) -> list[list[Any]]:
    return [items[start:stop] for start, stop in pairwise([0, *np.cumsum(sizes).tolist()])]
