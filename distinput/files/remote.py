# SPDX-License-Identifier: Apache-2.0
"""Files that fsspec opens, read by ranges: only the requested bytes cross the network, several requests at a time.

fsspec's own file objects read megabytes ahead at every position, which for a few columns of a table can add up to more
than the whole file.
"""

import io
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any, TypeAlias, TypeVar

import numpy as np

from distinput.errors import DataLossError, UnimplementedError
from distinput.files.local_cache import local_cache
from distinput.files.mounts import mounted
from distinput.files.paths import file_system
from distinput.files.retries import DEFAULT, ShortAnswerError, persistently
from distinput.files.version import Facts, changed, facts_in

__all__ = [
    "Buffer",
    "Facts",
    "RemoteFile",
    "RemoteStream",
    "asked",
    "beginning",
    "facts_of",
    "fetch",
    "near",
    "ranges_of",
    "remote_size",
]

T = TypeVar("T")

Buffer: TypeAlias = Any
"""Bytes, or an object that shows its memory as bytes do."""

_PIECE_BYTES = 4 << 20  # a larger range is requested in pieces, at the same time
_AT_A_TIME = 8  # requests of one file
_AHEAD_BYTES = 4 * _PIECE_BYTES  # the most that a stream reads ahead
_SMALL_BYTES = 512 << 10  # a stream that reads ahead less makes one request at a time
_GROWTH = 4  # how many times larger the next request is than the one before, and what is read ahead than what was read
_GAP = 20
"""A range is merged with the one before it if the gap between them is at most 1/20 of its size."""


def asked(path: str, ask: Callable[[Any, str], T]) -> T:
    """`ask(system, name)` for a file behind a URL, again where the answer is an error that may pass."""
    system, name = file_system(path)
    own = mounted(path)
    return persistently(lambda: ask(system, name), path, DEFAULT if own is None else own.retries)


def facts_of(system: Any, name: str) -> Facts:
    """Ask for the size of a file and its version."""
    return facts_in(system.info(name))


def beginning(path: str, start: int, size: int) -> tuple[Facts, Buffer] | None:
    """What the server says of a file, and `size` bytes of it from `start` on, or fewer where it ends: one request for both.

    None if that cannot be had, for whatever reason: whoever asks again for what the server says is told what is wrong.
    """
    system, name = file_system(path)
    ask = getattr(system, "beginning", None)
    if ask is None or local_cache() is not None:  # where the bytes may be here already
        return None
    try:
        found, got = ask(name, start, start + size)
    except Exception:  # noqa: BLE001 - told by the next request, and asked again where it may pass
        return None
    facts = facts_in(found)
    whole = facts.size is not None and len(got) == min(size, facts.size - start)
    return (facts, got) if whole else None


def remote_size(system: Any, name: str) -> int | None:
    """Size of a file that can be read by ranges; None if its server reports no size, or only sends whole files."""
    return facts_of(system, name).size


def fetch(
    path: str, starts: Sequence[int], stops: Sequence[int], facts: Facts | None = None, cancel: Event | None = None
) -> list[Buffer]:
    """Read bytes starts[i] to stops[i] of a remote file; large ranges in pieces, several at a time, until all are there.

    Args:
      path: the URL.
      starts: the first byte of each range.
      stops: the byte after each range.
      facts: of the file, if they are known; else a range is shorter where the file ends before it does.
      cancel: once it is set, the read is given up.

    Raises:
      DataLossError: the file is shorter than it was, or another one than the facts are of.
      UnimplementedError: its server sends whole files only.
    """
    cache = local_cache()
    if cache is None:
        return _fetch(path, starts, stops, facts, cancel)
    known = facts or asked(path, facts_of)
    if known.size is None:
        return _fetch(path, starts, stops, None, cancel)
    wanted = [(start, max(start, stop)) for start, stop in zip(starts, stops, strict=True)]

    def ask(ranges: list[tuple[int, int]]) -> list[Buffer]:
        return _fetch(path, [a for a, _ in ranges], [b for _, b in ranges], known, cancel)

    return cache.read(f"{path} {known.version}", known.size, wanted, ask)


