# SPDX-License-Identifier: Apache-2.0
"""What was read of remote files, kept in a local folder that processes share."""

import contextlib
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.files.paths import FileLock
from distinput.kernels.cache import is_own
from distinput.names.lazy import library

hashlib, tempfile = library("hashlib"), library("tempfile")  # for remote files

# ----------------------------------------------------------------------------
# What was read of remote files, kept in a local folder that processes share: whole blocks, up to a total size.
#
# A block is a file of its own, which gets its name when it is complete and ends with a checksum. So a process that is
# killed leaves at most a file without name, which the next ones remove, and a block that is damaged is read anew. The
# blocks that were used least recently are removed first.
# ----------------------------------------------------------------------------


BLOCK_BYTES = 256 << 10
"""Of a remote file; what is read of it is extended to the borders of blocks."""

_VARIABLE = "DISTINPUT_REMOTE_CACHE"
"""Tells processes that are started what `cache_remote` was told: the most bytes, a colon and the folder."""

_SHARE = 16  # a process looks at the size of the folder each time it has written this part of the limit
_UNFINISHED_SECONDS = 3600
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Neither follow a link nor wait for who writes to a pipe."""

_OPEN = (
    "cache_remote: {}: others could change what is read from there: the folder must belong to you, and others must not be able "
    "to write to it or to one above it; `chmod go-w` it, or name a folder of your own"
)

_Fetch = Callable[[list[tuple[int, int]]], list[Any]]


def cache_remote(folder: str | os.PathLike[str] | None, max_bytes: int = 10 << 30) -> None:
    """Keep what is read of remote files in a local folder, for this process and those that it starts.

    Any number of processes of a user may share a folder. Blocks of 256 KB are kept for each version of a file, as its size,
    its entity tag and its time say; those that were not used for the longest time are removed when there are too many. A
    process notices that after it has written a sixteenth of the limit, so each may exceed it by as much for a while.

    Args:
      folder: where; it is made if it is not there. None: nothing is kept any more; what is in the folder stays.
      max_bytes: the most that the files in it take.

    Raises:
      InvalidArgumentError: `max_bytes` is less than 16 MB, or others may write to the folder.
      TypeError: `max_bytes` is not an integer.

    >>> import distinput as di
    >>> di.io.cache_remote("cache", max_bytes=1 << 30)
    >>> di.io.cache_remote(None)
    """
    if folder is None:
        os.environ.pop(_VARIABLE, None)
        return
    if not isinstance(max_bytes, int | np.integer):
        raise TypeError(f"cache_remote: max_bytes must be an integer, got {max_bytes!r}")
    if max_bytes < 16 << 20:
        raise InvalidArgumentError(f"cache_remote: max_bytes must be at least 16 MB (16777216), got {max_bytes}")
    path = os.path.abspath(folder)
    os.makedirs(path, exist_ok=True)
    if not is_own(path):
        raise InvalidArgumentError(_OPEN.format(path))
    os.environ[_VARIABLE] = f"{int(max_bytes)}:{path}"


def local_cache() -> "LocalCache | None":
    """The cache that `cache_remote` set up, in this process or in the one that started it."""
    told = os.environ.get(_VARIABLE)
    return None if told is None else _opened(told)


@lru_cache(maxsize=4)
def _opened(told: str) -> "LocalCache | None":
    limit, _, folder = told.partition(":")
    if not is_own(folder):
        warnings.warn(_OPEN.format(folder) + "; it is not used", RuntimeWarning, stacklevel=2)
        return None
    return LocalCache(folder, int(limit))


class LocalCache:
    """Blocks of files in a folder.

    Args:
      folder: where they are.
      max_bytes: the most that they take.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder, self._limit = folder, max_bytes
        self._unseen = max_bytes  # written since the size of the folder was looked at
        self._complained = False

    def read(self, version: str, size: int, ranges: list[tuple[int, int]], fetch: _Fetch) -> list[bytes]:
        """Ranges of a file, from blocks that are here; the others are fetched, and kept.

        Args:
          version: of the file, which tells it from all others.
          size: of the file.
          ranges: the first byte of each, and the byte after it.
          fetch: gives some ranges of the file.
        """
        home = os.path.join(self._folder, hashlib.blake2b(version.encode(), digest_size=16).hexdigest())
        numbers = sorted({n for a, b in ranges for n in range(a // BLOCK_BYTES, -(-min(b, size) // BLOCK_BYTES))})
        blocks = {number: self._load(home, number, _length(number, size)) for number in numbers}
        missing = [number for number, block in blocks.items() if block is None]
        runs = list(_runs(missing))
        parts = fetch([(a * BLOCK_BYTES, min(b * BLOCK_BYTES, size)) for a, b in runs]) if runs else []
        for (first, after), part in zip(runs, parts, strict=True):
            for number in range(first, after):
                at = (number - first) * BLOCK_BYTES
                blocks[number] = bytes(memoryview(part)[at : at + BLOCK_BYTES])
                self._store(home, number, blocks[number] or b"")
        return [_cut(blocks, a, min(b, size)) for a, b in ranges]

    def _load(self, home: str, number: int, length: int) -> bytes | None:
        path = os.path.join(home, str(number))
        try:
            if os.path.islink(home):
                raise FailedPreconditionError(
                    f"{home}: is a symbolic link, and must be a folder of the cache; remove it"
                )
            with open(os.open(path, os.O_RDONLY | _SAFELY), "rb") as file:
                found = file.read(length + 5)
                if len(found) == length + 4 and zlib.crc32(found[:-4]).to_bytes(4, "little") == found[-4:]:
                    os.utime(file.fileno())
                    return found[:-4]
        except FileNotFoundError:
            return None
        except (FailedPreconditionError, OSError) as error:
            self._complain(error)
            return None
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None

    def _store(self, home: str, number: int, block: bytes) -> None:
        try:
            if os.path.islink(home):
                return  # a read has complained
            descriptor, unfinished = _made(home)
            try:
                with open(descriptor, "wb") as file:
                    file.write(block)
                    file.write(zlib.crc32(block).to_bytes(4, "little"))
                os.replace(unfinished, os.path.join(home, str(number)))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(unfinished)
                raise
            self._unseen += len(block)
            if self._unseen >= self._limit // _SHARE:
                self._unseen = 0
                self._evict()
        except (FailedPreconditionError, OSError) as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            warnings.warn(
                f"{self._folder}: the cache of remote files cannot be used: {error}", RuntimeWarning, stacklevel=2
            )

    def _evict(self) -> None:
        """Remove what was used least recently, if there is too much; one process at a time."""
        with self._locked() as mine:
            if not mine:
                return
            found = sorted(self._files())
            total = sum(size for _, size, _ in found)
            for used, size, path in found:
                left_behind = os.path.basename(path).startswith(".") and used < time.time() - _UNFINISHED_SECONDS
                if total > self._limit - self._limit // _SHARE or left_behind:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)
                    total -= size
            for home in os.scandir(self._folder):
                if home.is_dir(follow_symlinks=False):
                    with contextlib.suppress(OSError):  # it has blocks
                        os.rmdir(home.path)

    def _files(self) -> Iterator[tuple[float, int, str]]:
        for home in os.scandir(self._folder):
            if home.is_dir(follow_symlinks=False):
                for file in os.scandir(home.path):
                    with contextlib.suppress(FileNotFoundError):
                        status = file.stat(follow_symlinks=False)
                        yield status.st_mtime, status.st_size, file.path

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        with FileLock(os.path.join(self._folder, ".lock")) as lock:
            # Without locks, as on Windows, two processes may remove the same files, which is no harm.
            yield lock.take() is not False


def _made(home: str) -> tuple[int, str]:
    """A new file without name in a folder, which another process may be removing since it is empty."""
    for _ in range(10):
        with contextlib.suppress(FileNotFoundError):
            os.makedirs(home, exist_ok=True)
            made: tuple[int, str] = tempfile.mkstemp(prefix=".", dir=home)
            return made
    raise FileNotFoundError(f"{home}: another process removes this folder as soon as it is made; give another one")


def _length(number: int, size: int) -> int:
    return min(BLOCK_BYTES, size - number * BLOCK_BYTES)


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as ranges.

    >>> list(_runs([1, 2, 3, 7]))
    [(1, 4), (7, 8)]
    """
    first = 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            yield numbers[first], number + 1
            first = i + 1


def _cut(blocks: dict[int, bytes | None], start: int, stop: int) -> bytes:
    parts = []
    for number in range(start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)):
        at = number * BLOCK_BYTES
        parts.append(memoryview(blocks[number] or b"")[max(0, start - at) : stop - at])
    return b"".join(parts)
