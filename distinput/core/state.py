# SPDX-License-Identifier: Apache-2.0
"""States: plain JSON values that say where a stream stands.

The whole contract: a stream yields `(block, state)`, and whoever starts again with that state receives exactly what would
have followed. A state holds positions, seeds and counts, never elements; the one exception is the carried value of `scan`,
which only the user's function can make.
"""

import base64
from typing import Any

import numpy as np

from distinput.core.nest import structure_of
from distinput.errors import StateError

__all__ = ["READABLE", "VERSION", "Mark", "State", "alike", "decode_value", "encode_value", "taken_up"]

State = dict[str, Any]

VERSION = 3
"""The version written into every saved state. It is raised when the layout of states changes (`tests/states`)."""

READABLE = (2, 3)
"""The versions that are restored."""

Mark = dict[str, Any]
"""Where a row stands in an input: `{"input": state, "skip": rows to pass over from there}`."""


def taken_up(op: str, begin: State, saved: State | None) -> State:
    """Where to go on in a dataset that a function has made again; `begin` is its state before the first element.

    Args:
      op: whose function it is, for the message.
      begin: tells what its states look like.
      saved: where it was; None: at its beginning.

    Raises:
      StateError: it is of other steps than the one that was made before.
    """
    if saved is None:
        return begin
    if not alike(saved, begin):
        raise StateError(
            f"{op}: the function made a dataset of other steps when the state was saved; restore with the function that was "
            "there then, which must make the same dataset of the same element each time"
        )
    return saved


def alike(saved: Any, begin: Any) -> bool:
    """Whether a state has the form of those of the steps that have `begin` as their first."""
    if not isinstance(begin, dict):
        return True
    if not isinstance(saved, dict) or not saved.keys() >= begin.keys():  # some are there only when they are needed
        return False
    # A concatenation that has gone on to its other part holds a state of that.
    return saved.get("part") != begin.get("part") or all(alike(saved[key], begin[key]) for key in begin)


def encode_value(value: Any) -> Any:
    """A nest of arrays, scalars and bytes as JSON."""
    structure = structure_of(value)
    return [_encode_leaf(leaf) for leaf in structure.flatten(value)]


def decode_value(coded: list[Any], like: Any) -> Any:
    """The nest that `encode_value` was given; `like` is a nest of the same structure."""
    return structure_of(like).build([_decode_leaf(leaf) for leaf in coded])


def _encode_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return {"bytes": base64.b64encode(leaf).decode()}
    array = np.asarray(leaf)
    if array.dtype.kind == "O":
        items = [base64.b64encode(item).decode() for item in array.reshape(-1).tolist()]
        return {"strings": items, "shape": list(array.shape)}
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def _decode_leaf(coded: Any) -> Any:
    if "bytes" in coded:
        return base64.b64decode(coded["bytes"])
    if "strings" in coded:
        out = np.empty(len(coded["strings"]), dtype=object)
        out[:] = [base64.b64decode(item) for item in coded["strings"]]
        return out.reshape(coded["shape"])
    data = np.frombuffer(base64.b64decode(coded["data"]), coded["dtype"]).reshape(coded["shape"]).copy()
    return data if data.ndim else data[()]