def _fetch(
    path: str, starts: Sequence[int], stops: Sequence[int], facts: Facts | None, cancel: Event | None
) -> list[Buffer]:
    system, name = file_system(path)
    own = mounted(path)
    pieces = [
        (at, min(stop, at + _PIECE_BYTES))
        for start, stop in zip(starts, stops, strict=True)
        for at in range(start, stop, _PIECE_BYTES)
    ]
    got: dict[tuple[int, int], Buffer] = {}

    def ask() -> None:
        _ask_missing(system, name, path, [piece for piece in pieces if piece not in got], facts, got)

    if pieces:
        persistently(ask, path, DEFAULT if own is None else own.retries, cancel)
    found = []
    for start, stop in zip(starts, stops, strict=True):
        parts = [got[at, min(stop, at + _PIECE_BYTES)] for at in range(start, stop, _PIECE_BYTES)]
        found.append(parts[0] if len(parts) == 1 else b"".join(parts))
    return found


def _ask_missing(
    system: Any,
    name: str,
    path: str,
    pieces: Sequence[tuple[int, int]],
    facts: Facts | None,
    got: dict[tuple[int, int], Buffer],
) -> None:
    """Make one request for each piece; those that are answered are in `got` even if others fail."""
    failed: BaseException | None = None
    size = None if facts is None else facts.size
    if facts is not None and (facts.etag or facts.written) and hasattr(system, "described_parts"):
        parts = _parts_of_version(system, name, path, pieces, facts)
    else:
        parts = _parts(system, name, pieces)
    for piece, part in zip(pieces, parts, strict=True):
        if isinstance(part, BaseException):
            failed = failed or part
        elif len(part) == piece[1] - piece[0]:
            got[piece] = part
        else:
            failed = _short(system, name, path, piece, part, size, got) or failed
    if failed is not None:
        raise failed


def _short(
    system: Any, name: str, path: str, piece: tuple[int, int], part: Buffer, size: int | None, got: Any
) -> BaseException | None:
    """What is wrong with an answer that is shorter than was asked for; nothing, if the file ends there."""
    start, stop = piece
    now = remote_size(system, name)
    if size is None and (now is None or start + len(part) >= min(now, stop)):
        got[piece] = part
        return None
    what = f"bytes {start} to {stop} came as {len(part)}"
    if size is not None and now is not None and now < min(stop, size):
        return DataLossError(f"{path}: should have {size} bytes, but has {now}, and {what}; it changed")
    return ShortAnswerError(f"{path}: {what}; it changed, or its server does not send parts of files")


def _parts(system: Any, name: str, pieces: Sequence[tuple[int, int]]) -> list[Buffer]:
    """The answers to some requests: bytes, or errors."""
    starts, stops = [a for a, _ in pieces], [b for _, b in pieces]
    if len(pieces) == 1 or getattr(system, "async_impl", False) or getattr(system, "ranges_at_once", False):
        return ranges_of(system, name, starts, stops, errors="return")
    with ThreadPoolExecutor(min(_AT_A_TIME, len(pieces)), "distinput-ranges") as pool:
        shares = [range(first, len(pieces), _AT_A_TIME) for first in range(min(_AT_A_TIME, len(pieces)))]
        made = pool.map(
            lambda share: ranges_of(
                system, name, [starts[i] for i in share], [stops[i] for i in share], errors="return"
            ),
            shares,
        )
        found = {
            i: part for share, parts in zip(shares, made, strict=True) for i, part in zip(share, parts, strict=True)
        }
    return [found[i] for i in range(len(pieces))]


def _parts_of_version(
    system: Any, name: str, path: str, pieces: Sequence[tuple[int, int]], facts: Facts
) -> list[Buffer]:
    """As `_parts`, from a file system that says with each answer which version of the file it is of.

    Raises:
      DataLossError: one is of another version.
    """
    found: list[Buffer] = []
    for answer in system.described_parts(name, pieces):
        if isinstance(answer, BaseException):
            found.append(answer)
            continue
        now, part = answer
        _check_same(path, facts, facts_in(now))
        found.append(part)
    lost = [each for each in found if isinstance(each, OSError)]
    if lost and not any(isinstance(each, FileNotFoundError | PermissionError) for each in lost):
        # A range that the new version does not have is an error like any other, which would be asked for again for minutes.
        with suppress(OSError):
            _check_same(path, facts, facts_of(system, name))
    return found


