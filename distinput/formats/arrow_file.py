# SPDX-License-Identifier: Apache-2.0
"""One version of an Arrow IPC file: its schema, its record batches, and its memory map if it is local."""

import struct
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from distinput.columns.column import Ints
from distinput.columns.picked import RowArray
from distinput.errors import DataLossError
from distinput.files.paths import local_path
from distinput.files.remote import RemoteFile
from distinput.files.source import check_unchanged, open_ranges, read_range, read_spans, size_of
from distinput.files.whole_files import mapped
from distinput.formats.tables import check_columns, checked_batch, naming_damage, table_spec
from distinput.names.lazy import dataclass, library
from distinput.values.buffers import Bytes
from distinput.values.spec import Spec

pa = library("pyarrow")
ipc = library("pyarrow.ipc")

# ----------------------------------------------------------------------------
# The locations and row counts of the record batches of an Arrow IPC file or stream, found without reading values.
#
# Only the few numbers needed for that are read from the file's metadata (flatbuffers); pyarrow decodes the values. Source:
# the format specification, "Arrow Columnar Format", sections "IPC Streaming Format" and "IPC File Format", and its schemas
# `Message.fbs` and `File.fbs`.
# ----------------------------------------------------------------------------


MAGIC = b"ARROW1"

_JOINED = b"ARROW1ARROW1\0\0"
"""The end of a file, and the beginning of another one."""

_NEAR_BYTES = 64
"""As many bytes at most stand between the last message and the footer, such as the mark of the end."""

_CONTINUED, _MARK = 0xFFFFFFFF, b"\xff" * 4
_TAIL_BYTES = 1 << 14
"""How much is read from the end of a remote file first; most footers are shorter."""

_BEHIND_BYTES = 1 << 16  # looked at behind the end of a stream
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_NODE = np.dtype([("rows", "<i8"), ("nulls", "<i8")])
_BLOCK = np.dtype([("offset", "<i8"), ("head", "<i4"), ("", "<i4"), ("body", "<i8")])


class MalformedMessageError(Exception):
    """What should be a message is none."""


@dataclass(frozen=True, eq=False)
class Batches:
    """The record batches of a file, in order.

    Args:
      starts: [b] the byte at which the message of each batch begins.
      sizes: [b] of each message in bytes.
      ends: [b + 1] number of rows before each batch, and in total.
      compressed: true if the values of any batch are compressed.
      dictionaries: true if there are dictionaries, which precede the batches that use them.
      swapped: true if the values have the other byte order than this machine, so that they are no view of the file.
      nulls: numbers of the batches that hold nulls, those inside of dictionaries aside.
    """

    starts: Ints
    sizes: Ints
    ends: Ints
    compressed: bool
    dictionaries: bool
    swapped: bool = False
    nulls: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.starts)


def is_file(path: str) -> bool:
    """True for a file that lists its batches at its end, False for a stream.

    Raises:
      DataLossError: it is neither.
      NotFoundError: it is not there.
    """
    head = read_range(path, 0, 8)
    if head.startswith(MAGIC):
        return True
    # A stream begins with the length of its schema message, preceded by a marker since version 0.15 of the format.
    first, second = struct.unpack("<II", head) if len(head) == 8 else (0, 0)
    if not (first == _CONTINUED and 0 < second < 1 << 31) and not 0 < first < 1 << 24:
        raise _damage(path, "at byte 0: it begins with neither the mark of a file nor the schema of a stream")
    return False


