# SPDX-License-Identifier: Apache-2.0
"""States: plain JSON values that say where a stream stands, with a checksum."""

from functools import cache
from typing import Any
from zlib import crc32

from distinput.errors import StateError

__all__ = ["READABLE", "VERSION", "Mark", "State", "compact", "opened", "sealed", "spaced", "start_of"]


# ----------------------------------------------------------------------------
# States: plain JSON values that say where a stream stands.
#
# The whole contract: a stream yields `(block, state)`, and whoever starts again with that state receives exactly what would
# have followed. A state holds positions, seeds and counts, never elements; the one exception is the carried value of `scan`,
# which only the user's function can make.
# ----------------------------------------------------------------------------


State = dict[str, Any]

VERSION = 3
"""The version written into every saved state. It is raised when the layout of states changes (`tests/states`)."""

READABLE = (2, 3)
"""The versions that are restored."""

Mark = dict[str, Any]
"""Where a row stands in an input: `{"input": state, "skip": rows to pass over from there}`."""


# ----------------------------------------------------------------------------
# A checksum in every saved state, so that a changed one is refused before anything of it is used.
# ----------------------------------------------------------------------------


@cache
def _encoder(item_separator: str, key_separator: str) -> Any:
    from json import JSONEncoder  # for states, which few first batches come with

    return JSONEncoder(sort_keys=True, separators=(item_separator, key_separator)).encode


def compact(value: Any) -> str:
    """JSON of a part of a state with sorted keys and no blanks, of which check words are made."""
    text: str = _encoder(",", ":")(value)
    return text


def spaced(value: Any) -> str:
    """JSON of a part of a state, as `json.dumps(value, sort_keys=True)` writes it."""
    text: str = _encoder(", ", ": ")(value)
    return text


def start_of(plan: Any) -> int:
    """The checksum of a plan, with which that of a whole state begins; it is the same for all states of a pipeline."""
    return crc32(compact(plan).encode())


def sealed(place: State, plan: Any = None) -> State:
    """The state of a place in a pipeline.

    Args:
      place: all of it but for its version, plan and check word.
      plan: a JSON value that stands for the pipeline; None: there is none.
    """
    check = crc32(compact(place).encode(), start_of(plan))
    if plan is None:
        return {"version": VERSION, "check": check, **place}
    return {"version": VERSION, "check": check, "plan": plan, **place}


def opened(state: Any, who: str, keys: set[str]) -> State:
    """A copy of an unchanged state, in plain JSON values, without its version and checksum.

    Args:
      state: what a user hands in.
      who: for the messages.
      keys: what it must have.

    Raises:
      StateError: it is not a state, was changed, or has another version.
    """
    if not isinstance(state, dict) or "version" not in state:
        raise StateError(f"{who}: expected a state as iterator.state() gives it, got {_short(type(state).__name__)}")
    version = state["version"]
    if type(version) is not int or version not in READABLE:
        raise StateError(
            f"{who}: the state has version {_short(version)}, this distinput reads versions "
            f"{' and '.join(map(str, READABLE))}; restore it with the distinput that saved it"
        )
    missing = {"check", *keys} - {key for key in state if isinstance(key, str)}
    if missing:
        raise StateError(f"{who}: the state lacks {sorted(missing)}; it must be what iterator.state() gave")
    from json import loads

    try:
        place = {key: value for key, value in state.items() if key not in ("version", "check", "plan")}
        plan, text = state.get("plan"), compact(place)
        check, found = crc32(text.encode(), start_of(plan)), {**loads(text), "plan": loads(compact(plan))}
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{who}: a state holds nothing but JSON values: {_short(error)}") from None
    if type(state["check"]) is not int or state["check"] != check:
        raise StateError(
            f"{who}: the state is not as it was saved: something in it was changed, added or left out, as its check word "
            "tells; hand in what iterator.state() gave, or what JSON made of that"
        )
    return found


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value) if not isinstance(value, Exception) else str(value)
    except Exception:  # noqa: BLE001 - whatever was handed in, the message is about the state
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."
