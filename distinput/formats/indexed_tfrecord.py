# SPDX-License-Identifier: Apache-2.0
"""TFRecord files with an index, so that records can be counted and accessed by number."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.nest import LEAF
from distinput.core.strings import Strings
from distinput.files.paths import as_paths
from distinput.formats.indexed import Indexed
from distinput.formats.record_index import CURE, index_beside, index_sink
from distinput.formats.span_format import Found, Piece
from distinput.formats.tfrecord import TFRecords
from distinput.kernels.tfrecord import FOOTER, HEADER

__all__ = ["IndexedTFRecords", "write_tfrecord_index"]


@dataclass(frozen=True)
class IndexedTFRecords(Indexed, TFRecords):
    """`TFRecords` for files with an index: the one that lies beside them (see `record_index`), or one that is built.

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

    def __post_init__(self) -> None:
        TFRecords.__post_init__(self)
        Indexed.__post_init__(self)

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
