# SPDX-License-Identifier: Apache-2.0
"""The types of JSON values, from which a schema is inferred: integers and other numbers become one type, nothing else does.

No number is changed by a type that is inferred: integers are int64 or uint64, and beside other numbers they must be float64s.
"""

from typing import Any, Final, NamedTuple

__all__ = ["NO_TYPE", "Integers", "TypeConflict", "arrow_type", "merged", "type_of"]

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
