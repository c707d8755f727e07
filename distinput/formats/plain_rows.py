# SPDX-License-Identifier: Apache-2.0
"""Rows of plain CSV without pyarrow: by one compiled pass over the text, see `kernels.plain_csv`."""

from collections.abc import Collection
from typing import Any

import numpy as np

from distinput.core.column import Column
from distinput.formats.plain_columns import PlainColumns, as_inferred
from distinput.kernels.plain_csv import FLOAT32, FLOAT64, INT32, INT64, LEFT_OUT, OK, TEXT, plain_csv

__all__ = ["PlainRows"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class PlainRows:
    """Reads records whose columns are numbers and text.

    Args:
      names: of the values of a record, in order.
      kinds: of the columns that are read, by name; see `kernels.plain_csv`.
      delimiter: the byte between values.
      quote: the byte around quoted values; -1: nothing is quoted.
    """

    def __init__(self, names: tuple[str, ...], kinds: dict[str, int], delimiter: int, quote: int) -> None:
        self._kinds, self._delimiter, self._quote = kinds, delimiter, quote
        self._order = [(name, kinds.get(name, LEFT_OUT)) for name in names]

    @staticmethod
    def of(
        names: tuple[str, ...], schema: Any, delimiter: int, quote: int, inferred: Collection[str] = ()
    ) -> "PlainRows | None":
        """For the columns of a pyarrow Schema; None if one of them is neither int, float nor binary.

        Args:
          names: of the values of a record, in order.
          schema: of the columns that are read.
          delimiter: the byte between values.
          quote: the byte around quoted values; -1: nothing is quoted.
          inferred: the names of columns whose types may change no number.
        """
        import pyarrow as pa

        known = {pa.int64(): INT64, pa.float64(): FLOAT64, pa.float32(): FLOAT32, pa.int32(): INT32, pa.binary(): TEXT}
        kinds = {field.name: known.get(field.type) for field in schema}
        if not kinds or None in kinds.values() or not set(kinds) <= set(names):
            return None
        made = {name: as_inferred(kind, name in inferred) for name, kind in kinds.items() if kind is not None}
        return PlainRows(names, made, delimiter, quote)

    def columns(self, data: Bytes, count: int) -> dict[str, Column] | None:
        """The columns by name, in the order of the schema; None if the records are not plain.

        Args:
          data: whole records.
          count: how many there are.
        """
        kinds = [kind for _, kind in self._order]
        room = PlainColumns(kinds, count)
        layout = np.array(list(zip(kinds, room.places, strict=True)), np.int64)
        data = np.ascontiguousarray(data)
        if plain_csv(data, count, self._delimiter, self._quote, layout.reshape(-1), room.out)[0] != OK:
            return None
        made = {
            name: column for (name, _), column in zip(self._order, room.made(data), strict=True) if column is not None
        }
        return {name: made[name] for name in self._kinds}
