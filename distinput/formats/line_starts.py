# SPDX-License-Identifier: Apache-2.0
"""Where lines begin in a file of text, near given bytes: found by reading on from the nearest place that is known."""

import sys
from bisect import bisect_right, insort
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from distinput.files.source import EMPTY, FileStream

__all__ = ["LineStarts", "count_newlines"]

_CHUNK_BYTES = 4 << 20
_MOST_KNOWN = 65536

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
ScanLines = Callable[[Bytes, int, int, int], tuple[int, int, int, int]]


class LineStarts:
    """What is known about a file: the offsets of some lines that begin a record.

    Where a newline may be a part of a quoted value, only the quotes from the beginning on tell what it is. All of the file
    before the place asked for is read once, at the speed of memory; what is found serves the next question.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: list[int] = []

    @staticmethod
    def of(path: str, stamp: str, dialect: Hashable) -> "LineStarts":
        """What is known about the file with this stamp, in this dialect."""
        return _of(path, stamp, dialect)

    def first_from(self, near: int, begin: int, scan: ScanLines, anywhere: bool, most: int) -> int:
        """The offset of the first line that begins at or after `near`; the end of the file if there is none.

        Args:
          near: greater than `begin`.
          begin: where the first record begins.
          scan: counts records, those that are refused too, see `TextRecords.scan_all`.
          anywhere: true if every newline ends a record, so that the byte before `near` is early enough to begin.
          most: the most bytes of a record.
        """
        if anywhere:
            return self._newline_from(near - 1)
        known = self._known  # replaced as a whole, so that threads see a sorted list
        place = bisect_right(known, near)
        at = max(begin, known[place - 1]) if place else begin
        if at < near:
            at = self._scanned(at, near, scan, most)
            again = list(self._known)
            insort(again, at)
            if len(again) <= _MOST_KNOWN:
                self._known = again
        return at

    def _scanned(self, byte: int, near: int, scan: ScanLines, most: int) -> int:
        """The first line from `near` on, for a line that begins at `byte`."""
        data: Bytes = EMPTY
        ended = False
        with FileStream(self.path, start=byte) as source:
            while not ended:
                size = max(_CHUNK_BYTES, len(data))
                data, ended = source.more(data, min(size, max(near - source.offset, 4096, len(data))))
                _, after, _, _ = scan(data, 0, near - byte, sys.maxsize)
                byte, data = byte + after, data[after:]
                if byte >= near:
                    return byte
                if len(data) > most:  # the reader of the part before meets this record
                    return source.offset if source.size is None else source.size
            return source.offset

    def _newline_from(self, byte: int) -> int:
        """The offset behind the first newline at or after `byte`."""
        with FileStream(self.path) as source:
            if source.size is not None and byte >= source.size:
                return source.size
            source.go_to(byte)
            ended, size = False, 4096
            while not ended:
                first = source.offset
                data, ended = source.more(EMPTY, size)
                found = data.tobytes().find(b"\n")
                if found >= 0:
                    return first + found + 1
                size = min(2 * size, _CHUNK_BYTES)
            return source.offset


@lru_cache(maxsize=256)
def _of(path: str, stamp: str, dialect: Hashable) -> LineStarts:
    del stamp, dialect
    return LineStarts(path)


def count_newlines(path: str, stop: int) -> int:
    """How many newlines there are before byte `stop` of a file that is not compressed."""
    found = 0
    with FileStream(path) as source:
        ended = False
        while source.offset < stop and not ended:
            data, ended = source.more(EMPTY, min(_CHUNK_BYTES, stop - source.offset))
            found += int(np.count_nonzero(data == 10))
    return found
