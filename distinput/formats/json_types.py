# SPDX-License-Identifier: Apache-2.0
"""Objects of JSON, read with care, and the types of their values, from which a schema is inferred."""

import json
import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Self

import numpy as np

__all__ = [
    "NO_TYPE",
    "Integers",
    "Large",
    "Twice",
    "TypeConflict",
    "arrow_type",
    "changes",
    "has_half",
    "merged",
    "read_record",
    "refusal",
    "type_of",
]


# ----------------------------------------------------------------------------
# One object of JSON, read with care: keys that come twice, halves of surrogate pairs and numbers that are too large are told.
#
# The rules are those of the quick readers: text is what its bytes are, UTF-8 or not; NaN and Infinity are floats.
# ----------------------------------------------------------------------------


_MOST_DIGITS = 400
"""Of a whole number that is looked at; no type holds longer ones."""


class Large(float):
    """A number that no float64 holds, as infinity.

    Args:
      text: the number as it is written.
    """

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, "-inf" if text.startswith("-") else "inf")
        made.text = text
        return made

    text: str


class Twice(dict[str, Any]):
    """An object in which a key comes twice."""

    key: str


def read_record(line: bytes, errors: str = "replace") -> Any:
    """The value of a line; bytes that are no UTF-8 are decoded as `errors` says.

    Raises:
      json.JSONDecodeError: it is no JSON.
      RecursionError: objects and arrays are nested too deeply.

    >>> read_record(b'{"id": 1e400}')["id"].text
    '1e400'
    """
    text = line.decode(errors=errors)
    return json.loads(text, parse_int=_whole, parse_float=_decimal, object_pairs_hook=_object)


def _whole(text: str) -> int | Large:
    return int(text) if len(text) <= _MOST_DIGITS else Large(text)


