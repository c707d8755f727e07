# SPDX-License-Identifier: Apache-2.0
"""Arrays and small JSON values as one array of bytes, to be sent to other workers; nothing that is received is executed."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.column import Strings
from distinput.core.values import STRING

__all__ = ["packed", "unpacked"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def packed(note: Any, arrays: Sequence[np.ndarray[Any, Any]]) -> Bytes:
    """A JSON value and arrays (of numbers, or objects that are byte strings) as bytes [n].

    >>> import numpy as np
    >>> unpacked(packed({"from": 1}, [np.arange(3), np.array([b"a"], dtype=object)]))
    ({'from': 1}, [array([0, 1, 2]), array([b'a'], dtype=object)])
    """
    heads, parts = [], []
    for array in arrays:
        if array.dtype == STRING:
            text = Strings.of(array.reshape(-1).tolist())
            heads.append({"dtype": "string", "shape": list(array.shape), "sizes": text.sizes.tolist()})
            parts.append(text.data)
        else:
            heads.append({"dtype": array.dtype.str, "shape": list(array.shape)})
            parts.append(np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8))
    head = json.dumps({"note": note, "arrays": heads}).encode()
    begin = np.frombuffer(len(head).to_bytes(8, "little") + head, np.uint8)
    return np.concatenate([begin, *parts])


def unpacked(data: Bytes) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """What was packed."""
    raw = data.tobytes()
    at = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:at])
    arrays = []
    for about in head["arrays"]:
        shape = about["shape"]
        if about["dtype"] == "string":
            sizes = about["sizes"]
            array = np.empty(len(sizes), dtype=object)
            for i, size in enumerate(sizes):
                array[i] = raw[at : at + size]
                at += size
            arrays.append(array.reshape(shape))
            continue
        dtype = np.dtype(about["dtype"])
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(raw[at : at + size], dtype).reshape(shape).copy())
        at += size
    return head["note"], arrays
