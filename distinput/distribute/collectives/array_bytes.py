# SPDX-License-Identifier: Apache-2.0
"""Arrays as bytes, without pickle: a short text that says dtype and shape, and the contents.

Numbers, dates, fixed-width strings and the extension dtypes of `ml_dtypes` travel as they lie in memory; object arrays of
bytes and str travel as lengths followed by contents. Nothing that is received is executed.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.distribute.collectives.channel import Array, Bytes
from distinput.values.leaves import dtype_code

__all__ = ["as_array", "describe", "family", "from_bytes", "packed", "parse", "to_bytes", "unpacked"]

# ---- Arrays as bytes, without pickle: a short text that says dtype and shape, and the contents

_TEXT = np.uint64(1 << 63)  # in a length: the contents are str, not bytes


def as_array(value: Any, call: str) -> Array:
    """A value as a C-contiguous array in this machine's byte order that can be sent; 0-d stays 0-d.

    Args:
      value: an array, or what NumPy makes one of.
      call: who sends it, for messages.

    Raises:
      TypeError: it holds Python objects other than bytes and str, or has fields.
    """
    array = np.asarray(value, order="C")  # not ascontiguousarray, which sequence () into (1,)
    if array.dtype.names is not None or (array.dtype.kind == "V" and not _is_extension(array.dtype)):
        raise TypeError(f"{call}: needs numbers, dates, bytes or str, got {array.dtype}; send the fields one by one")
    if array.dtype.kind == "O":
        for item in array.reshape(-1):
            if not isinstance(item, bytes | str):
                raise TypeError(
                    f"{call}: an object array may hold bytes and str only, got {type(item).__name__}; "
                    "turn it into numbers or bytes first"
                )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _is_extension(dtype: np.dtype[np.generic]) -> bool:
    """Whether NumPy finds the dtype by its name, as it does those of `ml_dtypes`."""
    try:
        return np.dtype(dtype.name) == dtype
    except TypeError:
        return False


def family(dtype: np.dtype[np.generic]) -> str:
    """The part of a dtype that all workers must share to gather arrays: everything but the width of strings.

    >>> family(np.dtype("S5")), family(np.dtype("f4"))
    ('bytes', 'float32')
    """
    return {"S": "bytes", "U": "str", "O": "object"}.get(dtype.kind, dtype.name)


def describe(array: Array) -> str:
    """Dtype and shape as text, for `parse`.

    >>> describe(np.zeros((2, 3), "f4"))
    '<f4 2,3'
    """
    return f"{dtype_code(array.dtype)} {','.join(map(str, array.shape))}"


def parse(text: str) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """The dtype and shape that `describe` wrote.

    Raises:
      TypeError: this process does not know the dtype.
    """
    code, _, shape = text.partition(" ")
    try:
        dtype = np.dtype(code)
    except TypeError as error:
        raise TypeError(f"broadcast: the dtype {code!r} of the root is not known here; import ml_dtypes") from error
    return dtype, tuple(int(n) for n in shape.split(",") if n)


def to_bytes(array: Array) -> Bytes:
    """The contents of an array from `as_array`; a view where possible."""
    if array.dtype.kind != "O":
        return array.reshape(-1).view(np.uint8)
    items = array.reshape(-1).tolist()
    lengths = np.zeros(len(items), np.uint64)
    for i, item in enumerate(items):
        if isinstance(item, str):
            items[i] = item.encode()
            lengths[i] = _TEXT
    lengths |= np.fromiter(map(len, items), np.uint64, len(items))
    return np.frombuffer(lengths.tobytes() + b"".join(items), np.uint8)


def from_bytes(data: Bytes, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """A new, writable, C-contiguous array from what `to_bytes` returned."""
    if dtype.kind != "O":
        array = np.empty(shape, dtype)
        if array.size and dtype.itemsize:
            array.reshape(-1).view(np.uint8)[:] = data
        return array
    count = math.prod(shape)
    lengths = data[: 8 * count].copy().view(np.uint64)
    is_text = (lengths & _TEXT).astype(bool).tolist()
    contents = data[8 * count :].tobytes()
    result = np.empty(count, object)
    at = 0
    for i, length in enumerate((lengths & ~_TEXT).tolist()):
        item = contents[at : at + length]
        result[i] = item.decode() if is_text[i] else item
        at += length
    return result.reshape(shape)


# ---- A small JSON value and several arrays as one array of bytes, to be sent to other workers in one call


def packed(note: Any, arrays: Sequence[Array]) -> Bytes:
    """A JSON value and arrays (of numbers, dates, bytes or str) as bytes [n].

    Raises:
      TypeError: an array holds other objects, or the note is not JSON.

    >>> import numpy as np
    >>> unpacked(packed({"from": 1}, [np.arange(3), np.array([b"a"], dtype=object)]))
    ({'from': 1}, [array([0, 1, 2]), array([b'a'], dtype=object)])
    """
    sent = [as_array(array, "exchange") for array in arrays]
    contents = [to_bytes(array) for array in sent]
    heads = [[describe(array), len(data)] for array, data in zip(sent, contents, strict=True)]
    head = json.dumps({"note": note, "arrays": heads}).encode()
    begin = np.frombuffer(len(head).to_bytes(8, "little") + head, np.uint8)
    return np.concatenate([begin, *contents])


def unpacked(data: Bytes) -> tuple[Any, list[Array]]:
    """The value and the arrays that `packed` was given."""
    at = 8 + int.from_bytes(data[:8].tobytes(), "little")
    head = json.loads(data[8:at].tobytes())
    arrays = []
    for about, nbytes in head["arrays"]:
        arrays.append(from_bytes(data[at : at + nbytes], *parse(about)))
        at += nbytes
    return head["note"], arrays
