# SPDX-License-Identifier: Apache-2.0
"""Remote files as Python's file objects: only the requested bytes cross the network, several requests at a time.

fsspec's own file objects read megabytes ahead at every position, which for a few columns of a table can add up to more
than the whole file.
"""

import io
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, current_thread
from typing import Any

import numpy as np

from distinput.files.local_cache import local_cache
from distinput.files.range_requests import (
    AT_A_TIME,
    PIECE_BYTES,
    BytesLike,
    FileMetadata,
    asked,
    facts_of,
    fetch,
    sends_whole,
)
from distinput.run.threads import Pool, Task

_AHEAD_BYTES = 4 * PIECE_BYTES  # the most that a stream reads ahead
_SMALL_BYTES = 512 << 10  # a stream that reads ahead less makes one request at a time
_LEAST_BYTES = 256 << 10  # of a piece, where many files are read by turns: a request takes as long as some megabytes
_GROWTH = 4  # how many times larger the next request is than the one before, and what is read ahead than what was read
_GAP = 20
"""A range is merged with the one before it if the gap between them is at most 1/20 of its size."""


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
      facts: of the version that is read: answers of another one are an error where the file system tells them apart.
    """

    def __init__(self, path: str, size: int, facts: FileMetadata | None = None) -> None:
        super().__init__()
        self.path, self.size = path, size
        self.facts = facts
        self._at = 0
        self._kept: list[tuple[int, BytesLike]] = []
        self._cancel = Event()

    def keep(self, starts: Sequence[int], stops: Sequence[int]) -> None:
        """Fetch these ranges at once and serve reads from them; ranges kept before are dropped."""
        together = near(starts, stops)
        self._kept = []
        if together:
            parts = self._fetch([a for a, _ in together], [b for _, b in together])
            self._kept = [(start, part) for (start, _), part in zip(together, parts, strict=True)]

    def close(self) -> None:
        """Give up what is requested."""
        self._cancel.set()
        super().close()

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
        parts = []
        while part := self.read():
            parts.append(bytes(part))  # a buffered reader takes nothing else
        return b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        np.frombuffer(buffer, np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)  # without the GIL
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

    def _fetch(self, starts: list[int], stops: list[int]) -> list[BytesLike]:
        if self.facts is None:
            self.facts = FileMetadata(
                self.size, asked(self.path, facts_of).version if local_cache() is not None else ""
            )
        return fetch(self.path, starts, stops, self.facts, self._cancel)


class RemoteStream(RemoteFile):
    """A file read from front to back, ahead of what is read: by four times as much as was read before, up to 16 MB.

    Small files are read with requests that grow fourfold; beyond that, several requests are made at a time.

    Args:
      path: the URL of a file that can be read by ranges.
      size: of the file in bytes.
      facts: of the version that is read: answers of another one are an error where the file system tells them apart.

    Attributes:
      stop: read-ahead ends at this byte; what follows is only fetched when it is read.
      requested: called once, when all bytes up to `stop` have been requested.
    """

    def __init__(self, path: str, size: int, facts: FileMetadata | None = None) -> None:
        super().__init__(path, size, facts)
        self.stop = size
        self.tells_version = False  # whether answers do, not only who was asked about the file
        self.requested: Callable[[], None] | None = None
        self._requested = 0
        self._passed = 0  # bytes read in order, which say how far ahead reading pays
        self._coming: deque[tuple[int, int, Task[BytesLike]]] = deque()
        self._pool: Pool | None = None
        self._most, self._shared = _AHEAD_BYTES, False

    def keep_within(self, room: int, pool: Callable[[], Pool]) -> None:
        """Read no further ahead than this, with requests that threads of others make."""
        self._most, self._pool, self._shared = max(room, 2 * _LEAST_BYTES), pool(), True

    def begin(self, start: int, data: BytesLike) -> None:
        """Take the first bytes that will be read, which are there already."""
        self._kept = [(start, data)]
        self._requested = self._passed = len(data)
        self._requested_to(start + len(data))

    def read_far(self, start: int, first: int = 0) -> None:
        """Request all that may be read ahead from a byte on; wait for the `first` bytes of it, which are asked for alone."""
        end = min(start + first, self.stop)
        self._passed = self._most
        if first:
            self._submit(start, end)
            self._kept = [self._next(start, end)]
        else:
            self._request(end, end)

    def close(self) -> None:
        """Give up what is requested, and wait for it to end."""
        self._cancel.set()
        self._drop()
        pool, self._pool = self._pool, None
        if pool is not None and not self._shared:
            pool.shutdown()
            for thread in pool.threads:
                if thread.is_alive() and thread is not current_thread():
                    thread.join()
        super().close()

    def _drop(self) -> None:
        while self._coming:
            self._coming.pop()[2].cancel()

    def _bytes(self, start: int, stop: int) -> bytes | memoryview:
        if start >= stop:
            return b""
        held = self._held(start)
        if not len(held):
            self._kept = [self._next(start, stop)]
            held = self._held(start)
        return held[: stop - start]

    def _next(self, start: int, stop: int) -> tuple[int, BytesLike]:
        """The next bytes, from `start` on, and where they begin; makes more requests where reading goes on in order."""
        if self._coming and self._coming[0][0] != start:
            self._drop()
            self._passed = 0
        if not self._coming:
            size = max(stop - start, min(_GROWTH * self._requested, self.stop - start))
            if size < self._small:
                self._requested = size
                self._passed += size
                self._requested_to(start + size)
                return start, self._fetch([start], [start + size])[0]
            self._request(start, stop)
        begin, end, coming = self._coming.popleft()
        self._passed += end - begin
        self._request(end, end)
        return begin, coming.result()

    def _request(self, start: int, least: int) -> None:
        """Request what is read ahead from here on, in pieces, and in any case the bytes up to `least`."""
        at = self._coming[-1][1] if self._coming else start
        ahead = max(least, min(start + min(max(_GROWTH * self._passed, self._small), self._most), self.stop))
        piece = max(self._small, min(PIECE_BYTES, self._passed, self._most // 2))
        while at < ahead and (ahead - at >= piece or ahead == max(least, self.stop) or not self._coming):
            end = min(at + piece, ahead)
            self._submit(at, end)
            at = end
        self._requested_to(at)

    def _submit(self, start: int, stop: int) -> None:
        if self._pool is None:
            self._pool = Pool(AT_A_TIME, "distinput-ahead")
        self._coming.append((start, stop, self._pool.submit(lambda: self._fetch([start], [stop])[0])))

    @property
    def _small(self) -> int:
        return min(_SMALL_BYTES, self._most // 2)

    def _requested_to(self, byte: int) -> None:
        if byte >= min(self.stop, self.size) and self.requested is not None:
            self.requested()
            self.requested = None


class StreamedFile(io.RawIOBase):
    """A file of a server that sends it whole: it is read from the front on, and what is passed over is read, too.

    Args:
      path: the URL.
      file: gives its bytes in order.
    """

    def __init__(self, path: str, file: Any) -> None:
        super().__init__()
        self._path, self._file, self._at = path, file, 0

    def close(self) -> None:
        self._file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence or offset < self._at:
            raise sends_whole(self._path)
        while self._at < offset and self.read(min(_SMALL_BYTES, offset - self._at)):
            pass
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
