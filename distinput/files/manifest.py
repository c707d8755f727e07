# SPDX-License-Identifier: Apache-2.0
"""A manifest: the names, sizes and versions of files, listed once so that workers need not list them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distinput.core.arrow import NullsError, UnsupportedTypeError, to_column
from distinput.core.arrow_damage import ArrowDamageError
from distinput.core.column import Ints
from distinput.core.dense import Dense
from distinput.core.json_values import MalformedJson, json_value, member
from distinput.core.strings import Strings
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.concurrent_requests import ask_each
from distinput.files.paths import Paths, list_matching
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, size_of, version_of
from distinput.files.table import FileTable

__all__ = ["load_manifest", "save_manifest"]

_VERSION = 1
_COLUMNS = ("name", "size", "rows", "stamp")


def save_manifest(path: str, patterns: Paths, count: Callable[[str], int] | None = None) -> FileTable:
    """List files and save their names, sizes and stamps: as Parquet if `path` ends in `.parquet`, else as JSON.

    Args:
      path: of the manifest to write.
      patterns: of the files, as `list_files` takes them.
      count: returns the number of records of the file at a path; None: records are not counted.

    Raises:
      NotFoundError: no file matches.
    """
    names = sorted(set(list_matching(patterns)))
    stamps = list(ask_each(version_of, names))
    rows = [-1 if count is None else int(count(name)) for name in names]
    sizes = list(ask_each(size_of, names))
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
    """Load the files that `save_manifest` saved.

    Raises:
      NotFoundError: there is no such manifest.
      DataLossError: it is not a manifest, or it is damaged.
      InvalidArgumentError: it was written by another version.
    """
    with naming(path), open_binary(path) as file:
        if path.endswith(".parquet"):
            return _from_parquet(path, file)
        text = file.read()
    try:
        found = json_value(text)
        version = member(found, "distinput_manifest")
        names, sizes, rows, stamps = [member(found, name, list) for name in _COLUMNS]
        _check_kinds(names, sizes, rows, stamps)
    except MalformedJson as error:
        raise _damage(path, str(error)) from error
    if version != _VERSION:
        raise InvalidArgumentError(
            f"{path}: a manifest of version {version}, this distinput reads {_VERSION}; write it again"
        )
    return _checked(path, _table(names, np.array(sizes, np.int64), np.array(rows, np.int64), stamps))


def _check_kinds(names: list[Any], sizes: list[Any], rows: list[Any], stamps: list[Any]) -> None:
    """Refuse names and stamps that are no texts, and sizes and rows that are no integers.

    Raises:
      MalformedJson: there is one.
    """
    for text in (*names, *stamps):
        if type(text) is not str or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise MalformedJson(f"names and stamps must be texts, got {text!r:.60}")
    for number in (*sizes, *rows):
        if type(number) is not int or not -(1 << 63) <= number < 1 << 63:
            raise MalformedJson(f"sizes and rows must be integers, got {number!r:.60}")


def _checked(path: str, table: FileTable) -> FileTable:
    """The same table, checked to be complete.

    Raises:
      DataLossError: a column is shorter than another, or a size is negative.
    """
    lengths = {len(table.names), len(table.sizes), len(table.stamps if table.stamps is not None else table.names)}
    if len(lengths | ({len(table.rows)} if table.rows is not None else set())) > 1:
        raise _damage(path, "its columns have different lengths; each file must have a name, a size, rows and a stamp")
    if (table.sizes < 0).any():
        raise _damage(path, f"file {int((table.sizes < 0).argmax())} has a negative size")
    return table


def _damage(path: str, what: str) -> DataLossError:
    return DataLossError(f"{path}: not a distinput manifest, or damaged: {what}; write it again")


def _from_parquet(path: str, file: Any) -> FileTable:
    import pyarrow as pa
    from pyarrow.parquet import read_table

    try:
        found = read_table(pa.PythonFile(file, mode="r"), columns=list(_COLUMNS))
        missing = [column for column in _COLUMNS if found.column_names.count(column) != 1]
        if missing:
            raise _damage(path, f"it has no column {missing[0]!r}, or several")
        name, size, rows, stamp = [to_column(found.column(column), column) for column in _COLUMNS]
    except (pa.ArrowException, ArrowDamageError, NullsError, UnsupportedTypeError) as error:
        raise _damage(path, str(error)) from error
    except OSError as error:
        if error.errno is not None:  # from the operating system, not from pyarrow
            raise
        raise _damage(path, str(error)) from error
    if not (isinstance(name, Strings) and isinstance(stamp, Strings)):
        raise _damage(path, "names and stamps must be texts")
    if not (isinstance(size, Dense) and isinstance(rows, Dense) and size.dtype == rows.dtype == np.int64):
        raise _damage(path, "sizes and rows must be integers")
    return _checked(path, FileTable(name, size.array, _known(rows.array), stamp))


def _table(names: Sequence[str], sizes: Ints, rows: Ints, stamps: Sequence[str]) -> FileTable:
    texts = [Strings.of([text.encode() for text in column]) for column in (names, stamps)]
    return FileTable(texts[0], sizes, _known(rows), texts[1])


def _known(rows: Ints) -> Ints | None:
    return None if (rows < 0).all() else rows
