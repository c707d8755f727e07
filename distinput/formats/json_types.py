# SPDX-License-Identifier: Apache-2.0
"""The types of JSON values, from which a schema is inferred: integers and other numbers become one type, nothing else does."""

from typing import Any, Final

__all__ = ["NO_TYPE", "arrow_type", "merged", "type_of"]

NO_TYPE: Final = None
"""The type of a null, and of what is in an empty array."""

_MOST_DEEP = 64

_INT64 = range(-(2**63), 2**63)


def type_of(value: Any, depth: int = 0) -> Any:
    """The type of a value: a name, a list with the type of its values, or a dict of types.

    Raises:
      TypeError: values of an array differ in type, or the value is nested too deeply.

    >>> type_of({"x": [1, 2.5], "y": "text", "z": None})
    {'x': ['float64'], 'y': 'text', 'z': None}
    """
    if depth > _MOST_DEEP:
        raise TypeError(f"arrays and objects are nested more than {_MOST_DEEP} deep")
    match value:
        case None:
            return NO_TYPE
        case bool():
            return "bool"
        case int():
            return "int64" if value in _INT64 else "float64"
        case float():
            return "float64"
        case str():
            return "text"
        case list():
            inner = NO_TYPE
            for item in value:
                inner = merged(inner, type_of(item, depth + 1))
            return [inner]
        case _:
            return {key: type_of(item, depth + 1) for key, item in value.items()}


def merged(a: Any, b: Any, key: str = "") -> Any:
    """The type of values of which some have one type and some another.

    Raises:
      TypeError: there is none.
    """
    if a == b or b is NO_TYPE:
        return a
    if a is NO_TYPE:
        return b
    match a, b:
        case ("int64", "float64") | ("float64", "int64"):
            return "float64"
        case list(), list():
            return [merged(a[0], b[0], key)]
        case dict(), dict():
            under = f"{key}." if key else ""
            return {name: merged(a.get(name), b.get(name), under + name) for name in {**a, **b}}
    raise TypeError(f"key {key!r} has values of several types, {_told(a)} and {_told(b)}")


def _told(kind: Any) -> str:
    return kind if isinstance(kind, str) else "array" if isinstance(kind, list) else "object"


def arrow_type(kind: Any, key: str) -> Any:
    """The pyarrow DataType.

    Raises:
      TypeError: it is unknown.
    """
    import pyarrow as pa

    match kind:
        case None:
            raise TypeError(f"the first records have no value at key {key!r}, so its type is unknown")
        case list():
            return pa.list_(arrow_type(kind[0], key))
        case dict():
            return pa.struct([(name, arrow_type(inner, f"{key}.{name}")) for name, inner in kind.items()])
    return {"bool": pa.bool_(), "float64": pa.float64(), "int64": pa.int64(), "text": pa.binary()}[kind]
