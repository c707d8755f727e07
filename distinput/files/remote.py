# SPDX-License-Identifier: Apache-2.0
"""Files that fsspec opens, read by ranges: only the requested bytes cross the network.

fsspec's own file objects read megabytes ahead at every position, which for a few columns of a table can add up to more
than the whole file.
"""

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from distinput.errors import DataLossError, UnimplementedError
from distinput.files.paths import file_system

__all__ = ["RemoteFile", "RemoteStream", "near", "ranges_of", "remote_size"]

_AHEAD_BYTES = 8 << 20  # the most that one request of a stream asks for
_GAP = 20
"""A range is merged with the one before it if the gap between them is at most 1/20 of its size."""


def remote_size(system: Any, name: str) -> int | None:
    """Size of a file that can be read by ranges; None if its server reports no size, or only sends whole files."""
    found = system.info(name)
    size = found.get("size")
    return None if size is None or not found.get("partial", True) else int(size)


def ranges_of(system: Any, name: str, starts: Sequence[int], stops: Sequence[int]) -> list[bytes]:
    """Read bytes starts[i] to stops[i] of a file; a range is shorter where the file ends before it does.

    Args:
      system: an fsspec file system.
      name: of the file in that file system.
      starts: the first byte of each range.
      stops: the byte after each range.
    """
    from fsspec import AbstractFileSystem

    # The default would reopen the file for each range. (Asynchronous file systems have it as a plain attribute.)
    if getattr(system.cat_file, "__func__", None) is AbstractFileSystem.cat_file:
        with _opened(system, name) as file:
            return [_read(file, start, stop) for start, stop in zip(starts, stops, strict=True)]
    found = system.cat_ranges([name] * len(starts), list(starts), list(stops), on_error="raise")
    for got, start, stop in zip(found, starts, stops, strict=True):
        if isinstance(got, BaseException):  # some file systems return errors even with on_error="raise"
            raise got
        if len(got) > stop - start:
            raise UnimplementedError(
                f"{name}: its server sends the whole file when asked for a part; copy the file to this machine"
            )
    return [bytes(got) for got in found]


def _opened(system: Any, name: str) -> Any:
    """Open the file for reading, without read-ahead if the file system supports that."""
    try:
        return system.open(name, "rb", cache_type="none")
    except TypeError:
        return system.open(name, "rb")


def _read(file: Any, start: int, stop: int) -> bytes:
    file.seek(start)
    return bytes(file.read(max(0, stop - start)))


def near(starts: Sequence[int], stops: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges in ascending order, merged where the gap between them is small.

    >>> near([0, 500, 100, 20_000], [100, 10_000, 480, 20_001])
    [(0, 10000), (20000, 20001)]
    """
    found: list[tuple[int, int]] = []
    for start, stop in sorted(zip(starts, stops, strict=True)):
        if found and (start - found[-1][1]) * _GAP <= stop - start:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


class RemoteFile(io.RawIOBase):
    """A file open for reading; each read requests exactly its bytes, unless `keep` has already fetched them.

    Args:
      path: the URL of a file that can be read by ranges.
      size: of the file in bytes.
    """

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self.path, self.size = path, size
        self._system, self._name = file_system(path)
        self._at = 0
        self._kept: list[tuple[int, bytes]] = []

    def keep(self, starts: Sequence[int], stops: Sequence[int]) -> None:
        """Fetch these ranges at once and serve reads from them; ranges kept before are dropped."""
        together = near(starts, stops)
        self._kept = []
        if together:
            parts = self._fetch([a for a, _ in together], [b for _, b in together])
            self._kept = [(start, part) for (start, _), part in zip(together, parts, strict=True)]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def read(self, size: int | None = -1) -> Any:
        left = max(0, self.size - self._at)
        data = self._bytes(self._at, self._at + (left if size is None or size < 0 else min(size, left)))
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        return bytes(self.read())  # a buffered reader takes nothing else

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _bytes(self, start: int, stop: int) -> bytes | memoryview:
        if start >= stop:
            return b""
        held = self._held(start)
        return held[: stop - start] if len(held) >= stop - start else self._fetch([start], [stop])[0]

    def _held(self, start: int) -> memoryview:
        """The kept bytes from this position on; empty if there are none."""
        index = bisect_right(self._kept, start, key=lambda part: part[0]) - 1
        if index < 0:
            return memoryview(b"")
        first, data = self._kept[index]
        return memoryview(data)[start - first :]

    def _fetch(self, starts: list[int], stops: list[int]) -> list[bytes]:
        parts = ranges_of(self._system, self._name, starts, stops)
        for start, stop, part in zip(starts, stops, parts, strict=True):
            if len(part) != stop - start:
                raise DataLossError(
                    f"{self.path}: should have {self.size} bytes, but bytes {start} to {stop} came as {len(part)}; it "
                    "changed, or its server does not send parts of files"
                )
        return parts


class RemoteStream(RemoteFile):
    """A file read from front to back: each request is twice as large as the one before, up to a few megabytes.

    Args:
      path: the URL of a file that can be read by ranges.
      size: of the file in bytes.

    Attributes:
      stop: read-ahead ends at this byte; what follows is only fetched when it is read.
    """

    def __init__(self, path: str, size: int) -> None:
        super().__init__(path, size)
        self.stop = size
        self._requested = 0

    def _bytes(self, start: int, stop: int) -> bytes | memoryview:
        if start >= stop:
            return b""
        held = self._held(start)
        if not len(held):
            most = min(2 * self._requested, _AHEAD_BYTES)
            self._requested = max(stop - start, min(most, self.stop - start))
            self._kept = [(start, self._fetch([start], [start + self._requested])[0])]
            held = self._held(start)
        return held[: stop - start]
