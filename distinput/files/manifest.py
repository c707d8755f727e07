# SPDX-License-Identifier: Apache-2.0
"""A manifest: the names, sizes and versions of files, listed once and loaded by every worker instead of listing."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distinput.core.column import Ints, Strings
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.paths import Paths, list_matching
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, size_of, version_of
from distinput.files.table import FileTable

__all__ = ["load_manifest", "save_manifest"]

_VERSION = 1
_COLUMNS = ("name", "size", "rows", "stamp")


def save_manifest(path: str, patterns: Paths, count: Callable[[str], int] | None = None) -> FileTable:
    """List files and write their names, sizes and stamps down, as JSON or, for a path that ends so, as Parquet.

    Args:
      path: of the manifest.
      patterns: of the files, as `list_files` takes them.
      count: path -> records of the file; None: they are not counted.

    Raises:
      NotFoundError: no file matches.
    """
    names = list_matching(patterns)
    stamps = [version_of(name) for name in names]
    rows = [-1 if count is None else int(count(name)) for name in names]
    sizes = [size_of(name) for name in names]
    columns = dict(zip(_COLUMNS, (names, sizes, rows, stamps), strict=True))
    with Sink(path) as sink:
        if path.endswith(".parquet"):
            import pyarrow as pa
            from pyarrow.parquet import write_table

            write_table(pa.table(columns), pa.PythonFile(sink, mode="w"))
        else:
            sink.write(json.dumps({"distinput_manifest": _VERSION, **columns}).encode())
    return _table(names, np.array(sizes, np.int64), np.array(rows, np.int64), stamps)


def load_manifest(path: str) -> FileTable:
    """The files that `save_manifest` wrote down.

    Raises:
      NotFoundError: there is no such manifest.
      DataLossError: it is none, or damaged.
      InvalidArgumentError: it was written by another version.
    """
    with naming(path), open_binary(path) as file:
        if path.endswith(".parquet"):
            return _from_parquet(path, file)
        text = file.read()
    try:
        found = json.loads(text)
        version = found["distinput_manifest"]
        columns = [found[name] for name in _COLUMNS]
    except (ValueError, KeyError, TypeError) as error:
        raise DataLossError(f"{path}: no manifest of distinput, or damaged: {error}; write it again") from error
    if version != _VERSION:
        raise InvalidArgumentError(
            f"{path}: a manifest of version {version}, this distinput reads {_VERSION}; write it again"
        )
    names, sizes, rows, stamps = columns
    return _table(names, np.array(sizes, np.int64), np.array(rows, np.int64), stamps)


def _from_parquet(path: str, file: Any) -> FileTable:
    import pyarrow as pa
    from pyarrow.parquet import read_table

    try:
        found = read_table(pa.PythonFile(file, mode="r"), columns=list(_COLUMNS)).combine_chunks()
        names, sizes, rows, stamps = [found.column(name).combine_chunks() for name in _COLUMNS]
    except (pa.ArrowException, KeyError) as error:
        raise DataLossError(f"{path}: no manifest of distinput, or damaged: {error}; write it again") from error
    return FileTable(_strings(names), sizes.to_numpy(), _known(rows.to_numpy()), _strings(stamps))


def _strings(column: Any) -> Strings:
    """An Arrow column of text, without a Python object for each."""
    chunk = column.chunk(0) if hasattr(column, "chunk") else column
    _, offsets, data = chunk.buffers()
    ends = np.frombuffer(offsets, np.int32)[: len(chunk) + 1].astype(np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Strings(held, ends[:-1], np.diff(ends))


def _table(names: Sequence[str], sizes: Ints, rows: Ints, stamps: Sequence[str]) -> FileTable:
    texts = [Strings.of([text.encode() for text in column]) for column in (names, stamps)]
    return FileTable(texts[0], sizes, _known(rows), texts[1])


def _known(rows: Ints) -> Ints | None:
    return None if (rows < 0).all() else rows
