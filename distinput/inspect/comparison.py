# SPDX-License-Identifier: Apache-2.0
"""Whether two sets of files, of any formats, hold the same records in the same order."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from distinput.inspect.files import Files
from distinput.inspect.records import Record, records_of

__all__ = ["first_difference", "same"]

_SHOWN = 60


def first_difference(files: Files, others: Files) -> tuple[str | None, str] | None:
    """The first record that differs: its file, and what is wrong; None if there is none.

    Values are compared, not their types: an array of one value is that value, and what is missing is None, NaN, an empty list
    or a key that is not there, since formats write it in different ways.

    Args:
      files: the files.
      others: what their records should be.
    """
    for number, (one, other) in enumerate(zip_longest(_all(files), _all(others))):
        if one is None:
            return None, f"ends after {number} records, and the other files have more: {other.file}, record {other.row}"
        if other is None:
            return one.file, f"record {one.row} is one more than the other files have, which end after {number}"
        if not same(one.value, other.value):
            part = _part(one.value, other.value)
            return one.file, f"record {one.row} is not record {other.row} of {other.file}: {part}"
    return None


def _all(files: Files) -> Iterator[Record]:
    for path in files.paths:
        yield from records_of(files, path)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same.

    >>> same({"x": [7], "y": None}, {"x": 7}), same(b"a", "a"), same([1, 2], [2, 1])
    (True, True, False)
    """
    one, other = _plain(one), _plain(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(key), other.get(key)) for key in {**one, **other})
    if isinstance(one, dict) != isinstance(other, dict):  # a record without parts is written as the column "value"
        held, bare = (one, other) if isinstance(one, dict) else (other, one)
        return list(held) == ["value"] and same(held["value"], bare)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, list) or isinstance(other, list):
        items, bare = (one, other) if isinstance(one, list) else (other, one)
        return same(items[0], bare) if len(items) == 1 else not items and _missing(bare)
    return bool(one == other) or (_missing(one) and _missing(other))


def _missing(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, float) and value != value)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_list"):
        return value.to_list()
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.encode() if isinstance(value, str) else value


def _part(one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            if not same(one.get(key), other.get(key)):
                return f"{key!r} is {_short(one.get(key))}, not {_short(other.get(key))}"
    return f"it is {_short(one)}, not {_short(other)}"


def _short(value: Any) -> str:
    text = repr(_plain(value))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
