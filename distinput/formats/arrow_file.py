# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC files of one version: their schema, their record batches, and the mapping of a local one."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.picked import Rows
from distinput.errors import DataLossError
from distinput.files.mapping import mapped
from distinput.files.paths import local_path
from distinput.files.source import check_unchanged, open_ranges
from distinput.formats.arrow_messages import Batches, batches_of_file, batches_of_stream, check_end_of_stream, is_file
from distinput.formats.tables import checked_batch, naming_damage, table_spec

__all__ = ["ArrowFile", "arrow_file", "reading_batch"]


class ArrowFile:
    """A file of one version, seen through some of its columns.

    Attributes:
      whole: its bytes, if it is local.
      batches: where its record batches are; None for a stream that is not local.
      places: [leaves, batches] by `nulls`: the byte where the rows of each begin, as far as that was asked for.
      sources: by `nulls`: where the rows of each leaf are, if they all lie in the file; known when all places are.
    """

    def __init__(self, path: str, stamp: str, columns: tuple[str, ...] | None, trusted: bool) -> None:
        self.path, self.columns, self.trusted = path, columns, trusted
        self._stamp = stamp
        self._sound: set[int] = set()  # numbers of mapped batches that were checked
        self.places: dict[Any, Ints] = {}
        self.sources: dict[Any, list[Rows | None]] = {}
        local = local_path(path)
        self.whole: Bytes | None = None if local is None else mapped(local)
        self.listed = is_file(path)
        self.batches: Batches | None = None
        if self.listed:
            self.batches = batches_of_file(path)
        elif self.whole is not None:
            self.batches = batches_of_stream(path, self.whole)
        else:
            check_end_of_stream(path)
        with self._opened(None) as reader, reading_batch(path, None):  # names are decoded when they are first looked at
            self.schema = reader.schema
            self.spec = table_spec(path, self.schema, columns)
        if self.batches is not None and not trusted:
            self._read_empty(np.flatnonzero(np.diff(self.batches.ends) == 0).tolist())

    @property
    def views(self) -> bool:
        """Whether numbers are views of the mapped file."""
        return self.whole is not None and self.batches is not None and not self.batches.compressed

    @contextmanager
    def _opened(self, fields: list[int] | None) -> Iterator[Any]:
        """Pyarrow's reader of some columns."""
        import pyarrow as pa
        from pyarrow import ipc

        source = (
            pa.py_buffer(self.whole) if self.whole is not None else open_ranges(self.path, in_order=not self.listed)
        )
        options = ipc.IpcReadOptions(included_fields=fields)
        try:
            with reading_batch(self.path, None):
                reader = (ipc.open_file if self.listed else ipc.open_stream)(source, options=options)
            yield reader
        finally:
            if self.whole is None:
                source.close()

    @property
    def _fields(self) -> list[int] | None:
        # Of views pyarrow would make copies where it is told which ones; and it takes no field for all of them, so that then
        # the first one is read, and not used.
        return (
            None
            if self.columns is None or self.views
            else sorted({self.schema.names.index(c) for c in self.columns}) or [0]
        )

    def select(self, batch: Any) -> Any:
        """A batch with the columns asked for, in their order."""
        return batch if self.columns is None else batch.select(list(self.columns))

    def each(self, row: int) -> Iterator[tuple[int, Any]]:
        """The record batches, and their numbers, from the one that holds `row` on; of a stream from the first one on."""
        if self.listed:
            assert self.batches is not None
            first = int(np.searchsorted(self.batches.ends, row, "right")) - 1
            with self._opened(self._fields) as reader:
                for number in range(first, len(self.batches)):
                    yield number, self._listed(reader, number)
            return
        number = 0
        with self._opened(self._fields) as reader:
            while True:
                self.check_unchanged()
                with reading_batch(self.path, f"record batch {number}"):
                    try:
                        batch = reader.read_next_batch()
                    except StopIteration:
                        break
                yield number, self._checked(number, batch)
                number += 1

    def check_unchanged(self) -> None:
        """Refuse to look into a mapping of a file that has changed in place, where nothing may be any more.

        Raises:
          DataLossError: it has.
        """
        if self.whole is not None:
            check_unchanged(self.path, self._stamp)

    def _read_empty(self, numbers: list[int]) -> None:
        """Look into record batches that say they have no rows: nobody else ever would, and find that they do have some."""
        assert self.batches is not None
        if self.listed and numbers:
            with self._opened(self._fields) as reader:
                for number in numbers:
                    self._listed(reader, number)
        elif not self.listed and (
            not self.schema.names or not len(self.batches) or (numbers and self.batches.dictionaries)
        ):
            for _ in self.each(0):  # which reads all messages
                pass
        else:
            for number in numbers:
                self.batch(number)

    def _listed(self, reader: Any, number: int) -> Any:
        """A record batch of a file that lists them."""
        self.check_unchanged()
        with reading_batch(self.path, f"record batch {number}"):
            batch = reader.get_batch(number)
        return self._checked(number, batch)

    def batch(self, number: int) -> Any:
        """One record batch."""
        if self.listed:
            with self._opened(self._fields) as reader:
                return self._listed(reader, number)
        assert self.batches is not None
        assert self.whole is not None
        if self.batches.dictionaries:
            return next(batch for found, batch in self.each(0) if found == number)
        import pyarrow as pa
        from pyarrow import ipc

        start, size = int(self.batches.starts[number]), int(self.batches.sizes[number])
        with reading_batch(self.path, f"record batch {number}"):
            message = pa.py_buffer(self.whole[start : start + size])
            return self._checked(number, ipc.read_record_batch(message, self.schema))

    def _checked(self, number: int, batch: Any) -> Any:
        if self.batches is not None:
            rows = int(self.batches.ends[number + 1] - self.batches.ends[number])
            if batch.num_rows != rows:
                raise DataLossError(
                    f"{self.path}: record batch {number} should have {rows} rows, but has {batch.num_rows}"
                )
        batch = self.select(batch)
        if self.trusted or number in self._sound:
            return batch
        checked_batch(self.path, f"record batch {number}", batch)
        if self.views:
            self._sound.add(number)
        return batch


@lru_cache(maxsize=1024)
def arrow_file(path: str, stamp: str, columns: tuple[str, ...] | None, trusted: bool) -> ArrowFile:
    """A file; `stamp` tells one version of it from the next."""
    return ArrowFile(path, stamp, columns, trusted)


def reading_batch(path: str, part: str | None) -> AbstractContextManager[None]:
    """Errors of pyarrow inside the `with` name the file and the part of it."""
    return naming_damage("an Arrow IPC file", path, part)
