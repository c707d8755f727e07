# SPDX-License-Identifier: Apache-2.0
"""The records of a file as Arrow record batches, for looking at them: nulls are nulls, whatever `nulls=` says.

A dataset has no place for a null, so its readers refuse them or put something in their place. What shows, counts or describes
a file has to see them.
"""

from collections.abc import Iterator
from typing import Any

from distinput.arrow.record_batches import to_arrow
from distinput.errors import UnimplementedError
from distinput.files.source import stamp_of
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.format import Format
from distinput.formats.parquet import Parquet
from distinput.formats.parquet_file import footer_of, opened, reading, schema_of
from distinput.formats.partitioned import Partitioned
from distinput.formats.tables import check_columns, checked_batch
from distinput.formats.text_records import FIRST_BYTES
from distinput.formats.text_table import TextTable

_MOST_ROWS = 8192
_FEW = 256


def is_table(format: Format) -> bool:
    """Whether records of a format are rows of columns that may hold nulls."""
    return isinstance(format, ArrowIpc | Parquet | Partitioned | TextTable)


def schema_of_table(format: Format, path: str) -> Any:
    """The pyarrow Schema of the columns that a format reads of a file, whether arrays can hold them or not.

    None for a format whose files state no schema.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: it is damaged.
      InvalidArgumentError: a column does not exist.
    """
    import pyarrow as pa

    match format:
        case Parquet():
            schema = schema_of(path)
        case ArrowIpc():
            schema = format._file(path).schema
        case Partitioned():
            schema = schema_of_table(format.inner, path)
            return None if schema is None else format.arrow_schema(path, schema)
        case _:
            return None
    check_columns(path, schema, format.columns)
    return schema if format.columns is None else pa.schema([schema.field(name) for name in format.columns])


def table_batches(format: Format, path: str, most_rows: int = _MOST_ROWS) -> Iterator[Any]:
    """The records of a file as pyarrow RecordBatches, in order.

    A record of columns has a column for each; any other record is the column "value", or one for each component.

    Args:
      format: of the file.
      path: the file.
      most_rows: in a batch; if they are few, so are those that tell the types of text: for a look at the first ones.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: it is damaged; the records before come first.
      UnimplementedError: the records are not columns of values.

    >>> import distinput as di
    >>> import pyarrow as pa
    >>> from distinput.formats.parquet import Parquet
    >>> di.io.write_parquet("a.parquet", {"x": pa.array([1, None])})
    >>> [batch.to_pydict() for batch in table_batches(Parquet(), "a.parquet")]
    [{'x': [1, None]}]
    """
    match format:
        case Parquet():
            found = _of_parquet(format, path, most_rows)
        case ArrowIpc():
            found = (batch for _, batch in format._file(path).each(0))
        case TextTable():
            found = format.batches(path, FIRST_BYTES) if most_rows <= _FEW else format.batches(path)
        case Partitioned():
            found = map(format.with_folders(path), table_batches(format.inner, path, most_rows))
        case _:
            found = _of_blocks(format, path)
    for batch in found:
        for first in range(0, batch.num_rows, most_rows):
            yield batch.slice(first, most_rows)


def _of_parquet(format: Parquet, path: str, most_rows: int) -> Iterator[Any]:
    stamp = stamp_of(path)
    columns = None if format.columns is None else list(format.columns)
    check_columns(path, schema_of(path, stamp), columns)
    with opened(path, stamp) as reader:
        for group in range(footer_of(path, stamp).num_row_groups):
            reader.check_int96(group, columns)
            with reading(path, group):
                batches = reader.file.iter_batches(most_rows, row_groups=[group], columns=columns)
            while True:
                with reading(path, group):
                    batch = next(batches, None)
                if batch is None:
                    break
                batch = checked_batch(path, f"row group {group}", batch)
                yield batch if columns is None else batch.select(columns)


def _of_blocks(format: Format, path: str) -> Iterator[Any]:
    for block, _ in format.read(path):
        try:
            yield to_arrow(block.materialize())
        except (TypeError, ValueError) as error:
            raise UnimplementedError(f"{path}: its records cannot become columns: {error}") from error
