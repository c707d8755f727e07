# SPDX-License-Identifier: Apache-2.0
"""Parquet files, with a checksum for every page."""

from typing import Any, ClassVar

from distinput.arrow.record_batches import Text, record_batch
from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.compression import page_codec
from distinput.files.sink import Sink
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, normalized
from distinput.values.spec import Spec
from distinput.writers.arrow import as_text, check_table, target
from distinput.writers.writer import ShardFile, Writer

_GROUP_BYTES = 64 << 20
_GROUP_ROWS = 1 << 20


@dataclass(frozen=True)
class ParquetWriter(Writer):
    """Rows of Parquet files; `distinput.data.ParquetDataset` and any other reader of Parquet read them.

    Parquet has no times in seconds: `datetime64[s]` becomes `datetime64[ms]`, which the `element_spec` of the files says too.

    Args:
      compression: of the pages, as pyarrow names it: "snappy", "zstd", "gzip", "lz4", "brotli", or None.
      text: columns whose byte strings are UTF-8 and become strings: True for all, or a list of names.
      row_group_size: rows in a row group; None: about 64 MiB of them, at most 1,048,576.

    Raises:
      InvalidArgumentError: the compression is unknown, or `row_group_size` is less than 1.
    """

    name: ClassVar[str] = "parquet"
    suffix: ClassVar[str] = ".parquet"
    codec: str = "snappy"
    text: Text = False
    row_group_size: int | None = None

    def __init__(
        self, compression: str | None = "snappy", text: Any = False, row_group_size: int | None = None
    ) -> None:
        normalized(self, "codec", page_codec("write", compression))
        normalized(self, "text", as_text(text))
        if row_group_size is not None:
            at_least("write", "row_group_size", row_group_size, 1)
        normalized(self, "row_group_size", row_group_size)

    def check(self, spec: Spec) -> None:
        for field in check_table(spec, self.text):
            _check_fields(field.type, field.name)

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        from pyarrow.parquet import ParquetWriter as Pages

        schema = check_table(spec, self.text)
        pages = Pages(target(sink), schema, compression=self.codec, write_page_checksum=True)
        return _File(pages, schema, self.row_group_size)


def _check_fields(kind: Any, name: str) -> None:
    """Refuse a struct without fields, for which Parquet has no place.

    Raises:
      InvalidArgumentError: the column is one, or holds one.
    """
    from pyarrow import types

    if not types.is_struct(kind):
        return
    if not kind.num_fields:
        raise InvalidArgumentError(
            f"write: column {name!r} is a dict without items, which Parquet files cannot hold; leave it out with map, or write "
            "Arrow files"
        )
    for field in kind:
        _check_fields(field.type, f"{name}.{field.name}")


class _File(ShardFile):
    """Collects rows until they fill a row group."""

    def __init__(self, pages: Any, schema: Any, rows: int | None) -> None:
        self._pages, self._schema, self._wanted = pages, schema, rows
        self._batches: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, block: Block) -> None:
        batch = record_batch(block, self._schema)
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._wanted is not None:
            while self._rows >= self._wanted:
                self._put(self._wanted)
        elif self._bytes >= _GROUP_BYTES or self._rows >= _GROUP_ROWS:
            self._put(self._rows)

    def finish(self) -> None:
        if self._rows:
            self._put(self._rows)
        self._pages.close()

    def discard(self) -> None:
        self._pages.is_open = False  # or it would write a footer when it is collected, to a file that is closed

    def _put(self, rows: int) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._batches, self._schema)
        self._pages.write_table(table.slice(0, rows), row_group_size=rows)
        rest = table.slice(rows)
        self._batches, self._rows, self._bytes = rest.to_batches(), rest.num_rows, rest.nbytes
