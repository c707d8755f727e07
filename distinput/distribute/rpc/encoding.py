# SPDX-License-Identifier: Apache-2.0
"""Messages between client and server as bytes: a JSON text, then the contents of arrays as they lie in memory.

Nothing that is received is executed, and no more memory is asked for than bytes were received.
"""

import json
import math
from typing import Any

import numpy as np

from distinput.core.adopt import leaf_of
from distinput.distribute.collectives.array_bytes import as_array, describe, from_bytes, parse, to_bytes
from distinput.errors import InvalidArgumentError

__all__ = ["decoded", "encoded"]

Array = np.ndarray[Any, Any]


def encoded(note: dict[str, Any], value: Any) -> bytes:
    """A JSON object and a nest of arrays, numbers, text and None as bytes.

    Tuples, dicts with text for keys, and lists of arrays or nests keep their structure; other lists become arrays.
    Python's numbers get TensorFlow's dtypes, and text becomes bytes.

    Raises:
      TypeError: a leaf cannot be an array, or a key is not text.

    >>> decoded(encoded({"call": "add"}, (1, {"x": [0.5, 1.0]}, None)))
    ({'call': 'add'}, (np.int32(1), {'x': array([0.5, 1. ], dtype=float32)}, None))
    """
    arrays: list[Array] = []
    structure = _structure(value, arrays)
    contents = [to_bytes(array) for array in arrays]
    heads = [[describe(array), len(data)] for array, data in zip(arrays, contents, strict=True)]
    head = json.dumps({"note": note, "value": structure, "arrays": heads}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *[data.tobytes() for data in contents]])


def decoded(data: bytes) -> tuple[dict[str, Any], Any]:
    """The JSON object and the nest that `encoded` was given, with NumPy arrays, scalars and bytes for leaves.

    Raises:
      InvalidArgumentError: this is no such message.
    """
    try:
        return _decoded(data)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        raise InvalidArgumentError(
            f"rpc: this is no message of a distinput client or server ({type(error).__name__}: {error}); both ends must be "
            "distinput, of versions that go together"
        ) from error


def _decoded(data: bytes) -> tuple[dict[str, Any], Any]:
    raw = np.frombuffer(data, np.uint8)
    at = 8 + int.from_bytes(data[:8], "little")
    if not 8 <= at <= len(data):
        raise ValueError(f"a head of {at - 8} bytes in {len(data)}")
    head = json.loads(data[8:at])
    arrays = []
    for text, nbytes in head["arrays"]:
        dtype, shape = parse(text)
        _check(dtype, shape, nbytes, len(data) - at)
        arrays.append(from_bytes(raw[at : at + nbytes], dtype, shape))
        at += nbytes
    if not isinstance(head["note"], dict):
        raise TypeError("a note that is no object")
    return head["note"], _nest(head["value"], arrays)


def _check(dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: Any, left: int) -> None:
    """Raise ValueError if an array cannot be made of the bytes that are there."""
    if type(nbytes) is not int or not 0 <= nbytes <= left or any(size < 0 for size in shape):
        raise ValueError(f"an array {list(shape)} of {nbytes} bytes, and {left} are left")
    count = math.prod(shape)
    least = 8 * count if dtype.kind == "O" else dtype.itemsize * count
    if dtype.names is not None or not dtype.itemsize or nbytes < least or (dtype.kind != "O" and nbytes != least):
        raise ValueError(f"{nbytes} bytes for an array {list(shape)} of {dtype}")


def _structure(value: Any, arrays: list[Array]) -> Any:
    """What JSON says of a nest; its leaves are appended to `arrays`."""
    if value is None:
        return None
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"rpc: keys of dicts must be text, got {list(value)}")
        return {"dict": [[key, _structure(part, arrays)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_structure(part, arrays) for part in value]}
    if isinstance(value, list) and not _is_plain(value):
        return {"list": [_structure(part, arrays) for part in value]}
    leaf = leaf_of(value)
    if isinstance(leaf, bytes):
        made = np.empty((), object)
        made[()] = leaf
        arrays.append(made)
    else:
        arrays.append(as_array(leaf, "rpc"))
    return len(arrays) - 1


def _is_plain(value: list[Any]) -> bool:
    """Whether a list holds Python's numbers and text alone, and lists of them."""
    return bool(value) and all(
        _is_plain(part) if isinstance(part, list) else isinstance(part, int | float | complex | str | bytes)
        for part in value
    )


def _nest(structure: Any, arrays: list[Array]) -> Any:
    if structure is None:
        return None
    if type(structure) is int:
        if structure < 0:
            raise IndexError(structure)
        return arrays[structure][()]
    ((kind, parts),) = structure.items()
    if kind == "dict":
        return {key: _nest(part, arrays) for key, part in parts}
    if kind not in ("list", "tuple"):
        raise KeyError(kind)
    made = [_nest(part, arrays) for part in parts]
    return made if kind == "list" else tuple(made)
