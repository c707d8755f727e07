# SPDX-License-Identifier: Apache-2.0
"""Bounds of the values of each row group of a Parquet file, from the statistics in its footer.

They are decoded here, since pyarrow crashes the process where this part of a footer is damaged. Columns that are nested, or
whose order is not that of Python's numbers and bytes, are left out, and so are those that may hold nulls: what stands for a
null is no value of the file. Source: `parquet.thrift` of the format: ColumnMetaData, Statistics.
"""

import math
import struct
from functools import lru_cache
from typing import Any

from distinput.formats.parquet_columns import Compact, ThriftError, part_of, path_of
from distinput.formats.parquet_file import footer_bytes, footer_of
from distinput.formats.possible import ColumnBounds

__all__ = ["ranges_of"]

_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _STATISTICS = 4, 1, 3, 1, 12
_NULLS, _MAX, _MIN = 3, 5, 6
_INT32, _INT64, _FLOAT, _DOUBLE, _BYTES = 1, 2, 4, 5, 6
_LAYOUT = {_INT32: "<i", _INT64: "<q", _FLOAT: "<f", _DOUBLE: "<d"}
"""Physical types, and how their values are stored."""


@lru_cache(maxsize=256)
def ranges_of(path: str, stamp: str, nulls: Any = "error") -> list[dict[str, ColumnBounds]]:
    """For each row group, what is known about the values of its columns.

    Args:
      path: of the file.
      stamp: of its version.
      nulls: as the format has it; a null among floats is NaN where it has no replacement.
    """
    schema = footer_of(path, stamp).schema.to_arrow_schema()
    kinds = {field.name: _kind(field.type) for field in schema}
    replaced = set() if nulls == "error" else set(dict(nulls))
    try:
        groups = part_of(Compact(footer_bytes(path, stamp)).struct(), _ROW_GROUPS, list)
        return [_ranges(part_of(group, _COLUMNS, list), kinds, replaced) for group in groups]
    except ThriftError:
        return []  # without statistics everything is read, and damage that matters is found there


def _kind(kind: Any) -> str:
    """How values are ordered: "number", "float", "bytes"; empty if otherwise."""
    from pyarrow import types

    if types.is_signed_integer(kind) or types.is_uint8(kind) or types.is_uint16(kind):
        return "number"
    if types.is_float32(kind) or types.is_float64(kind):
        return "float"
    texts = types.is_string(kind), types.is_large_string(kind), types.is_binary(kind), types.is_large_binary(kind)
    return "bytes" if any(texts) else ""


def _ranges(columns: list[Any], kinds: dict[str, str], replaced: set[str]) -> dict[str, ColumnBounds]:
    bounds = {}
    for column in columns:
        described = part_of(column, _META_DATA, dict)
        path, told = path_of(described), part_of(described, _STATISTICS, dict, {})
        name = path[0]
        kind = kinds.get(name, "")
        if len(path) > 1 or not kind or _MIN not in told or _MAX not in told:
            continue
        if told.get(_NULLS, -1) != 0 and (kind != "float" or name in replaced):
            continue
        physical = part_of(described, _TYPE, int)
        low, high = [_value(physical, kind, part_of(told, number, bytes)) for number in (_MIN, _MAX)]
        if low is not None and high is not None and low <= high:
            bounds[name] = ColumnBounds(low, high, nan=kind == "float")
    return bounds


def _value(physical: int, kind: str, data: bytes) -> Any:
    if kind == "bytes":
        return data if physical == _BYTES else None
    if physical not in _LAYOUT or (kind == "float") != (physical in (_FLOAT, _DOUBLE)):
        return None
    if len(data) != struct.calcsize(_LAYOUT[physical]):
        raise ThriftError(f"a bound of {len(data)} bytes")
    (value,) = struct.unpack(_LAYOUT[physical], data)
    return None if isinstance(value, float) and math.isnan(value) else value