def batches_of_file(path: str) -> Batches:
    """The batches listed in the footer of a file.

    Raises:
      DataLossError: the file is damaged or was cut short.
    """
    size = size_of(path)
    tail = read_range(path, max(0, size - (10 if local_path(path) is not None else _TAIL_BYTES)), size)
    if len(tail) < 10 or not tail.endswith(MAGIC):
        raise _damage(path, f"its footer is not at its end, at byte {size}; it was cut short")
    length = int.from_bytes(tail[-10:-6], "little", signed=True)
    begin = size - 10 - length
    if length < 4 or begin < 8:
        raise _damage(path, f"its footer cannot have {length} bytes")
    try:
        there = tail[-10 - length : -10] if length + 10 <= len(tail) else read_range(path, begin, size - 10)
        footer = _Table.root(there)
        blocks, others = footer.structs(3, _BLOCK), footer.structs(2, _BLOCK)
        # The message is preceded by its length, and that, since version 0.15 of the format, by a marker.
        starts, heads, bodies = (blocks[name].astype(np.int64) for name in ("offset", "head", "body"))
        swapped = _is_swapped(footer.table(1))
    except MalformedMessageError as error:
        raise _damage(path, f"its footer at byte {begin}: {error}") from error
    parts = np.array([starts - 8, heads - 8, bodies])  # each for itself first: their sum may overflow
    stops = starts + heads + bodies
    outside = ((parts < 0) | (parts > begin)).any(0) | (stops > begin)
    if outside.any():
        number = int(outside.argmax())
        raise _damage(path, f"record batch {number} at byte {starts[number]} lies outside of it")
    if begin - (last := int(stops.max(initial=0))) > _NEAR_BYTES:
        dictionaries_end = int((others["offset"].astype(np.int64) + others["head"] + others["body"]).max(initial=0))
        _check_alone(path, begin, max(dictionaries_end, last))
    data, ends = read_spans(path, starts, heads).tobytes(), np.cumsum(heads).tolist()
    found = []
    for number, (head, end) in enumerate(zip(heads.tolist(), ends, strict=True)):
        try:
            message = _message(data[end - head : end])[0]
        except MalformedMessageError as error:
            raise _damage(path, f"record batch {number} at byte {starts[number]}: {error}") from error
        if message.kind != _BATCH or message.rows < 0:
            raise _damage(path, f"what should be record batch {number} at byte {starts[number]} is something else")
        found.append(message)
    return _batches(path, starts, heads + bodies, found, dictionaries=len(others) > 0, swapped=swapped)


def _check_alone(path: str, begin: int, last: int) -> None:
    """Refuse files that were joined byte by byte: the footer of the last one counts from its own beginning.

    Args:
      path: of the file.
      begin: the byte at which the footer begins.
      last: the byte behind all messages that it lists; 0: it lists none.

    Raises:
      DataLossError: they were.
    """
    last = last or 16 + int.from_bytes(read_range(path, 12, 16), "little")  # the schema is the only message
    first = max(0, begin - last - _NEAR_BYTES)
    near = read_range(path, first, min(begin, begin - last + _NEAR_BYTES)) if begin - last > _NEAR_BYTES else b""
    place = near.find(_JOINED)
    if place >= 0:
        raise DataLossError(
            f"{path}: holds several Arrow files one behind the other, the last from byte {first + place + len(MAGIC)} on; "
            "readers see no other one, so bytes of Arrow files cannot be joined: name the files themselves, which one dataset "
            "reads in order"
        )


def batches_of_stream(path: str, data: Bytes) -> Batches:
    """The batches of a stream, found by following its messages.

    Args:
      path: of the stream, for error messages.
      data: all bytes of the stream.

    Raises:
      DataLossError: it is damaged, or lacks the end marker.
    """
    view = memoryview(data)  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
    offset, size = 0, len(data)
    starts, sizes, messages = [], [], []
    dictionaries = swapped = False
    try:
        while True:
            message, head = _message(view[offset:])
            if not head:
                offset += 8 if view[offset : offset + 4] == _MARK else 4
                _check_behind(path, offset, bytes(view[offset : offset + _BEHIND_BYTES]))
                break
            if message.kind not in ((_DICTIONARY, _BATCH) if offset else (_SCHEMA,)):
                raise _damage(path, f"there is no message of kind {message.kind} at byte {offset}")
            if message.body < 0 or message.rows < 0 or offset + head + message.body > size:
                raise _damage(path, f"it ends within the message at byte {offset}; it was cut short")
            if message.kind == _SCHEMA:
                swapped = message.swapped
            if message.kind == _DICTIONARY:  # checked here, since pyarrow skips it unless a batch follows
                _check_message(data[offset : offset + head + message.body])
            if message.kind == _BATCH:
                starts.append(offset)
                sizes.append(head + message.body)
                messages.append(message)
            dictionaries |= message.kind == _DICTIONARY
            offset += head + message.body
    except MalformedMessageError as error:
        raise _damage(path, f"at byte {offset}: {error}; it was cut short") from error
    places = np.array(starts, np.int64), np.array(sizes, np.int64)
    return _batches(path, *places, messages, dictionaries=dictionaries, swapped=swapped)