def _decimal(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else Large(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    made, seen = Twice(found), set()
    for key, _ in pairs:
        if key in seen:
            made.key = key
        seen.add(key)
    return made


def refusal(record: dict[str, Any], columns: tuple[str, ...] | None) -> tuple[str, str] | None:
    """The key for which an object is refused whatever types it should have, and the reason; None: it is not.

    Args:
      record: as `read_record` has it.
      columns: the keys that are read; None: all.

    >>> refusal(read_record(b'{"id": 7, "id": 8}'), None)
    ('id', 'the key comes twice')
    """
    if isinstance(record, Twice) and (columns is None or record.key in columns):
        return record.key, "the key comes twice"
    for key, value in record.items():
        if has_half(key):
            return key, "the key has half of a surrogate pair, which is no character"
        for part in _parts(value):
            if isinstance(part, Twice) and (columns is None or key in columns):
                return key, f"the key {part.key!r} comes twice in it"
            texts = part if isinstance(part, dict) else [part] if isinstance(part, str) else ()
            if any(map(has_half, texts)):
                return key, 'the text has half of a surrogate pair, such as "\\ud83d", which is no character'
            if isinstance(part, Large) and not part.text.lstrip("-").isdigit():
                return key, f"no float64 is as large as {part.text}"
    return None


def has_half(text: str) -> bool:
    """Whether a text has half of a surrogate pair, and so no UTF-8."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def _parts(value: Any) -> Iterator[Any]:
    """A value, and all that is in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _parts(each)


def changes(value: Any, kind: Any, inferred: bool) -> bool:
    """Whether a type changes a number in a value, more than a stated one rounds it.

    Args:
      value: as `read_record` has it.
      kind: the pyarrow DataType that it is read as.
      inferred: whether nobody stated the type.

    >>> import pyarrow as pa
    >>> changes([2**53 + 1], pa.list_(pa.float64()), True), changes([2**53 + 1], pa.list_(pa.float64()), False)
    (True, False)
    """
    from pyarrow import types

    if isinstance(value, list):
        return types.is_nested(kind) and any(changes(item, kind.value_type, inferred) for item in value)
    if isinstance(value, dict):
        return types.is_struct(kind) and any(changes(value.get(part.name), part.type, inferred) for part in kind)
    if not types.is_floating(kind) or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, Large) or (isinstance(value, int) and abs(value) > 2**1023):
        return True
    with np.errstate(over="ignore"):
        if math.isfinite(value) and not np.isfinite(kind.to_pandas_dtype()(value)):
            return True
    return inferred and isinstance(value, int) and int(float(value)) != value


# ----------------------------------------------------------------------------
# The types of JSON values, from which a schema is inferred: integers and other numbers become one type, nothing else does.
#
# No number is changed by a type that is inferred: integers are int64 or uint64, and beside other numbers they must be
# float64s.
# ----------------------------------------------------------------------------


NO_TYPE: Final = None
"""The type of a null, and of what is in an empty array."""

_MOST_DEEP = 64

_INT64, _UINT64 = range(-(2**63), 2**63), range(2**64)
_EXACT = 2**53


class TypeConflict(Exception):
    """There is no one type for some values."""


class Integers(NamedTuple):
    """The type of some integers, of which only the bounds are known.

    Args:
      low: the smallest.
      high: the largest.
      exact: whether each of them is a float64.
    """

    low: int
    high: int
    exact: bool

    @property
    def name(self) -> str | None:
        """The type that holds them; None: there is none."""
        if self.low in _INT64 and self.high in _INT64:
            return "int64"
        return "uint64" if self.low in _UINT64 and self.high in _UINT64 else None


def type_of(value: Any, key: str = "", depth: int = 0) -> Any:
    """The type of a value: a name, `Integers`, a list with the type of its values, or a dict of types.

    Raises:
      TypeConflict: values of an array differ in type, or the value is nested too deeply.

    >>> type_of({"x": [1, 2.5], "y": "text", "z": None})
    {'x': ['float64'], 'y': 'text', 'z': None}
    """
    if depth > _MOST_DEEP:
        raise TypeConflict(f"arrays and objects are nested more than {_MOST_DEEP} deep")
    match value:
        case None:
            return NO_TYPE
        case bool():
            return "bool"
        case int():
            return Integers(value, value, -_EXACT <= value <= _EXACT or _is_float(value))
        case float():
            return "float64"
        case str():
            return "text"
        case list():
            inner = NO_TYPE
            for item in value:
                inner = merged(inner, type_of(item, key, depth + 1), key)
            return [inner]
        case _:
            under = f"{key}." if key else ""
            return {name: type_of(item, under + name, depth + 1) for name, item in value.items()}


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def merged(a: Any, b: Any, key: str = "") -> Any:
    """The type of values of which some have one type and some another.

    Raises:
      TypeConflict: there is none.
    """
    if a == b or b is NO_TYPE:
        return a
    if a is NO_TYPE:
        return b
    match a, b:
        case Integers(), Integers():
            if a.low <= b.low and b.high <= a.high and b.exact >= a.exact:
                return a
            return Integers(min(a.low, b.low), max(a.high, b.high), a.exact and b.exact)
        case (Integers() as some, "float64") | ("float64", Integers() as some):
            if not some.exact:
                raise TypeConflict(
                    f"key {key!r} has other numbers beside integers from {some.low} to {some.high}, of which some would change "
                    "as float64"
                )
            return "float64"
        case list(), list():
            return [merged(a[0], b[0], key)]
        case dict(), dict():
            under = f"{key}." if key else ""
            return {name: merged(a.get(name), b.get(name), under + name) for name in {**a, **b}}
    raise TypeConflict(f"key {key!r} has values of several types, {_told(a)} and {_told(b)}")


def _told(kind: Any) -> str:
    if isinstance(kind, Integers):
        return kind.name or "int64"
    return kind if isinstance(kind, str) else "array" if isinstance(kind, list) else "object"


def arrow_type(kind: Any, key: str) -> Any:
    """The pyarrow DataType.

    Raises:
      TypeConflict: it is unknown.
    """
    import pyarrow as pa

    match kind:
        case None:
            raise TypeConflict(f"the first records have no value at key {key!r}, so its type is unknown")
        case list():
            return pa.list_(arrow_type(kind[0], key))
        case dict():
            return pa.struct([(name, arrow_type(inner, f"{key}.{name}")) for name, inner in kind.items()])
        case Integers():
            if kind.name is None:
                raise TypeConflict(f"key {key!r} has integers from {kind.low} to {kind.high}, which no type holds")
            return pa.type_for_alias(kind.name)
    return {"bool": pa.bool_(), "float64": pa.float64(), "text": pa.binary()}[kind]
