# SPDX-License-Identifier: Apache-2.0
"""A small JSON value and several arrays as one array of bytes, to be sent to other workers in one call."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.distribute.collectives.array_bytes import as_array, describe, from_bytes, parse, to_bytes
from distinput.distribute.collectives.channel import Array, Bytes

__all__ = ["packed", "unpacked"]


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