def _check_same(path: str, before: Facts, now: Facts) -> None:
    wrong = changed(path, before, now)
    if wrong is not None:
        raise wrong


def ranges_of(
    system: Any, name: str, starts: Sequence[int], stops: Sequence[int], *, errors: str = "raise"
) -> list[Buffer]:
    """Ask once for bytes starts[i] to stops[i] of a file; a range is shorter where the file ends before it does.

    Args:
      system: an fsspec file system.
      name: of the file in that file system.
      starts: the first byte of each range.
      stops: the byte after each range.
      errors: "raise", or "return" to have them in the place of the ranges that failed.
    """
    from fsspec import AbstractFileSystem

    # The default would reopen the file for each range. (Asynchronous file systems have it as a plain attribute.)
    if getattr(system.cat_file, "__func__", None) is AbstractFileSystem.cat_file:
        found: list[Any] = []
        try:
            with _opened(system, name) as file:
                found.extend(_read(file, start, stop) for start, stop in zip(starts, stops, strict=True))
        except Exception as error:
            if errors == "raise":
                raise
            found += [error] * (len(starts) - len(found))
        return found
    found = list(system.cat_ranges([name] * len(starts), list(starts), list(stops), on_error=errors))
    for i, (got, start, stop) in enumerate(zip(found, starts, stops, strict=True)):
        if isinstance(got, BaseException):  # some file systems return errors even with on_error="raise"
            if errors == "raise":
                raise got
        elif len(got) > stop - start:
            raise UnimplementedError(
                f"{name}: its server sends the whole file when asked for a part; copy the file to this machine"
            )
        else:
            found[i] = got if isinstance(got, bytes) else memoryview(got)
    return found


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
      facts: of the version that is read: answers of another one are an error where the file system tells them apart.
    """

    def __init__(self, path: str, size: int, facts: Facts | None = None) -> None:
        super().__init__()
        self.path, self.size = path, size
        self.facts = facts
        self._at = 0
        self._kept: list[tuple[int, Buffer]] = []
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

    def _fetch(self, starts: list[int], stops: list[int]) -> list[Buffer]:
        if self.facts is None:
            self.facts = Facts(self.size, asked(self.path, facts_of).version if local_cache() is not None else "")
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

    def __init__(self, path: str, size: int, facts: Facts | None = None) -> None:
        super().__init__(path, size, facts)
        self.stop = size
        self.requested: Callable[[], None] | None = None
        self._requested = 0
        self._passed = 0  # bytes read in order, which say how far ahead reading pays
        self._coming: deque[tuple[int, int, Future[Buffer]]] = deque()
        self._pool: ThreadPoolExecutor | None = None

    def begin(self, start: int, data: Buffer) -> None:
        """Take the first bytes that will be read, which are there already."""
        self._kept = [(start, data)]
        self._requested = self._passed = len(data)
        self._requested_to(start + len(data))

    def close(self) -> None:
        """Give up what is requested, and wait for it to end."""
        self._cancel.set()
        self._drop()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)
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

    def _next(self, start: int, stop: int) -> tuple[int, Buffer]:
        """The next bytes, from `start` on, and where they begin; makes more requests where reading goes on in order."""
        if self._coming and self._coming[0][0] != start:
            self._drop()
            self._passed = 0
        if not self._coming:
            size = max(stop - start, min(_GROWTH * self._requested, self.stop - start))
            if size < _SMALL_BYTES:
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
        ahead = max(least, min(start + min(max(_GROWTH * self._passed, _SMALL_BYTES), _AHEAD_BYTES), self.stop))
        piece = max(_SMALL_BYTES, min(_PIECE_BYTES, self._passed))
        while at < ahead and (ahead - at >= piece or ahead == max(least, self.stop) or not self._coming):
            end = min(at + piece, ahead)
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_AT_A_TIME, "distinput-ahead")
            self._coming.append((at, end, self._pool.submit(lambda a, b: self._fetch([a], [b])[0], at, end)))
            at = end
        self._requested_to(at)

    def _requested_to(self, byte: int) -> None:
        if byte >= min(self.stop, self.size) and self.requested is not None:
            self.requested()
            self.requested = None
