# SPDX-License-Identifier: Apache-2.0
"""Parquet files: every row is a record, a dict of the columns asked for."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, concat_blocks
from distinput.core.spec import Spec
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.paths import local_path
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, stamp_of
from distinput.formats.format import BLOCK_ROWS, Format, Fragment, Position, cut_rows
from distinput.formats.tables import arrays_of, as_columns, as_nulls, rows_block, table_spec

__all__ = ["Parquet", "write_parquet"]

_BLOCK_BYTES = 1 << 20
_WHOLE_BYTES = 32 << 20  # a row group up to this is decoded at once
_BATCH_ROWS = 1 << 16  # rows of a larger one that are decoded at once

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class _Part:
    """Decoded rows of a row group.

    Args:
      group: its number.
      first: the number of the first row in the row group.
      row: and in the file.
      batch: a record batch.
      most: rows in a block.
    """

    group: int
    first: int
    row: int
    batch: Any
    most: int


@dataclass(frozen=True)
class Parquet(Format):
    """Rows of Parquet files.

    Numbers, truth values and times become arrays; text and binary values bytes; lists rows of their own length;
    fixed-size lists another axis; structs dicts; dictionary-encoded values are decoded.

    Args:
      columns: names of the columns to read, the only ones that are looked at; None: all.
      batch_rows: the most rows in a block; None: as many as make about a megabyte.
      nulls: "error", or a dict with what to put in the place of nulls, by column. A null list becomes an empty one.

    Raises:
      InvalidArgumentError: no such option.
    """

    name: ClassVar[str] = "parquet"
    spec_from_file: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    fetches: ClassVar[bool] = True
    lists_fragments: ClassVar[bool] = True
    states_cardinality: ClassVar[bool] = True
    columns: Sequence[str] | None = None
    batch_rows: int | None = None
    nulls: Any = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", as_columns("parquet", self.columns))
        object.__setattr__(self, "nulls", as_nulls("parquet", self.nulls))
        if self.batch_rows is not None and self.batch_rows < 1:
            raise InvalidArgumentError(f"parquet: batch_rows must be at least 1, got {self.batch_rows}")

    def spec(self, path: str | None) -> Spec:
        if path is None:
            raise InvalidArgumentError("parquet: what a row looks like is said by the files; name at least one file")
        return table_spec(path, self._footer(path).schema.to_arrow_schema(), self.columns)

    def rows(self, path: str) -> int | None:
        return int(self._footer(path).num_rows)

    def bytes_read(self, path: str, size: int) -> int:
        if self.columns is None:
            return size
        footer = self._footer(path)
        return sum(
            column.total_compressed_size
            for group in range(footer.num_row_groups)
            for column in self._chosen(footer.row_group(group))
        )

    def seek(self, path: str, row: int) -> Position | None:
        del path
        return {"row": row}

    def fragments(self, path: str) -> list[Fragment]:
        footer = self._footer(path)
        found, row = [], 0
        for group in range(footer.num_row_groups):
            rows, size = footer.row_group(group).num_rows, footer.row_group(group).total_byte_size
            found.append(Fragment(path, {"row": row}, {"row": row + rows}, rows, size))
            row += rows
        return found or [Fragment(path, {"row": 0}, {"row": 0}, 0, 0)]

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        """The rows from `start` to before `stop`."""
        if stop is None:
            return Fragment(path, {"row": start}, None, None, 0)
        return Fragment(path, {"row": start}, {"row": stop}, stop - start, 0)

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return self.read_groups(path, position, 1, 0)

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        begin = 0 if position is None else position["row"]
        footer = self._footer(path)
        if begin > footer.num_rows:
            raise DataLossError(
                f"{path}: has {footer.num_rows} rows, but reading was to go on at row {begin}; it changed"
            )
        spec = self.spec(path)
        # The next rows are decoded on a thread, in which Python's lock is free, while those before are used; but only once
        # more than a single block is asked for.
        with self._opened(path, footer) as file, ThreadPoolExecutor(1, thread_name_prefix="distinput") as ahead:
            parts = self._parts(path, file, begin)
            part = next(parts, None)
            while part is not None:
                following: Future[_Part | None] | None = None
                rows = range(part.first, part.first + part.batch.num_rows)
                with _reading(path, part.group):
                    block = self._block(path, part.group, part.batch, spec, rows)
                for first, stop in cut_rows(block.size, part.most, size, given + part.row - begin):
                    yield block.rows(first, stop), {"row": part.row + stop}
                    following = following or ahead.submit(next, parts, None)
                part = following.result() if following is not None else next(parts, None)

    def _parts(self, path: str, file: Any, begin: int) -> Iterator["_Part"]:
        """The rows from number `begin` on as decoded, whole row groups where these fit in little memory, which is quicker."""
        before = 0
        for group in range(file.metadata.num_row_groups):
            footer = file.metadata.row_group(group)
            rows, over = footer.num_rows, max(0, begin - before)
            if over < rows:
                most = self.batch_rows or min(BLOCK_ROWS, max(1, _BLOCK_BYTES // max(1, self._bytes(footer) // rows)))
                row = 0
                with _reading(path, group):
                    for batch in self._batches(file, group, most):
                        kept = self._selected(batch.slice(over - row) if over > row else batch)
                        first, row = max(over, row), row + batch.num_rows
                        if kept.num_rows:
                            yield _Part(group, first, before + first, kept, most)
                if row != rows:
                    raise DataLossError(f"{path}: row group {group} should have {rows} rows, but has {row}")
            before += rows

    def _bytes(self, footer: Any) -> int:
        """The bytes, decoded, of those columns of a row group that are read."""
        if self.columns is None:
            return int(footer.total_byte_size)
        return sum(column.total_uncompressed_size for column in self._chosen(footer))

    def _chosen(self, footer: Any) -> Iterator[Any]:
        """What the footer says of those columns of a row group that are read."""
        columns = (footer.column(number) for number in range(footer.num_columns))
        chosen = self.columns
        return (column for column in columns if chosen is None or column.path_in_schema.split(".")[0] in chosen)

    def _batches(self, file: Any, group: int, most: int) -> Iterator[Any]:
        if self._bytes(file.metadata.row_group(group)) <= _WHOLE_BYTES and self.columns != ():
            return iter(file.read_row_group(group, columns=self._names()).to_batches())
        rows = max(1, _BATCH_ROWS // most) * most
        return file.iter_batches(rows, row_groups=[group], columns=self._names())  # type: ignore[no-any-return]

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order; only the row groups that hold them are read.

        Raises:
          InvalidArgumentError: a row that is not there.
        """
        wanted = np.asarray(rows, np.int64)
        footer, spec = self._footer(path), self.spec(path)
        if len(wanted) and (wanted.min() < 0 or wanted.max() >= footer.num_rows):
            raise InvalidArgumentError(
                f"{path}: rows must be from 0 to {footer.num_rows - 1}, got {wanted.tolist()!s:.80}"
            )
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        ends = np.cumsum(sizes, dtype=np.int64)
        order = np.argsort(wanted, kind="stable")
        in_order = wanted[order]
        groups = np.searchsorted(ends, in_order, "right")
        parts = []
        with self._opened(path, footer) as file:
            for group in np.unique(groups).tolist():
                local = in_order[groups == group] - (ends[group] - sizes[group])
                with _reading(path, group):
                    table = file.read_row_group(group, columns=self._names())
                    batch = self._selected(table.take(local).combine_chunks().to_batches()[0])
                    parts.append(self._block(path, group, batch, spec, local))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        if not parts:
            schema = footer.schema.to_arrow_schema()
            parts.append(self._block(path, 0, self._selected(_empty_batch(schema)), spec, []))
        return concat_blocks(parts).take(back)

    def _block(self, path: str, group: int, batch: Any, spec: Spec, rows: Sequence[int] | Ints) -> Block:
        """A batch as a block; `rows` are the numbers of its rows in the row group."""
        return rows_block(path, f"row group {group}", batch, spec.structure, self.nulls, rows)

    def _selected(self, batch: Any) -> Any:
        """The columns asked for, in their order."""
        # Choosing them takes as long as a block does, and the file mostly has them so.
        return (
            batch if self.columns is None or tuple(batch.schema.names) == self.columns else batch.select(self._names())
        )

    def _names(self) -> list[str] | None:
        return None if self.columns is None else list(self.columns)

    def _footer(self, path: str) -> Any:
        return _footer_of(path, stamp_of(path))

    @contextmanager
    def _opened(self, path: str, footer: Any) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile

        with _source(path) as source:
            with _reading(path, None):
                file = ParquetFile(source, metadata=footer, page_checksum_verification=True)
            try:
                yield file
            finally:
                file.close()