def _check_message(data: Bytes) -> None:
    """Have pyarrow read a message."""
    try:
        ipc.read_message(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        raise MalformedMessageError(str(error)) from error


def _check_behind(path: str, at: int, rest: bytes) -> None:
    """Reject what stands behind the end of a stream, which no reader would ever see, by its first bytes; zeros may."""
    if rest.strip(b"\0"):
        raise _damage(
            path,
            f"there is more behind the end of the stream at byte {at}; if streams were put together, each has to be a file of "
            "its own, or their batches written as one stream",
        )


def check_end_of_stream(path: str) -> None:
    """Reject a stream that does not end with the end marker.

    Raises:
      DataLossError: it was cut short.
    """
    size = size_of(path)
    mark = _MARK if read_range(path, 0, 4) == _MARK else b""
    if size and not read_range(path, max(0, size - 8), size).endswith(mark + bytes(4)):
        raise _damage(path, f"the stream ends at byte {size}, but not as it should; it was cut short")


@dataclass(frozen=True, slots=True)
class _Message:
    """The header of a message: its kind, the size of its body in bytes, its rows, and if they are compressed and hold nulls.

    That of a schema says whether values have the other byte order.
    """

    kind: int
    body: int
    rows: int
    compressed: bool
    swapped: bool = False
    nulls: bool = False


def _is_swapped(schema: "_Table") -> bool:
    """Whether values of a schema have the other byte order than this machine."""
    return bool(schema.number(0, "<h")) == (sys.byteorder == "little")


def _batches(
    path: str, starts: Ints, sizes: Ints, found: list[_Message], *, dictionaries: bool, swapped: bool
) -> Batches:
    ends = np.cumsum([0, *[message.rows for message in found]], dtype=np.int64)
    if (ends < 0).any():
        raise _damage(path, "its number of rows overflows")
    nulls = tuple([number for number, message in enumerate(found) if message.nulls])
    return Batches(starts, sizes, ends, any(message.compressed for message in found), dictionaries, swapped, nulls)


def _message(data: bytes | memoryview) -> tuple[_Message, int]:
    """The header of the message at the start of `data`, and its size in bytes; 0 at the end of a stream."""
    length = _number("<I", data, 0)
    before = 4
    if length == _CONTINUED:
        length = _number("<I", data, 4)
        before = 8
    if not length:
        return _Message(0, 0, 0, False), 0
    if before + length > len(data):
        raise MalformedMessageError(f"a message should have {length} bytes, but {len(data) - before} are left")
    table = _Table.root(data[before : before + length])
    kind, body = table.number(1, "<B"), table.number(3, "<q")
    if kind == _SCHEMA:
        return _Message(kind, body, 0, False, _is_swapped(table.table(2))), before + length
    if kind not in (_DICTIONARY, _BATCH):
        return _Message(kind, body, 0, False), before + length
    batch = table.table(2) if kind == _BATCH else table.table(2).table(1)
    rows = batch.number(0, "<q")
    if not batch.place(1) or not batch.place(2):
        raise MalformedMessageError("a record batch without its columns")
    columns = batch.structs(1, _NODE)
    if rows < 0 or (len(columns) and columns["rows"][0] != rows):
        raise MalformedMessageError(
            f"a record batch of {rows} rows, whose first column has {columns['rows'][:1].tolist()}"
        )
    nulls = bool(len(columns) and columns["nulls"].any())
    return _Message(kind, body, rows, bool(batch.place(3)), nulls=nulls), before + length


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a flatbuffer: fields by number, each of which may be absent.

    Args:
      data: the flatbuffer.
      at: the byte at which the table begins.
    """

    data: bytes | memoryview
    at: int

    @staticmethod
    def root(data: bytes | memoryview) -> "_Table":
        return _Table(data, _number("<I", data, 0))

    def place(self, field: int) -> int:
        """The byte at which a field lies; 0 if it is absent."""
        fields = self.at - _number("<i", self.data, self.at)
        size = _number("<H", self.data, fields)
        if 4 + 2 * field >= size:
            return 0
        offset = _number("<H", self.data, fields + 4 + 2 * field)
        return self.at + offset if offset else 0

    def number(self, field: int, code: str) -> int:
        """The value of a number field; 0 if it is absent."""
        place = self.place(field)
        return _number(code, self.data, place) if place else 0

    def table(self, field: int) -> "_Table":
        """The nested table of a field."""
        return _Table(self.data, self._target(field))

    def structs(self, field: int, dtype: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """The vector of structs of a field; empty if it is absent."""
        if not self.place(field):
            return np.empty(0, dtype)
        place = self._target(field)
        count = _number("<I", self.data, place)
        if place + 4 + count * dtype.itemsize > len(self.data):
            raise MalformedMessageError(f"{count} items that do not fit into a message")
        return np.frombuffer(self.data, dtype, count, place + 4) if count else np.empty(0, dtype)

    def _target(self, field: int) -> int:
        place = self.place(field)
        if not place:
            raise MalformedMessageError("a table lacks a part of it")
        return place + _number("<I", self.data, place)


def _number(code: str, data: bytes | memoryview, place: int) -> int:
    """The number at a byte of a flatbuffer."""
    if not 0 <= place <= len(data) - struct.calcsize(code):
        raise MalformedMessageError(f"a number at byte {place} of {len(data)}")
    return int(struct.unpack_from(code, data, place)[0])


def _damage(path: str, what: str) -> DataLossError:
    return DataLossError(f"{path}: not an Arrow IPC file, or damaged: {what}")


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
        local = local_path(path)
        self.whole: Bytes | None = mapped(local) if local is not None and memory_map else None
        self.listed = is_file(path)
        self.batches: Batches | None = None
        if self.listed:
            self.batches = batches_of_file(path)
        elif self.whole is not None:
            self.batches = batches_of_stream(path, self.whole)
        else:
            check_end_of_stream(path)
        with (
            self._opened(None) as (reader, _),
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
        if self.whole is None or self.batches is None:
            return False
        return not (self.batches.compressed or self.batches.swapped)

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
        """A pyarrow reader of the fields with these numbers, and what it reads; None: all."""
        whole = self.whole
        source = open_ranges(self.path, in_order=not self.listed) if whole is None else pa.py_buffer(whole)
        options = ipc.IpcReadOptions(included_fields=fields)
        try:
            with reading_batch(self.path, self._schema_part):
                if self.listed and isinstance(source, RemoteFile):  # the footer is read in two parts
                    source.keep([max(0, source.size - _TAIL_BYTES)], [source.size])
                reader = (ipc.open_file if self.listed else ipc.open_stream)(source, options=options)
            yield reader, source
        finally:
            if self.whole is None:
                source.close()

    @property
    def _fields(self) -> list[int] | None:
        # Given a selection, pyarrow copies instead of making views; and it takes an empty selection for all fields, so
        # then the first field is read and not used.
        if self.columns is None or self.views:
            return None
        return sorted({self.schema.names.index(c) for c in self.columns}) or [0]

    def select(self, batch: Any) -> Any:
        """A batch reduced to the requested columns, in the requested order."""
        return batch if self.columns is None else batch.select(list(self.columns))

    def each(self, row: int) -> Iterator[tuple[int, Any]]:
        """Numbered record batches, from the one that holds `row` on, or from the first one where it needs those before it."""
        first = 0 if self.batches is None else int(np.searchsorted(self.batches.ends, row, "right")) - 1
        if self.listed:
            assert self.batches is not None
            with self._opened(self._fields) as (reader, _):
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
        with self._opened(self._fields) as (reader, source):
            while True:
                self.check_unchanged()
                with reading_batch(self.path, f"record batch {number}"):
                    try:
                        batch = reader.read_next_batch()
                    except StopIteration:
                        if self.whole is None:
                            _check_behind(self.path, source.tell(), source.read(_BEHIND_BYTES))
                        break
                yield number, self._checked(number, batch)
                number += 1

    def check_unchanged(self) -> None:
        """Reject a local file that has changed in place, since mapped pages may no longer exist.

        Raises:
          DataLossError: it has changed.
        """
        check_unchanged(self.path, self._stamp)

    def _read_empty(self, numbers: list[int]) -> None:
        """Check record batches that claim to have no rows; no reader would ever notice that they do have some."""
        assert self.batches is not None
        if self.listed and numbers:
            with self._opened(self._fields) as (reader, _):
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
            with self._opened(self._fields) as (reader, _):
                return self._listed(reader, number)
        assert self.batches is not None
        assert self.whole is not None
        if self.batches.dictionaries:
            return next(batch for found, batch in self.each(0) if found == number)
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
