# SPDX-License-Identifier: Apache-2.0
"""JSON Lines files: an object on each line."""

import json
from math import isfinite, isnan
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.record_batches import nulls_of, record_batch
from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.values.nest import component
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.arrow import check_table
from distinput.writers.writer import CompressedWriter, ShardFile


class JsonlWriter(CompressedWriter):
    """Lines of JSON objects; other elements become objects as `to_arrow` names their columns.

    Byte strings must be UTF-8. Values that are missing become null, and so do NaN and NaT, which JSON lacks, and which are
    read as they were. Infinite numbers are refused, and so are components that are None. Times of the years 0 to 9999
    become text as ISO 8601 has it. The manifest keeps the types, by which a folder is read as it was.

    Args:
      compression: of the whole file: None, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4" or "SNAPPY".

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    name: ClassVar[str] = "jsonl"
    suffix: ClassVar[str] = ".jsonl"

    def reading(self, spec: Spec) -> dict[str, Any]:
        schema = check_table(spec, True)
        nulls = nulls_of(schema)
        told = {"schema": {field.name: _told(field.type) for field in schema}} | ({"valid": nulls} if nulls else {})
        return told | super().reading(spec)

    def check(self, spec: Spec) -> None:
        check_table(spec, True)
        for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
            if isinstance(leaf, TensorSpec) and leaf.dtype.kind == "m":
                raise InvalidArgumentError(
                    f"write: JSON has no durations, and {component(path)} is {leaf}; cast it with map"
                )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        times = any(leaf.dtype.kind == "M" for leaf in spec.tensors("write"))
        return _File(sink, check_table(spec, True), times)


def _told(kind: Any) -> Any:
    """An Arrow type as `RowSchema.of` takes it, of JSON values."""
    from pyarrow import types

    if types.is_struct(kind):
        return {field.name: _told(field.type) for field in kind}
    if types.is_fixed_size_list(kind):
        return [_told(kind.value_type), kind.list_size]
    if types.is_large_list(kind):
        return [_told(kind.value_type)]
    if types.is_large_string(kind):
        return "object"
    if types.is_timestamp(kind) or types.is_date(kind):
        return f"datetime64[{kind.unit if types.is_timestamp(kind) else 'D'}]"
    return np.dtype(kind.to_pandas_dtype()).name


class _File(ShardFile):
    def __init__(self, sink: Sink, schema: Any, times: bool) -> None:
        self._sink, self._schema, self._times = sink, schema, times
        self._encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

    def write(self, block: Block) -> None:
        rows = _times_as_text(record_batch(block, self._schema)) if self._times else record_batch(block, self._schema)
        encode = self._encode
        lines = []
        for row in rows.to_pylist():
            try:
                lines.append(encode(row))
            except ValueError:  # NaN, or an infinite number
                lines.append(encode({name: _sound(name, value) for name, value in row.items()}))
        lines.append("")
        self._sink.write("\n".join(lines).encode())


def _sound(name: str, value: Any) -> Any:
    if isinstance(value, float):
        if not isfinite(value) and not isnan(value):
            raise InvalidArgumentError(
                f"write: JSON has no infinite numbers, and column {name!r} holds {value}; map it to another value"
            )
        return None if isnan(value) else value
    if isinstance(value, list):
        return [_sound(name, item) for item in value]
    return {key: _sound(f"{name}.{key}", item) for key, item in value.items()} if isinstance(value, dict) else value


def _times_as_text(batch: Any) -> Any:
    """The same rows with columns of times as text."""
    import pyarrow as pa
    from pyarrow import compute, types

    def text(name: str, array: Any) -> Any:
        kind = array.type
        if types.is_timestamp(kind) or types.is_date(kind):
            is_time = types.is_timestamp(kind)
            found = compute.strftime(array, format="%Y-%m-%dT%H:%M:%S") if is_time else array.cast("string")
            if compute.all(compute.match_substring_regex(found, "^[0-9]{4}-")).as_py() is False:
                raise InvalidArgumentError(
                    f"write: times of JSON are of the years 0 to 9999, and column {name!r} holds another; cast it to integers "
                    "with map"
                )
            return found
        if types.is_struct(kind):
            parts = zip(kind, array.flatten(), strict=True)
            made = [text(f"{name}.{field.name}", part) for field, part in parts]
            names = [field.name for field in kind]
            return pa.StructArray.from_arrays(made, names=names, mask=array.is_null()) if made else array
        if types.is_fixed_size_list(kind):
            return pa.FixedSizeListArray.from_arrays(text(name, array.values), kind.list_size, mask=array.is_null())
        if types.is_large_list(kind):
            return pa.LargeListArray.from_arrays(array.offsets, text(name, array.values), mask=array.is_null())
        return array

    names = batch.schema.names
    return pa.RecordBatch.from_arrays([text(*each) for each in zip(names, batch.columns, strict=True)], names)
