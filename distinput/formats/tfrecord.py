# SPDX-License-Identifier: Apache-2.0
"""TFRecord files: each record is a length, its checksum, the payload and its checksum."""

import os
import struct
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Strings
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.compression import as_compression, compression_of
from distinput.files.paths import as_path, as_paths
from distinput.files.sink import Sink
from distinput.files.source import read_range, size_of
from distinput.formats.format import Position
from distinput.formats.indexed import CURE, Indexed, index_beside, index_sink
from distinput.formats.span_format import Found, Ints, Piece, SpanFormat
from distinput.kernels.checksums import (
    BAD_DATA,
    BAD_LENGTH,
    FOOTER,
    HEADER,
    INCOMPLETE,
    frame_records,
    masked_crc32c,
    masked_crc32c_of_bytes,
    scan_records,
)
from distinput.names.lazy import dataclass
from distinput.plan.check import byte_string
from distinput.values.buffers import Bytes
from distinput.values.nest import LEAF


@dataclass(frozen=True)
class TFRecords(SpanFormat):
    """The records of TFRecord files, as bytes; both checksums of each are checked.

    An index that `distinput.io.write_tfrecord_index`, or a script `tfrecord2idx`, has written beside a file is used.

    Args:
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.

    Raises:
      NotFoundError: at iteration, a file is not there.
      OSError: with an index, it cannot be written.
      InvalidArgumentError: an index and a compression, or an unknown compression.
      DataLossError: at iteration, a checksum differs or a file ends inside a record.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     writer.write(b"one")
    >>> list(di.data.TFRecordDataset("a.tfrecord"))
    [b'one']

    Source: the meaning is that of `tf.data.TFRecordDataset`.
    """

    name: ClassVar[str] = "tfrecord"
    compression_type: str | None = None

    def __post_init__(self) -> None:
        as_compression(self.compression_type)

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        if piece.at == len(piece.data):
            return Found(0, piece.at)
        count, after, status, need = scan_records(piece.data, piece.at, starts, sizes)
        error: Exception | None = None
        if status in (BAD_LENGTH, BAD_DATA):
            error = _corrupted(piece, count, after, status)
        elif status == INCOMPLETE:
            byte = piece.byte + after - piece.at
            left = len(piece.data) - after
            if piece.size is not None and not piece.ended:
                left = max(left, piece.size - byte)
            if piece.ended or (piece.size is not None and need > left):
                error = DataLossError(
                    f"{piece.path}: truncated record at {byte} (record {piece.row + count}): it takes {_bytes(need)}, "
                    f"but the file ends after {left}"
                )
        return Found(count, after, need, error)

    def past(self, path: str, position: Position | None) -> Position | None:
        """The record behind a damaged one, if the length of that one is sound."""
        at = position or self.start()
        if self.compression or "byte" not in at:
            return None
        header = read_range(path, at["byte"], at["byte"] + HEADER)
        if len(header) < HEADER:
            return None
        length, stored = struct.unpack("<QI", header)
        behind = at["byte"] + HEADER + length + FOOTER
        if masked_crc32c_of_bytes(header[:8]) != stored or behind > size_of(path):
            return None
        return {"byte": behind, "row": at["row"] + 1}


def _bytes(need: int) -> str:
    return f"at least {HEADER + FOOTER} bytes" if need == HEADER else f"{need} bytes"


def _corrupted(piece: Piece, count: int, after: int, status: int) -> DataLossError:
    """The error for the corrupted record at `after`."""
    header = piece.data[after : after + HEADER]
    length, stored = struct.unpack("<QI", header.tobytes())
    what, part = "length", header[:8]
    if status == BAD_DATA:
        what, part = "data", piece.data[after + HEADER : after + HEADER + length]
        (stored,) = struct.unpack("<I", piece.data[after + HEADER + length :][:FOOTER].tobytes())
    return DataLossError(
        f"{piece.path}: corrupted record at {piece.byte + after - piece.at} (record {piece.row + count}): the checksum "
        f"of its {what} should be {stored:#010x}, but is {masked_crc32c(part):#010x}"
        + ("; is this a TFRecord file, and is its compression_type right?" if piece.row + count == 0 else "")
    )


