# SPDX-License-Identifier: Apache-2.0
"""Files that fsspec opens, read by ranges: what is asked for crosses the network, and nothing around it.

fsspec's own file objects read megabytes ahead of every place that is looked at, which for some columns of a table is more
than the file.
"""

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from distinput.errors import DataLossError, UnimplementedError
from distinput.files.paths import file_system

__all__ = ["RemoteFile", "RemoteStream", "near", "ranges_of", "remote_size"]

_AHEAD_BYTES = 8 << 20  # of a stream that go on one request
_GAP = 20
"""A range is fetched with the one before it where what lies between is at most this part of it."""


def remote_size(system: Any, name: str) -> int | None:
    """Bytes of a file of which ranges can be read; None: its server says no size, or sends files only as a whole."""
    found = system.info(name)
    size = found.get("size")
    return None if size is None or not found.get("partial", True) else int(size)


def ranges_of(system: Any, name: str, starts: Sequence[int], stops: Sequence[int]) -> list[bytes]:
    """Bytes starts[i] to stops[i] of a file; fewer where it ends before.

    Args:
      system: a file system of fsspec.
      name: that the file has there.
      starts: of the ranges.
      stops: of the ranges.
    """
    from fsspec import AbstractFileSystem

    # It would open the file anew for each range. (Those that work asynchronously have it as an attribute.)
    if getattr(system.cat_file, "__func__", None) is AbstractFileSystem.cat_file:
        with _opened(system, name) as file:
            return [_read(file, start, stop) for start, stop in zip(starts, stops, strict=True)]
    found = system.cat_ranges([name] * len(starts), list(starts), list(stops), on_error="raise")
    for got, start, stop in zip(found, starts, stops, strict=True):
        if isinstance(got, BaseException):  # some return them whatever they are told
            raise got
        if len(got) > stop - start:
            raise UnimplementedError(
                f"{name}: its server sends the whole file where a part was asked for; copy the file to this machine"
            )
    return [bytes(got) for got in found]


def _opened(system: Any, name: str) -> Any:
    """The file, open for reading, if possible without reading ahead."""
    try:
        return system.open(name, "rb", cache_type="none")
    except TypeError:
        return system.open(name, "rb")


def _read(file: Any, start: int, stop: int) -> bytes:
    file.seek(start)
    return bytes(file.read(max(0, stop - start)))


def near(starts: Sequence[int], stops: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges put together where hardly anything lies between them, in ascending order.

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
    """A file open for reading, of which every read is a request for just these bytes, unless they are kept.

    Args:
      path: a URL of which ranges can be read.
      size: bytes of the file.
    """

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self.path, self.size = path, size
        self._system, self._name = file_system(path)
        self._at = 0
        self._kept: list[tuple[int, bytes]] = []

    def keep(self, starts: Sequence[int], stops: Sequence[int]) -> None:
        """Fetch these ranges at once, and serve reads from them; of what was kept before nothing stays."""
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

    def readall(self) -> Any:
        return self.read()

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
        """What is kept from this byte on."""
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
    """A file read from front to back: each request asks for twice as much as the one before, up to some megabytes.

    Args:
      path: a URL of which ranges can be read.
      size: bytes of the file.

    Attributes:
      stop: nothing behind this byte is read before it is asked for.
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