@lru_cache(maxsize=256)
def _footer_of(path: str, stamp: str) -> Any:
    """The footer of a file; `stamp` tells one version of the file from the next."""
    del stamp
    from pyarrow.parquet import read_metadata

    with _source(path) as source, _reading(path, None):
        footer = read_metadata(source)
        rows = sum(footer.row_group(group).num_rows for group in range(footer.num_row_groups))
    if rows != footer.num_rows:
        raise DataLossError(f"{path}: the footer says {footer.num_rows} rows, but its row groups have {rows}")
    return footer


def _empty_batch(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


@contextmanager
def _source(path: str) -> Iterator[Any]:
    """What pyarrow reads the file from."""
    import pyarrow as pa

    local = local_path(path)
    with naming(path):
        source = pa.OSFile(local, "rb") if local is not None else open_binary(path)
    with source:
        yield source


@contextmanager
def _reading(path: str, group: int | None) -> Iterator[None]:
    """Errors of pyarrow inside the `with` name the file and the row group."""
    import pyarrow as pa

    where = path if group is None else f"{path}: row group {group}"
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise UnimplementedError(f"{where}: {error}") from error
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise DataLossError(f"{where}: not a Parquet file, or damaged: {error}") from error
    except OSError as error:
        if error.errno is None:  # pyarrow's own, not one of the operating system
            raise DataLossError(f"{where}: not a Parquet file, or damaged: {error}") from error
        error.add_note(f"while reading {path!r}")
        raise


def write_parquet(
    path: str, columns: Mapping[str, Any], row_group_size: int | None = None, compression: str = "snappy"
) -> None:
    """Write columns as a Parquet file, with a checksum for every page; a local file appears when it is whole.

    Args:
      path: a local path or a URL.
      columns: by name: arrays [n, ...], lists of numbers, bytes, str or arrays, `Column`s, or Arrow arrays.
      row_group_size: rows in a row group; None: pyarrow's choice.
      compression: as pyarrow names it.

    Raises:
      InvalidArgumentError: the columns differ in length, or one of them is no column.
    """
    import pyarrow as pa
    from pyarrow.parquet import write_table

    arrays = arrays_of("write_parquet", columns)
    with Sink(path) as sink:
        target = pa.PythonFile(sink, mode="w")
        write_table(
            pa.table(arrays), target, row_group_size=row_group_size, compression=compression, write_page_checksum=True
        )
