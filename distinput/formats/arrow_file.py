# SPDX-License-Identifier: Apache-2.0
"""One version of an Arrow IPC file: its schema, its record batches, and its memory map if it is local."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.picked import RowArray
from distinput.core.spec import Spec
from distinput.errors import DataLossError
from distinput.files.mapping import mapped
from distinput.files.paths import local_path
from distinput.files.source import check_unchanged, open_ranges
from distinput.formats.arrow_messages import Batches, batches_of_file, batches_of_stream, check_end_of_stream, is_file
from distinput.formats.tables import check_columns, checked_batch, naming_damage, table_spec

__all__ = ["ArrowFile", "arrow_file", "reading_batch"]


class ArrowFile:
    """One version of a file, restricted to some of its columns.

    Attributes:
      whole: its bytes, if it is mapped.
      batches: where its record batches are; None for a stream that is not mapped.
      places: by `nulls`, [leaves, batches]: the byte at which the rows begin, as far as known so far.
      sources: by `nulls`: the rows of each leaf if they all lie in the file; set once all places are known.
    """

    def __init__(self, path: str, stamp: str, columns: tuple[str, ...] | None, trusted: bool, memory_map: bool) -> None:
        self.path, self.columns, self.trusted = path, columns, trusted
        self._stamp = stamp
        self._sound: set[int] = set()  # numbers of the mapped batches that passed the check
        self.places: dict[Any, Ints] = {}
        self.sources: dict[Any, list[RowArray | None]] = {}
        self._local = local_path(path)
        self.whole: Bytes | None = mapped(self._local) if self._local is not None and memory_map else None
        self.listed = is_file(path)
        self.batches: Batches | None = None
        if self.listed:
            self.batches = batches_of_file(path)
        elif self.whole is not None:
            self.batches = batches_of_stream(path, self.whole)
        else:
            check_end_of_stream(path)
        with (
            self._opened(None) as reader,
            reading_batch(path, self._schema_part),
        ):  # pyarrow decodes names on first access
            self.schema = reader.schema
            check_columns(path, self.schema, columns)
        if self.batches is not None and not trusted:
            self._read_empty(np.flatnonzero(np.diff(self.batches.ends) == 0).tolist())

    @cached_property
    def spec(self) -> Spec:
        """The spec of a row.

        Raises:
          UnimplementedError: a column has a type that no array can hold.
        """
        return table_spec(self.path, self.schema, self.columns)

    @property
    def views(self) -> bool:
        """True if numbers are views of the mapped file."""
        return (
            self.whole is not None
            and self.batches is not None
            and not (self.batches.compressed or self.batches.swapped)
        )

    @property
    def single(self) -> bool:
        """True if a batch can be read without those before it."""
        return self.batches is not None and (self.listed or not self.batches.dictionaries)

    @property
    def _schema_part(self) -> str:
        """What is read first: of a stream, the schema; of a file, what its end says of all of it."""
        return "its footer" if self.listed else "the schema at its beginning"

    @contextmanager
    def _opened(self, fields: list[int] | None) -> Iterator[Any]:
        """A pyarrow reader of the fields with these numbers; None: all."""
        import pyarrow as pa
        from pyarrow import ipc

        source = (
            pa.py_buffer(self.whole) if self.whole is not None else open_ranges(self.path, in_order=not self.listed)
        )
        options = ipc.IpcReadOptions(included_fields=fields)
        try:
            with reading_batch(self.path, self._schema_part):
                reader = (ipc.open_file if self.listed else ipc.open_stream)(source, options=options)
            yield reader
        finally:
            if self.whole is None:
                source.close()

    @property
    def _fields(self) -> list[int] | None:
        # Given a selection, pyarrow copies instead of making views; and it takes an empty selection for all fields, so
        # then the first field is read and not used.
        return (
            None
            if self.columns is None or self.views
            else sorted({self.schema.names.index(c) for c in self.columns}) or [0]
        )

    def select(self, batch: Any) -> Any:
        """A batch reduced to the requested columns, in the requested order."""
        return batch if self.columns is None else batch.select(list(self.columns))

    def each(self, row: int) -> Iterator[tuple[int, Any]]:
        """Numbered record batches, from the one that holds `row` on, or from the first one where it needs those before it."""
        first = 0 if self.batches is None else int(np.searchsorted(self.batches.ends, row, "right")) - 1
        if self.listed:
            assert self.batches is not None
            with self._opened(self._fields) as reader:
                for number in range(first, len(self.batches)):
                    yield number, self._listed(reader, number)
            return
        if first and self.single:
            assert self.batches is not None
            for number in range(first, len(self.batches)):
                self.check_unchanged()
                yield number, self.batch(number)
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
        """Reject a local file that has changed in place, since mapped pages may no longer exist.

        Raises:
          DataLossError: it has changed.
        """
        if self._local is not None:
            check_unchanged(self.path, self._stamp)

    def _read_empty(self, numbers: list[int]) -> None:
        """Check record batches that claim to have no rows; no reader would ever notice that they do have some."""
        assert self.batches is not None
        if self.listed and numbers:
            with self._opened(self._fields) as reader:
                for number in numbers:
                    self._listed(reader, number)
        elif not self.listed and (
            not self.schema.names or not len(self.batches) or (numbers and self.batches.dictionaries)
        ):
            for _ in self.each(0):  # iterating reads all messages
                pass
        else:
            for number in numbers:
                self.batch(number)

    def _listed(self, reader: Any, number: int) -> Any:
        """A record batch of a file whose footer lists them."""
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
        message = self.whole[start : start + size]
        with reading_batch(self.path, f"record batch {number}"):
            if self.batches.swapped:  # which the message alone does not say: the schema does
                begin = self.whole[: self.batches.starts[0]]
                batch = ipc.open_stream(pa.py_buffer(np.concatenate((begin, message)))).read_next_batch()
            else:
                batch = ipc.read_record_batch(pa.py_buffer(message), self.schema)
        return self._checked(number, batch)

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
def arrow_file(
    path: str, stamp: str, columns: tuple[str, ...] | None, trusted: bool, memory_map: bool = True
) -> ArrowFile:
    """Open one version of a file, identified by `stamp`; cached."""
    return ArrowFile(path, stamp, columns, trusted, memory_map)


def reading_batch(path: str, part: str) -> AbstractContextManager[None]:
    """Translate pyarrow errors inside the `with` into errors that name the file and the part of it."""
    return naming_damage("an Arrow IPC file", path, part)
