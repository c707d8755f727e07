# SPDX-License-Identifier: Apache-2.0
"""Text files: every line is a record."""

import sys
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Strings
from distinput.files.compression import as_compression
from distinput.files.source import FileStream
from distinput.formats.format import Fragment, PlacedBlocks, Position, check_position
from distinput.formats.indexed import Indexed
from distinput.formats.span_format import Found, Ints, Piece, SpanFormat
from distinput.formats.text_records import CutByBytes
from distinput.kernels.lines import scan_lines
from distinput.names.lazy import dataclass
from distinput.values.buffers import Bytes
from distinput.values.nest import LEAF

_RETURN = 13


@dataclass(frozen=True)
class TextLines(SpanFormat, CutByBytes):
    r"""The lines of text files, as bytes without their line ends.

    A trailing "\r" is stripped too; a last line without newline counts, unless it is empty; an empty line is an empty string;
    an empty file gives nothing.

    Args:
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.

    Raises:
      NotFoundError: at iteration, a file is not there.
      InvalidArgumentError: the compression is unknown.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\r\nthree")
    >>> list(di.data.TextLineDataset("a.txt"))
    [b'one', b'two', b'three']

    Source: the meaning is that of `tf.data.TextLineDataset`.
    """

    name: ClassVar[str] = "text"
    compression_type: str | None = None

    def __post_init__(self) -> None:
        as_compression(self.compression_type)

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        data, end = piece.data, len(piece.data)
        count, after = scan_lines(data, piece.at, end, starts, sizes)
        if piece.ended and after < end and count < len(starts):
            size = end - after - int(data[end - 1] == _RETURN)
            if size:
                starts[count], sizes[count] = after, size
                count, after = count + 1, end
        return Found(count, after)

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> PlacedBlocks:
        offset = fragment.start if position is None else position
        check_position(fragment.path, offset)
        if fragment.stop is None and "near" not in offset:
            yield from self.read(fragment.path, offset)
            return
        stop = sys.maxsize if fragment.stop is None else fragment.stop["near"]
        # A line that spans `near` belongs to the previous fragment. Reading from the byte before makes it the first
        # line found, which is empty if a line ended there.
        first: int = offset["near"] if "near" in offset else offset["byte"]
        row: int = offset.get("row", 0)
        if first >= stop:
            return
        with FileStream(fragment.path, start=first - 1 if "near" in offset else first) as source:
            for piece, found, starts, sizes in self._found(source, 0, None if fragment.stop is None else stop):
                shift = piece.byte - piece.at
                low, high = np.searchsorted(starts, [first - shift, stop - shift]).tolist()
                after = shift + found.after
                row += high - low
                if high > low:
                    column = Strings(piece.data, starts[low:high], sizes[low:high])
                    yield ColumnBlock(LEAF, [column], high - low), {"byte": after, "row": row}
                if after >= stop:
                    return


# ----------------------------------------------------------------------------
# Text files with an index, so that lines can be counted and accessed by number.
# ----------------------------------------------------------------------------


_END, _INDEXED_TEXT_RETURN = 10, 13


@dataclass(frozen=True)
class IndexedTextLines(Indexed, TextLines):
    """`TextLines` for files with an index.

    Args:
      compression_type: None or ""; compressed files do not support random access.
      index_folder: where indices are kept; None: beside each file.

    Raises:
      InvalidArgumentError: a compression is given.
    """

    name: ClassVar[str] = "indexed_text"

    def offsets(self, path: str) -> Iterator[Ints]:
        end = 0
        with FileStream(path) as source:
            for piece, found, starts, _ in self._found(source, 0):
                yield starts + (piece.byte - piece.at)
                end = piece.byte - piece.at + found.after
        yield np.array([end])

    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        starts = np.append(0, ends[:-1]) if len(ends) else ends
        closed = data[ends - 1] == _END  # only the last line of a file may lack its end
        wrong = (~closed & (rows + 1 != self.rows(path))) | (np.diff(starts, append=len(data)) == 0)
        inside = np.flatnonzero(data == _END) + 1
        if wrong.any() or len(inside) != closed.sum() or (inside != ends[closed]).any():
            raise self.misplaced(path, int(rows[np.argmax(wrong)]) if wrong.any() else int(rows[0]))
        sizes = ends - starts - closed
        returns = (sizes > 0) & (data[np.maximum(starts + sizes - 1, 0)] == _INDEXED_TEXT_RETURN)
        return ColumnBlock(LEAF, [Strings(data, starts, sizes - returns)], len(rows))