@dataclass(frozen=True)
class TFRecordOptions:
    """How a TFRecord file is written; the counterpart of `tf.io.TFRecordOptions`.

    Args:
      compression_type: None or "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY", or "AUTO".
      flush_mode, input_buffer_size, output_buffer_size, window_bits: accepted as TensorFlow's.
      compression_level: of the codec, from small and fast to high; None: its default.
      compression_method, mem_level, compression_strategy: accepted as TensorFlow's.

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    compression_type: str | None = None
    flush_mode: int | None = None
    input_buffer_size: int | None = None
    output_buffer_size: int | None = None
    window_bits: int | None = None
    compression_level: int | None = None
    compression_method: int | None = None
    mem_level: int | None = None
    compression_strategy: int | None = None

    compression_type_map: ClassVar[dict[int, str]] = {0: "", 1: "ZLIB", 2: "GZIP"}
    """TensorFlow's numbers of compressions, and their names."""

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The name of the compression of options, of its number, or of itself; "" for none.

        Args:
          options: `TFRecordOptions`, a number of `compression_type_map`, a name, or None.

        >>> TFRecordOptions.get_compression_type_string(2)
        'GZIP'

        Source: `tf.io.TFRecordOptions.get_compression_type_string`.
        """
        chosen: Any = options.compression_type if isinstance(options, TFRecordOptions) else options
        return as_compression(cls.compression_type_map.get(chosen, chosen))

    def __post_init__(self) -> None:
        as_compression(self.compression_type)


_SMALL, _PLACES, _SHARE = 1 << 10, 1 << 9, 1 << 7
"""A record of up to so many bytes waits in one of so many places: small ones are not summed up, which would take longer than to
keep them. Larger ones take a place for each share."""
_FRAME = HEADER + FOOTER


class TFRecordWriter:
    """Writes a TFRecord file; the counterpart of `tf.io.TFRecordWriter`.

    The file appears under its name when `close` succeeds, which a `with` block calls. Until then it has a hidden name,
    which no pattern matches, and an existing file of this name stays. Nothing is left of it after an error in the
    `with` block or in a write, or if the writer is never closed. (TensorFlow's writer keeps what was written so far.)

    Args:
      path: where to write, a local path or a URL.
      options: None, a compression type, or `TFRecordOptions`.
      index: also write an index beside the file when the file is complete; see `write_tfrecord_index`.

    Raises:
      InvalidArgumentError: the compression is unknown, or an index is requested for a compressed file.
      NotFoundError: the folder does not exist.
    """

    def __init__(
        self, path: str | os.PathLike[str], options: str | TFRecordOptions | None = None, *, index: bool = False
    ) -> None:
        chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        level = -1 if chosen.compression_level is None else chosen.compression_level
        compression = compression_of(as_compression(chosen.compression_type), as_path(path))
        if index and compression:
            raise InvalidArgumentError(
                f"TFRecordWriter: an index needs a file without compression, got {compression}; leave one of them out"
            )
        self._sizes: list[Ints] | None = [np.zeros(1, np.int64)] if index else None
        self._waiting: list[bytes] = []
        self._sink = Sink(as_path(path), compression, level)
        self._places = [None] * _PLACES  # for records that may still wait; none where the sink may be closed

    def write(self, record: bytes) -> None:
        """Append a record: bytes, text, or an array of uint8.

        Raises:
          ValueError: the writer is closed, or the record is nothing of this kind.
          OSError: the record, or an earlier one, could not be written; the file is discarded.
        """
        if type(record) is bytes and len(record) <= _SMALL:
            try:
                self._places.pop()
                self._waiting.append(record)
                return
            except IndexError:  # all are taken
                pass
        payload = self._payload(record)
        self._waiting.append(payload)
        del self._places[-1 - len(payload) // _SHARE :]
        if not self._places:
            self._write_out()

    def flush(self) -> None:
        """Pass everything written so far to the operating system; the file still gets its name only at `close`."""
        self._write_out(flush=True)

    def _payload(self, record: Any) -> bytes:
        """The bytes of a record of any kind; an error if nothing can be written."""
        if self._sink.closed:
            self._sink.write(b"")  # says what became of the file
        if isinstance(record, np.ndarray):
            record = record.tobytes() if record.dtype == np.uint8 else record if record.shape else record[()]
        return byte_string("TFRecordWriter", record)

    def _write_out(self, *, flush: bool = False) -> None:
        """Hand the records that wait to the sink, framed in one call."""
        try:
            waiting, self._waiting, self._places = self._waiting, [], []
            if waiting:
                sizes = np.fromiter(map(len, waiting), np.int64, len(waiting))
                self._sink.write(framed(np.frombuffer(b"".join(waiting), np.uint8), np.append(0, sizes.cumsum())))
                if self._sizes is not None:
                    self._sizes.append(sizes + _FRAME)
            if flush:
                self._sink.flush()
        except BaseException as error:  # writing on would leave a file with a gap
            self._sink.give_up(error)
            raise
        if not self._sink.closed:
            self._places = [None] * _PLACES

    def close(self) -> None:
        """Finish the file, and its index if requested; may be called again.

        Raises:
          OSError: one of them could not be written completely.
        """
        try:
            self._write_out()
            if self._sizes is None:
                self._sink.close()
                return
            self._sink.finish()
            sizes, self._sizes = self._sizes, None
            with index_sink(self._sink.path, np.concatenate(sizes).cumsum()) as index:
                index.finish()
                self._sink.close()
        except BaseException:
            self._sink.discard()
            raise
        finally:
            self._places = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._sizes, self._waiting, self._places = None, [], []
            self._sink.discard()


def framed(payloads: Bytes, offsets: Ints) -> memoryview:
    """Records as they stand in a file: each with its length and the checksums of both.

    Args:
      payloads: the bytes of all records, one after the other.
      offsets: [n + 1], where each begins, and where the last one ends.
    """
    out = np.empty(int(offsets[-1]) + (HEADER + FOOTER) * (len(offsets) - 1), np.uint8)
    return memoryview(out)[: frame_records(payloads, offsets, out)]  # type: ignore[arg-type]


# ----------------------------------------------------------------------------
# TFRecord files with an index, so that records can be counted and accessed by number.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexedTFRecords(Indexed, TFRecords):
    """`TFRecords` for files with an index: the one that lies beside them (see `index_beside`), or one that is built.

    A stale index is detected when it is used: by the size of the file, and by any record that does not begin where the
    index says.

    Args:
      compression_type: None or ""; compressed files do not support random access.
      index_folder: where indices are kept that are built; None: beside each file.

    Raises:
      InvalidArgumentError: a compression is given.
    """

    name: ClassVar[str] = "indexed_tfrecord"
    stale: ClassVar[str] = CURE

    def index(self, path: str) -> Ints:
        offsets = index_beside(path)
        return super().index(path) if offsets is None else offsets

    def offsets(self, path: str) -> Iterator[Ints]:
        return _offsets(path)

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        found = super().find(piece, starts, sizes)
        if found.error is not None:
            found.error.add_note(f"if {piece.path} is whole, its index is of another version of it: {CURE}")
        return found

    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        starts, sizes = np.empty((2, len(rows)), np.int64)
        found = self.find(Piece(path, data, 0, 0, 0, True, None), starts, sizes)
        good = found.count
        if good < len(rows) or (sizes != np.diff(ends, prepend=0) - (HEADER + FOOTER)).any():
            raise self.misplaced(path, int(rows[min(good, len(rows) - 1)])) from found.error
        return ColumnBlock(LEAF, [Strings(data, starts, sizes)], len(rows))


def _offsets(path: str) -> Iterator[Ints]:
    byte = 0
    for block, after in TFRecords().read(path):
        (column,) = block.columnar().columns
        assert isinstance(column, Strings)
        yield byte + np.cumsum(np.append(0, column.sizes[:-1] + (HEADER + FOOTER)))
        byte = after["byte"]
    yield np.array([byte])


def write_tfrecord_index(path: str | os.PathLike[str]) -> int:
    """Write the index of a TFRecord file, `<path>.index`, so that records can be counted and accessed by number.

    The whole file is read, and both checksums of each record are verified.

    Args:
      path: of the uncompressed file: a local path or any fsspec URL.

    Returns:
      The number of records.

    Raises:
      NotFoundError: it is not there.
      DataLossError: it is damaged; no index is written.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     for number in range(3):
    ...         writer.write(b"record %d" % number)
    >>> di.io.write_tfrecord_index("a.tfrecord")
    3
    >>> int(di.data.TFRecordDataset("a.tfrecord", index=True).cardinality())
    3
    """
    (name,) = as_paths(path)
    offsets = np.concatenate(list(_offsets(name)))
    index_sink(name, offsets).close()
    return len(offsets) - 1
