# SPDX-License-Identifier: Apache-2.0
"""One object of JSON, read with care: keys that come twice, halves of surrogate pairs and numbers that are too large are told.

The rules are those of the quick readers: text is what its bytes are, UTF-8 or not; NaN and Infinity are floats.
"""

import json
import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

__all__ = ["Large", "Twice", "changes", "has_half", "read_record", "refusal"]

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
