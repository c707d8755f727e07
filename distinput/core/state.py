# SPDX-License-Identifier: Apache-2.0
"""States: plain JSON values that say where a stream stands.

The whole contract: a stream yields `(block, state)`, and whoever starts again with that state receives exactly what would
have followed. A state holds positions, seeds and counts, never elements; the one exception is the carried value of `scan`,
which only the user's function can make.
"""

from binascii import a2b_base64, b2a_base64
from typing import Any

import numpy as np

from distinput.core.leaves import dtype_code
from distinput.core.nest import structure_of
from distinput.errors import StateError

__all__ = ["READABLE", "VERSION", "Mark", "State", "decode_value", "encode_value"]

State = dict[str, Any]

VERSION = 3
"""The version written into every saved state. It is raised when the layout of states changes (`tests/states`)."""

READABLE = (2, 3)
"""The versions that are restored."""

Mark = dict[str, Any]
"""Where a row stands in an input: `{"input": state, "skip": rows to pass over from there}`."""


def encode_value(value: Any) -> Any:
    """A nest of arrays, scalars and bytes as JSON."""
    structure = structure_of(value)
    return [_encode_leaf(leaf) for leaf in structure.flatten(value)]


def decode_value(coded: list[Any], like: Any) -> Any:
    """The nest that `encode_value` was given; `like` is a nest of the same structure.

    Raises:
      StateError: that was not given by it.
    """
    structure = structure_of(like)
    try:
        if len(coded) != len(structure.paths):
            raise ValueError(f"{len(coded)} leaves, expected {len(structure.paths)}")
        leaves = [_decode_leaf(leaf) for leaf in coded]
        for leaf, wanted in zip(leaves, structure.flatten(like), strict=True):
            if _kind(leaf) != _kind(wanted):
                raise ValueError(f"a leaf is {_kind(leaf)}, expected {_kind(wanted)}")
    except (AttributeError, KeyError, TypeError, ValueError, SyntaxError) as error:
        raise StateError(f"scan: the carried value in the state is damaged: {error}") from error
    return structure.build(leaves)


def _kind(leaf: Any) -> str:
    dtype = np.asarray(leaf).dtype
    return "text" if dtype.kind in "OSU" else str(dtype)


def _encode_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return {"bytes": _text(leaf)}
    array = np.asarray(leaf)
    if array.dtype.kind == "O":
        items = [_text(item) for item in array.reshape(-1).tolist()]
        return {"strings": items, "shape": list(array.shape)}
    data = _text(array.tobytes())
    return {"dtype": dtype_code(array.dtype), "shape": list(array.shape), "data": data}


def _text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _decode_leaf(coded: Any) -> Any:
    if "bytes" in coded:
        return a2b_base64(coded["bytes"])
    if "strings" in coded:
        out = np.empty(len(coded["strings"]), dtype=object)
        out[:] = [a2b_base64(item) for item in coded["strings"]]
        return out.reshape(coded["shape"])
    data = np.frombuffer(a2b_base64(coded["data"]), coded["dtype"]).reshape(coded["shape"]).copy()
    return data if data.ndim else data[()]
