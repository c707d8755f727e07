# SPDX-License-Identifier: Apache-2.0
"""JSON that files and messages hold, looked at before it is used.

What is not as its reader expects is an error of its own. Were it the KeyError or TypeError that Python raises when such a value
is used, a defect of a reader would look like a damaged file.
"""

from typing import Any

__all__ = ["MalformedJson", "items_of", "json_value", "member", "of_kind"]

_MOST_SHOWN = 60


class MalformedJson(ValueError):
    """What should be JSON of some form is not."""


def json_value(text: str | bytes | bytearray) -> Any:
    """The value of a JSON document.

    Raises:
      MalformedJson: it is none.

    >>> json_value(b'{"rows": 3}')
    {'rows': 3}
    """
    from json import loads  # which few first batches need

    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedJson(f"it is no JSON: {error}") from error


def of_kind(value: Any, what: str, *kinds: type) -> Any:
    """A value, if it is of one of these kinds; `bool` is no `int`.

    Raises:
      MalformedJson: it is of another kind.
    """
    if type(value) not in kinds:
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise MalformedJson(f"{what} must be {names}, got {repr(value)[:_MOST_SHOWN]}")
    return value


def member(found: Any, key: str, *kinds: type) -> Any:
    """A member of an object, if it is of one of these kinds; of any, if none are named.

    Raises:
      MalformedJson: it is not there, or of another kind, or `found` is no object.

    >>> member({"rows": 3}, "rows", int)
    3
    >>> member({"rows": "many"}, "rows", int)
    Traceback (most recent call last):
    distinput.values.json_values.MalformedJson: 'rows' must be int, got 'many'
    """
    if key not in of_kind(found, "it", dict):
        raise MalformedJson(f"it has no {key!r}")
    return of_kind(found[key], repr(key), *kinds) if kinds else found[key]


def items_of(value: Any, what: str, size: int | None = None) -> list[Any]:
    """The items of a list, or of a tuple that becomes one in JSON; there must be so many.

    Raises:
      MalformedJson: it is no list, or one of another length.
    """
    items = list(of_kind(value, what, list, tuple))
    if size is not None and len(items) != size:
        raise MalformedJson(f"{what} must have {size} items, got {repr(value)[:_MOST_SHOWN]}")
    return items
