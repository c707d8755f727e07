# SPDX-License-Identifier: Apache-2.0
"""Plain objects of JSON Lines without pyarrow: by one compiled pass over the text, see `kernels.plain_json`."""

import json
import re
from collections.abc import Collection
from typing import Any

import numpy as np

from distinput.core.column import Column
from distinput.formats.plain_columns import PlainColumns, as_inferred
from distinput.kernels.plain_csv import FLOAT32, FLOAT64, INT32, INT64, LEFT_OUT, TEXT
from distinput.kernels.plain_json import ESCAPED, OK, TRUTH, plain_json

__all__ = ["PlainObjects"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_FIRST = re.compile(rb"[ \t\r\n]*([^\n]*)\n")
_MOST_FIRST_BYTES = 64 * 1024  # of the object whose keys are looked at
_STRANGE = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
_NOTHING = np.empty(0, np.uint8)


class PlainObjects:
    """Reads objects whose values are numbers, truth values and text.

    Args:
      kinds: of the values that are read, by key; see `kernels.plain_json`.
    """

    def __init__(self, kinds: dict[str, int]) -> None:
        self._kinds = kinds

    @staticmethod
    def of(schema: Any, inferred: Collection[str] = ()) -> "PlainObjects | None":
        """For the columns of a pyarrow Schema; None if one of them is neither int, float, bool nor binary.

        Args:
          schema: of the values that are read.
          inferred: the keys of values whose types may change no number.
        """
        import pyarrow as pa

        known = {pa.int64(): INT64, pa.float64(): FLOAT64, pa.float32(): FLOAT32, pa.int32(): INT32}
        known |= {pa.binary(): TEXT, pa.bool_(): TRUTH}
        kinds = {field.name: known[field.type] for field in schema if field.type in known}
        if not kinds or len(kinds) < len(schema) or any(_STRANGE.search(name) for name in kinds):
            return None
        return PlainObjects({name: as_inferred(kind, name in inferred) for name, kind in kinds.items()})

    def columns(self, data: Bytes, count: int, others: bool) -> dict[str, Column] | None:
        """The columns by name, in the order of the schema; None if the objects are not plain.

        Args:
          data: whole lines.
          count: how many objects there are.
          others: whether objects may have keys that are not read.
        """
        names = self._keys(data, others)
        if names is None:
            return None
        kinds = [self._kinds.get(name, LEFT_OUT) for name in names]
        room = PlainColumns(kinds, count)
        keys = [f'"{name}"'.encode() for name in names]
        ends = np.cumsum([len(key) for key in keys])
        layout = np.stack([ends, np.array(kinds), np.array(room.places)], 1).astype(np.int64).reshape(-1)
        data, written = np.ascontiguousarray(data), np.frombuffer(b"".join(keys), np.uint8)
        text = data
        status, _ = plain_json(data, count, written, layout, room.out, _NOTHING)
        if status == ESCAPED:
            text = data.copy()
            status, _ = plain_json(data, count, written, layout, room.out, text)
        if status != OK:
            return None
        made = dict(zip(names, room.made(text), strict=True))
        found = ((name, made[name]) for name in self._kinds)
        return {name: column for name, column in found if column is not None}

    def _keys(self, data: Bytes, others: bool) -> list[str] | None:
        """The keys of the first object; None if it is not plain."""
        first = _FIRST.match(data[:_MOST_FIRST_BYTES].tobytes())
        if first is None:
            return None
        try:
            pairs = json.loads(first[1], object_pairs_hook=list)
        except (ValueError, RecursionError):
            return None
        if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
            return None  # an array, or no collection at all
        if any(isinstance(value, list) for _, value in pairs):
            return None
        names = [name for name, _ in pairs]
        known = set(names)
        if len(known) < len(names) or not known >= self._kinds.keys() or (not others and len(names) > len(self._kinds)):
            return None
        return None if any(_STRANGE.search(name) for name in names) else names
