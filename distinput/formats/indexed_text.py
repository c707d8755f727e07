# SPDX-License-Identifier: Apache-2.0
"""Text files with an index, so that lines can be counted and accessed by number."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.nest import LEAF
from distinput.core.strings import Strings
from distinput.files.source import FileStream
from distinput.formats.indexed import Indexed
from distinput.formats.text import TextLines

__all__ = ["IndexedTextLines"]

_END, _RETURN = 10, 13


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

    def __post_init__(self) -> None:
        TextLines.__post_init__(self)
        Indexed.__post_init__(self)

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
        returns = (sizes > 0) & (data[np.maximum(starts + sizes - 1, 0)] == _RETURN)
        return ColumnBlock(LEAF, [Strings(data, starts, sizes - returns)], len(rows))
