# SPDX-License-Identifier: Apache-2.0
"""The schema of rows in text files: the names of columns and their types, as users state them or as they are inferred."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from distinput.arrow.arrow import is_list, without_rows
from distinput.arrow.validity import marked, null_paths
from distinput.errors import InvalidArgumentError
from distinput.formats.text_records import Bytes
from distinput.names.lazy import dataclass, library
from distinput.values.leaves import STRING, as_dtype, counts_several
from distinput.values.spec import TensorSpec

pa = library("pyarrow")
compute = library("pyarrow.compute")
types = library("pyarrow.types")

Path = tuple[str | None, ...]
"""The column, then fields of structs; None is for the items of lists."""


@dataclass(frozen=True)
class RowSchema:
    """Names and types of columns, in order.

    Args:
      arrow: the pyarrow Schema.
      inferred: the names of columns whose types were inferred, so that they may change no number, see `changed`.
      whole: whether these are all columns; otherwise the types of others are inferred.
      nulls: where values may be null, and are therefore handed out as dicts of `value` and `valid`.

    >>> import numpy as np
    >>> RowSchema.of("csv", {"x": "float32", "label": int, "name": bytes, "day": np.dtype("datetime64[s]")})
    x: float, label: int64, name: binary, day: timestamp[s]
    """

    arrow: Any
    inferred: frozenset[str] = frozenset()
    whole: bool = field(default=True, compare=False)
    nulls: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        there = [".".join(name or "[]" for name in path) for path in self.nulls]
        told = f"; nulls at {', '.join(there)}" if there else ""
        return ", ".join(f"{field.name}: {field.type}" for field in self.arrow) + told

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.arrow.names)

    def only(self, columns: tuple[str, ...] | None) -> "RowSchema":
        """The schema of some columns.

        Raises:
          KeyError: there is no such column.
        """
        if columns is None:
            return self
        nulls = tuple(path for path in self.nulls if path[0] in columns)
        return replace(self, arrow=pa.schema([self.arrow.field(name) for name in columns]), nulls=nulls)

    def telling(self, who: str, valid: Sequence[str]) -> "RowSchema":
        """The same with nulls at these paths, as `arrow.validity` has them.

        Paths of columns that are not known yet are left out.

        Raises:
          InvalidArgumentError: all columns are known, and a path leads nowhere.

        >>> import pyarrow as pa
        >>> RowSchema.of("csv", {"x": int, "m": [{"role": str}]}).telling("csv", ["x", "m.role"]).nulls
        (('x',), ('m', None, 'role'))
        """
        known = _places_in(self.arrow)
        unknown = [text for text in valid if text not in known]
        if unknown and self.whole:
            raise InvalidArgumentError(f"{who}: valid: there is nothing at {unknown[0]!r}; there is {', '.join(known)}")
        found = [known[text] for text in valid if text in known]
        return replace(self, nulls=tuple(dict.fromkeys([*self.nulls, *found]))) if found else self

    @property
    def delivered(self) -> Any:
        """The pyarrow Schema of `told` batches."""
        return self.told(without_rows(self.arrow)).schema if self.nulls else self.arrow

    def told(self, batch: Any, fill: Mapping[str, Any] | None = None) -> Any:
        """A record batch in which structs of `value` and `valid` tell the nulls.

        Args:
          batch: of these columns.
          fill: what stands in the place of nulls, by column or field; zero, NaN, NaT or nothing, where it says nothing.

        Raises:
          FillError: a replacement does not fit its column.

        >>> import pyarrow as pa
        >>> schema = RowSchema(pa.schema({"x": pa.int64()}), nulls=(("x",),))
        >>> schema.told(pa.RecordBatch.from_pydict({"x": [5, None]})).to_pylist()
        [{'x': {'value': 5, 'valid': True}}, {'x': {'value': 0, 'valid': False}}]
        """
        if not self.nulls:
            return batch
        return marked(batch, [(text_of(path), "") for path in self.nulls], fill or {})

    def states(self, names: Iterable[str]) -> bool:
        """Whether it has all these columns."""
        return set(self.names).issuperset(names)

    @staticmethod
    def of(who: str, given: Any) -> "RowSchema | None":
        """A schema as users state it: a pyarrow Schema, or a dict of types by name; None stays None.

        A type is a dtype or its name, `int`, `float`, `bool`, `str` or `bytes`, a `TensorSpec`, or a pyarrow DataType; a dict
        of types for an object, a list with a type for arrays of any length, and one with a type and a number for arrays of
        this length. Text is read as its bytes. A dict may leave columns out, whose types are then inferred; a Schema is whole.

        Raises:
          InvalidArgumentError: it is nothing of this kind, or two columns have the same name.
        """
        if given is None or isinstance(given, RowSchema):
            return given
        if isinstance(given, pa.Schema):
            fields = [(field.name, field.type) for field in given]
        elif isinstance(given, Mapping):
            fields = [(str(name), _type(who, str(name), kind)) for name, kind in given.items()]
        else:
            raise InvalidArgumentError(
                f"{who}: schema must be a dict of types by column, or a pyarrow Schema, got {given!r}"
            )
        names = [name for name, _ in fields]
        if len(set(names)) != len(names):
            raise InvalidArgumentError(f"{who}: several columns of the schema have the same name: {', '.join(names)}")
        whole = isinstance(given, pa.Schema)
        return RowSchema(pa.schema([(name, _bytes(kind)) for name, kind in fields]), whole=whole)


def _type(who: str, name: str, kind: Any) -> Any:
    """A pyarrow DataType."""
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, Mapping):
        return pa.struct([(str(key), _type(who, f"{name}.{key}", inner)) for key, inner in kind.items()])
    if isinstance(kind, list) and (len(kind) == 1 or (len(kind) == 2 and type(kind[1]) is int and kind[1] >= 0)):
        return pa.list_(_type(who, name, kind[0]), *kind[1:])
    if isinstance(kind, TensorSpec) and kind.shape is not None:
        found = _type(who, name, kind.dtype)
        for size in reversed(kind.shape):
            found = pa.list_(found) if size is None else pa.list_(found, size)
        return found
    try:
        if kind is None:  # which NumPy takes for float64
            raise TypeError
        dtype = as_dtype(kind)
        if dtype == STRING:
            return pa.binary()
        if counts_several(dtype):
            raise TypeError
        return pa.from_numpy_dtype(dtype)
    except (TypeError, pa.ArrowException):
        pass
    try:
        return pa.type_for_alias(kind)
    except (TypeError, ValueError, AttributeError):
        raise InvalidArgumentError(
            f"{who}: column {name!r} must have a dtype, its name, or a pyarrow type, got {kind!r}; days are 'datetime64[D]', "
            "other times 'datetime64[us]', and decimals pyarrow.decimal128(digits, places)"
        ) from None


def _bytes(kind: Any) -> Any:
    """The type with binary in the place of text, at any depth: elements hold the bytes of text."""
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([(field.name, _bytes(field.type)) for field in kind])
    if types.is_fixed_size_list(kind):
        return pa.list_(_bytes(kind.value_type), kind.list_size)
    return pa.list_(_bytes(kind.value_type)) if types.is_list(kind) or types.is_large_list(kind) else kind


# ----------------------------------------------------------------------------
# Nulls, told beside their values where they are.
# ----------------------------------------------------------------------------


def _places_in(schema: Any) -> dict[str, Path]:
    """What may be null in the columns of a schema, as users name it."""
    return {text: path for each in schema for text, path in _places(each.type, each.name, (each.name,))}


def _places(kind: Any, text: str, path: Path) -> Iterator[tuple[str, Path]]:
    """What may be null in a column: as users name it, and its path."""
    yield text, path
    if types.is_struct(kind):
        owner = text.rstrip("[]")
        for inner in kind:
            yield from _places(inner.type, f"{owner}.{inner.name}", (*path, inner.name))
    if is_list(kind) or types.is_fixed_size_list(kind):
        yield from _places(kind.value_type, f"{text}[]", (*path, None))


def null_places(batch: Any) -> tuple[Path, ...]:
    """Where there are nulls in a record batch that NumPy has no value for.

    >>> import pyarrow as pa
    >>> null_places(pa.RecordBatch.from_pydict({"s": [{"a": None, "b": [1, None]}, None]}))
    (('s',), ('s', 'a'), ('s', 'b', None))
    """
    known = _places_in(batch.schema)
    return tuple([known[text] for text in null_paths(batch, structs=True)])


def text_of(path: Path) -> str:
    """A path as `arrow.validity` has it.

    >>> text_of(("m", None, "calls", None))
    'm.calls[]'
    """
    named = max(place for place, part in enumerate(path) if part is not None)
    return ".".join([part for part in path if part is not None]) + "[]" * (len(path) - 1 - named)


# ----------------------------------------------------------------------------
# Numbers as text has them, and those that a type would change.
#
# A type that is stated changes no number either, but for the rounding of decimals. One that is inferred from the first
# records also keeps every digit: zeros in front belong to identifiers, and a long whole number is not rounded for its
# neighbours.
# ----------------------------------------------------------------------------


INFERRED = ", and as it was inferred from the first ones, it changes none of their values"
"""What is said of the schema in an error."""

_DOUBTFUL = r"0[xX]|[0-9]{16}|(?:^|[^0-9A-Za-z.:+-])[+-]?0[0-9]"
"""Somewhere in text: what may be hexadecimal, long, or have zeros in front; dates, times and decimals are none of these."""

_ZEROS_FIRST = r"^\s*[+-]?0[0-9]"
_LONG_WHOLE = r"^\s*[+-]?[0-9]{16,}\s*$"
_WHOLE = r"^\s*-?(0|[1-9][0-9]*)\s*$"

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def may_change(data: Bytes) -> bool:
    """False if all numbers in some text are such that no type changes them, or only to an infinity; this is quick to tell.

    >>> [may_change(np.frombuffer(text, np.uint8)) for text in (b"10,2024-01-05", b"02116", b"0x1F", b"1234567890123456")]
    [False, True, True, True]
    """
    ends = pa.array([0, len(data)], pa.int32()).buffers()[1]
    text = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(np.ascontiguousarray(data))])
    return bool(compute.match_substring_regex(text, _DOUBTFUL)[0].as_py())


def changed(texts: Any, values: Any, inferred: bool) -> Mask:
    """Which values are not what their text says.

    Args:
      texts: a pyarrow array of binary.
      values: what it was read as, an array of as many.
      inferred: whether the type was inferred, so that nobody has said that these are numbers.

    >>> import pyarrow as pa
    >>> changed(pa.array([b"02116", b"7"]), pa.array([2116, 7]), True).tolist()
    [True, False]
    """

    def has(pattern: str) -> Any:
        return compute.match_substring_regex(texts, pattern)

    kind, masks = values.type, []
    if types.is_signed_integer(kind) or types.is_duration(kind):
        below = compute.less(values.cast(pa.int64()), 0)
        masks.append(compute.and_(below, has("[xX]")))
    if types.is_floating(kind):
        masks.append(compute.and_(compute.is_inf(values), has("[0-9]")))
    if inferred and types.is_boolean(kind):
        masks.append(has("[01]"))
    if inferred and (types.is_integer(kind) or types.is_floating(kind)):
        masks.append(has(_ZEROS_FIRST + "|[xX]"))
    made = np.zeros(len(values), bool)
    for each in masks:
        made |= compute.fill_null(each, False).to_numpy(zero_copy_only=False)
    if inferred and types.is_floating(kind):
        made |= _rounded(texts, values)
    found_ones: Mask = made & values.is_valid().to_numpy(zero_copy_only=False)
    return found_ones


def _rounded(texts: Any, values: Any) -> Mask:
    """Which whole numbers the floats are not."""
    long: Mask = compute.fill_null(compute.match_substring_regex(texts, _LONG_WHOLE), False).to_numpy(
        zero_copy_only=False
    )
    for place in np.flatnonzero(long).tolist():
        value, text = values[place].as_py(), texts[place].as_py()
        # Python refuses to read very many digits; a float64 has no more than 309.
        long[place] = value is not None and (len(text) > 400 or not np.isfinite(value) or int(text) != int(value))
    return long


def inferred_type(texts: Any, values: Any) -> Any:
    """The type of a column: that of its values, uint64 for whole numbers beyond int64, or binary where these would change it.

    >>> import pyarrow as pa
    >>> inferred_type(pa.array([b"18446744073709551615", b"1"]), pa.array([1.8446744073709552e19, 1.0]))
    DataType(uint64)
    """
    if types.is_boolean(values.type) or types.is_integer(values.type):
        return pa.binary() if changed(texts, values, True).any() else values.type
    there = texts.filter(values.is_valid())
    if compute.all(compute.match_substring_regex(there, _WHOLE)).as_py():  # but they are not int64
        try:
            compute.ascii_trim_whitespace(there.cast(pa.string())).cast(pa.uint64())
        except pa.ArrowInvalid:
            return pa.binary()
        return pa.uint64()
    return pa.binary() if changed(texts, values, True).any() else values.type
