# SPDX-License-Identifier: Apache-2.0
"""Reading files: what is known of one, its size, parts of it, or all of it in chunks, optionally decompressed."""

import io
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import numpy as np

from distinput.columns.block import note_open_files
from distinput.columns.column import Ints
from distinput.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from distinput.files.compression import Compression, Inflater, compression_of
from distinput.files.local_cache import local_cache
from distinput.files.mounts import retries_of
from distinput.files.paths import file_system, is_web, local_path, told_by
from distinput.files.range_requests import (
    BytesLike,
    FileMetadata,
    asked,
    described_range,
    facts_in,
    facts_of,
    fetch,
    sends_whole,
    ukey_of,
)
from distinput.files.remote import RemoteFile, RemoteStream, StreamedFile
from distinput.files.retries import raise_told, what_failed
from distinput.kernels.spans import gather_spans
from distinput.run.threads import Closing, Pool
from distinput.url_secrets import scrub
from distinput.values.buffers import ALIGNMENT, Buffers, Bytes

# ----------------------------------------------------------------------------
# What a server says of a file, and the bytes at one of its ends: one request for both, where the file system makes such.
# ----------------------------------------------------------------------------


T = TypeVar("T")


class DescribedBytes(NamedTuple):
    """What a server says of a file, and bytes of it.

    Args:
      facts: of the file.
      data: the bytes.
      stamp: as `stamp_of` has it.
    """

    facts: FileMetadata
    data: BytesLike
    stamp: str


def beginning(path: str, start: int, size: int) -> DescribedBytes | None:
    """What the server says of a file, and `size` bytes of it from `start` on, or fewer where it ends.

    None if that cannot be had, for whatever reason: whoever asks again for what the server says is told what is wrong.
    """
    return _complete(_asked_once(path, "beginning", start, start + size), start, size)


def ending(path: str, size: int) -> DescribedBytes | None:
    """What the server says of a file, and the last `size` bytes of it, or all if it has fewer; None as for `beginning`."""
    return _complete(_asked_once(path, "ending", size), 0, size)


def _complete(answer: tuple[Any, BytesLike, str] | None, start: int, size: int) -> DescribedBytes | None:
    """What an answer says of a file, and its bytes; None if it has fewer than were asked for, or does not say the size."""
    if answer is None:
        return None
    found, data, stamp = answer
    facts = facts_in(found)
    whole = facts.size is not None and len(data) == min(size, facts.size - start)
    return DescribedBytes(facts, data, stamp) if whole else None


def _asked_once(path: str, method: str, *which: int) -> tuple[Any, BytesLike, str] | None:
    """What `info` says of a file, bytes of it, and its stamp, of one request; None if it failed, or cannot be made."""
    system, name = file_system(path)
    ask: Any = getattr(system, method, None)
    if ask is None and method == "beginning" and is_web(system):
        ask = partial(described_range, system, retries_of(path).stall)
    if ask is None or local_cache() is not None:  # where the bytes may be here already
        return None
    try:
        found, data = ask(name, *which)
        return found, data, _stamp(system, name, found)
    except Exception:  # noqa: BLE001 - told by the next request, and asked again where it may pass
        return None


# ----------------------------------------------------------------------------
# What is known of a remote file before it is opened, for whatever this thread opens: it need not be asked for again.
# ----------------------------------------------------------------------------


class _Hints(threading.local):
    """The hints of a thread.

    Attributes:
      stamp: a file and its stamp; see `stamp_of`.
      begun: a file, what its server says of it, and its first bytes.
      until: the byte from which on nothing is wanted of a file.
      requested: called once the last byte of a file has been requested.
      room: bytes that a reader may hold of what it reads.
      requests: the threads that request what is read ahead for many readers.
      memory: where the bytes of a file come to lie.
    """

    stamp: tuple[str, str] | None = None
    begun: tuple[str, DescribedBytes] | None = None
    until: int | None = None
    requested: Callable[[], None] | None = None
    room: int | None = None
    requests: Callable[[], Pool] | None = None
    memory: "Adjoining | None" = None


HINTS = _Hints()
"""Those of the calling thread."""


def _of_file(hint: tuple[str, T] | None, path: str) -> T | None:
    """What a hint says of this file; None: nothing."""
    return hint[1] if hint is not None and hint[0] == path else None


class _hinted(AbstractContextManager[None]):  # noqa: N801 - called as a function, and quicker than one that yields
    __slots__ = ("_before", "_name", "_value")

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def __enter__(self) -> None:
        self._before = getattr(HINTS, self._name)
        setattr(HINTS, self._name, self._value)

    def __exit__(self, *_: object) -> None:
        setattr(HINTS, self._name, self._before)


def stamped(path: str, stamp: str | None) -> AbstractContextManager[None]:
    """`stamp_of` does not ask for the stamp of a remote file again, which is known; None: it does.

    >>> from distinput.files.source import stamp_of
    >>> with stamped("https://example.com/a", "1"):
    ...     stamp_of("https://example.com/a")
    '1'
    """
    return _hinted("stamp", HINTS.stamp if stamp is None else (path, stamp))


def beginning_with(path: str, found: DescribedBytes | None) -> AbstractContextManager[None]:
    """A `FileStream` of the file does not ask for its beginning again, which is there; None: it does."""
    return _hinted("begun", HINTS.begun if found is None else (path, found))


def wanted_until(stop: int | None) -> AbstractContextManager[None]:
    """A `FileStream` asks for nothing from this byte on when it is opened; None: it does."""
    return _hinted("until", stop)


def telling(requested: Callable[[], None] | None) -> AbstractContextManager[None]:
    """A `FileStream` of a remote file calls this once it has requested the last byte; None: it tells nobody."""
    return _hinted("requested", requested)


def lying_in(memory: "Adjoining | None") -> AbstractContextManager[None]:
    """The bytes of a `FileStream` that is opened here come to lie in this memory; None: each chunk in a buffer of its own."""
    return _hinted("memory", memory)


@contextmanager
def within(room: int | None, requests: Callable[[], Pool] | None = None) -> Iterator[None]:
    """Formats whose readers begin here hold about so many bytes of what they read; None: as many as they like.

    Args:
      room: the bytes.
      requests: the threads that request them, where they are remote.
    """
    with _hinted("room", room), _hinted("requests", requests):
        yield


def begun_within(room: tuple[int | None, Callable[[], Pool]], items: Iterator[T]) -> Iterator[T]:
    """What a format reads, begun as `within` has it."""
    with within(*room):
        first = next(items, None)
    if first is not None:
        yield first
    del first  # its memory is not held while the rest is read
    yield from items


def room_for(usual: int) -> int:
    """How many bytes a reader that begins now takes at a time, of `usual` ones: fewer where many files are read by turns.

    >>> with within(1 << 20):
    ...     room_for(4 << 20), room_for(1 << 16)
    (1048576, 65536)
    """
    return usual if HINTS.room is None else min(usual, max(HINTS.room, _LEAST_ROOM))


# ----------------------------------------------------------------------------
# A local file whose reads are whole: they end early only at the end of the file.
#
# The operating system reads at most 2,147,479,552 bytes at a time, and file systems over a network or in user space may
# give fewer bytes than were asked for, whenever they like.
# ----------------------------------------------------------------------------


class LocalFile(io.FileIO):
    """A local file, opened for reading.

    Args:
      path: of the file, or a descriptor, which is closed with it.

    Attributes:
      size: in bytes, when it was opened; None for a pipe, which gives what is there.

    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_bytes(b"some bytes")
    >>> with LocalFile("a.txt") as file:
    ...     file.read(4)
    b'some'
    """

    def __init__(self, path: str | int) -> None:
        super().__init__(path, "rb")
        status = os.fstat(self.fileno())
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else None
        # Where the open file itself stands is changed by forks of this process as well.
        self._at = None if self.size is None or not hasattr(os, "preadv") else 0

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if self._at is None:
            return super().seek(offset, whence)
        if whence == os.SEEK_CUR:
            offset, whence = self._at + offset, os.SEEK_SET
        self._at = super().seek(offset, whence)
        return self._at

    def tell(self) -> int:
        return super().tell() if self._at is None else self._at

    def read(self, size: int | None = -1, /) -> bytes:
        if self._at is None:
            return super().read(-1 if size is None else size) or b""
        parts, left = [], sys.maxsize if size is None or size < 0 else size
        most = max(_LEAST_ROOM, (self.size or 0) - self._at)
        while left and (found := os.pread(self.fileno(), min(left, most), self._at)):
            parts.append(found)
            self._at += len(found)
            left -= len(found)
        return b"".join(parts)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        if self._at is None:
            return super().readinto(buffer) or 0
        view, done = memoryview(buffer).cast("B"), 0
        while done < len(view) and (got := os.preadv(self.fileno(), [view[done:]], self._at)):
            done += got
            self._at += got
        return done


# ----------------------------------------------------------------------------
# Reading files: their size, a part of them, or all of it in chunks, optionally decompressed.
#
# A missing file raises `NotFoundError`; other errors of the operating system keep their type and get a note on the path.
# ----------------------------------------------------------------------------


EMPTY: Bytes = np.empty(0, np.uint8)
"""No bytes."""

_BYTE = np.dtype(np.uint8)

_POOL = Buffers(step_bits=0)
"""Bytes read from files have a buffer pool of their own, so that they do not evict arrays of users. Chunks have many
similar sizes, so the pool rounds them up to the next power of two."""

_LEAST_ROOM = 16 * 1024  # less would cost a call for every few records

_INFLATED_FROM = 64 * 1024  # bytes of a compressed file read at a time

_BEGINNING_BYTES = 1 << 20
"""What is asked for together with the size of a remote file: as much as comes within the time of one more request."""

_MOST_INFLATED, _MOST_RATIO = 256 << 20, 100
"""The most bytes of one record of a compressed file, or so many times the bytes of the file that were read, if that is more. A
file of a megabyte may expand to gigabytes; what is longer than this is meant to fill the memory."""


@contextmanager
def naming(path: str, doing: str = "reading") -> Iterator[None]:
    """Name the file in errors raised inside the `with`."""
    try:
        yield
    except NotFoundError:
        raise
    except FileNotFoundError as error:
        told = what_failed(error)
        if told is error:
            told = NotFoundError(f"{path}; No such file or directory")
        else:
            told.add_note(f"while {doing} {path!r}")
        try:
            raise_told(told, error)
        finally:
            del told  # as in `raise_told`
    except OSError as error:
        error.add_note(f"while {doing} {path!r}")
        if doing == "reading" and isinstance(error, IsADirectoryError):
            error.add_note(f"in a list of files, {path + '/'!r} stands for the files below a directory")
        note_open_files(error)
        scrub(error)
        raise
    except ValueError:
        if "\0" not in path:
            raise
        raise InvalidArgumentError(f"{path!r}: no file has a name with a NUL in it") from None


def size_of(path: str) -> int:
    """Size of a file in bytes; 0 if unknown (some web servers do not report it).

    Raises:
      NotFoundError: it is not there.
    """
    with naming(path):
        local = local_path(path)
        return os.stat(local).st_size if local is not None else _remote_size(path) or 0


def _remote_size(path: str) -> int | None:
    size = asked(path, lambda system, name: system.size(name))
    return None if size is None else int(size)


def refuse_pipe(path: str) -> None:
    """Refuse what can be read once, for readers that look at the beginning first.

    Raises:
      FailedPreconditionError: it is a pipe.
    """
    local, mode = local_path(path), 0
    if local is not None:
        with suppress(OSError, ValueError):  # which is told where it is opened
            mode = os.stat(local).st_mode
    if stat.S_ISFIFO(mode):
        raise FailedPreconditionError(
            f"{path}: is a pipe, which can be read once, and this format looks at the beginning of a file first; save it to a "
            "file, as the commands of `distinput` do"
        )


def stamp_of(path: str) -> str:
    """A string that changes when the file does.

    Raises:
      NotFoundError: it is not there.
    """
    local = local_path(path)
    if local is None:
        known, begun = _of_file(HINTS.stamp, path), _of_file(HINTS.begun, path)
        if known is not None:
            return known
        with naming(path):
            stamp, facts = asked(path, _stamp_in) if begun is None else (begun.stamp, begun.facts)
        if facts is not None:
            if len(_FACTS) >= _MOST_FACTS:
                _FACTS.clear()
            _FACTS[path] = stamp, facts
        return stamp
    try:
        status = os.stat(local)
    except OSError:
        # Entered only on error: the stamp of a mapped file is taken before each use and must be cheap.
        with naming(path):
            raise
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _stamp_in(system: Any, name: str) -> tuple[str, FileMetadata | None]:
    if not hasattr(system, "stamp_in") and not is_web(system):
        return ukey_of(system, name), None
    found = system.info(name)
    return _stamp(system, name, found), facts_in(found)


def _stamp(system: Any, name: str, found: Any) -> str:
    """The stamp of a file of which `info` says this."""
    if hasattr(system, "stamp_in"):
        return str(system.stamp_in(found))
    facts = facts_in(found)  # the key of fsspec is a hash of the URL
    return f"{ukey_of(system, name)} {facts.size} {facts.etag.removeprefix('W/') or facts.written}"


_MOST_FACTS = 4096
_FACTS: dict[str, tuple[str, FileMetadata]] = {}
"""What servers said of files when they were asked for stamps: no other request is needed to open that version."""


def facts_at(path: str, stamp: str | None) -> FileMetadata:
    """What is said of a remote file of this stamp; it is asked for where its stamp does not tell."""
    known = _FACTS.get(path)
    return known[1] if known is not None and known[0] == stamp else asked(path, facts_of)


def check_unchanged(path: str, stamp: str) -> None:
    """Reject a local file that was modified or truncated in place since this stamp: its mapped bytes may be gone.

    A file that was replaced or deleted passes: the mapping of the old one is still intact. So does one that is not local.

    Raises:
      DataLossError: the file has changed in place.
    """
    if local_path(path) is None:
        return
    try:
        now = stamp_of(path)
    except NotFoundError:
        return
    if now != stamp and _inode(now) == _inode(stamp):
        raise DataLossError(
            f"{path}: changed while it was read: it had {stamp.partition('-')[0]} bytes, now it has "
            f"{now.partition('-')[0]}; write another file and rename it instead of writing in place"
        )


def _inode(stamp: str) -> str:
    return stamp.rpartition("-")[2]


def version_of(path: str) -> str:
    """Like `stamp_of`, but the same on all machines that see the file, so that it can be saved.

    Raises:
      NotFoundError: it is not there.
    """
    with naming(path):
        local = local_path(path)
        if local is not None:
            status = os.stat(local)
            return f"{status.st_size}-{status.st_mtime_ns}"
    return stamp_of(path)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading and seeking.

    Raises:
      NotFoundError: it is not there.
    """
    with naming(path):
        local = local_path(path)
        if local is not None:
            return cast(BinaryIO, LocalFile(local))
        return asked(path, _open_in)


def _open_in(system: Any, name: str) -> BinaryIO:
    file: Any = system.open(name, "rb")
    # All readers of a `memory://` file share one position; a new BytesIO shares the bytes without a copy.
    if isinstance(file, io.BytesIO):
        return io.BytesIO(file.getvalue())
    if is_web(system) and file.size is None:
        return cast(BinaryIO, StreamedFile(name, file))
    if not hasattr(file, "fs"):
        file.fs = system  # keeps the archive open as long as the file inside it
    return cast(BinaryIO, file)


def open_ranges(path: str, *, in_order: bool = False) -> BinaryIO:
    """Like `open_binary`, for random access: each read of a remote file requests exactly its bytes.

    Args:
      path: of the file.
      in_order: true if the file is read from front to back; then each request is larger than the one before.

    Raises:
      NotFoundError: it is not there.
      UnimplementedError: its server sends whole files only, and it is not read in order.
    """
    if in_order:
        stream = _remote(path, RemoteStream)
        return open_binary(path) if stream is None else io.BufferedReader(stream)
    file: BinaryIO = _remote(path, RemoteFile) or open_binary(path)
    if isinstance(file, StreamedFile):
        file.close()
        raise sends_whole(path)
    return file


def _remote(path: str, kind: type[RemoteFile]) -> Any:
    """Open a remote file that can be read by ranges; None for any other file."""
    if local_path(path) is not None or path.startswith("memory://"):  # its bytes are shared
        return None
    with naming(path):
        facts = facts_at(path, _of_file(HINTS.stamp, path))
        if facts.size == 0:  # which stores of objects say of folders, too
            asked(path, partial(_check_file, path))
        return None if facts.size is None else kind(path, facts.size, facts)


def _check_file(path: str, system: Any, name: str) -> None:
    if told_by(system).info(name).get("type") == "directory":
        folder = f"{path.rstrip('/')}/"
        raise InvalidArgumentError(f"{path}: is a folder; name it {folder!r} to read the files below it")


def read_range(path: str, start: int, stop: int, facts: FileMetadata | None = None) -> bytes:
    """Read bytes start to stop of a file; fewer if it ends before `stop`.

    Args:
      path: of the file.
      start: the first byte.
      stop: the byte after the last one.
      facts: of the version that is read, if it is a remote one whose facts are known: it does not end before `stop` then.

    Raises:
      DataLossError: it is another version.
      NotFoundError: it is not there.
    """
    with naming(path):
        local = local_path(path)
        if local is None:
            return bytes(fetch(path, [start], [max(start, stop)], facts)[0])
        with open(local, "rb") as file:
            file.seek(start)
            return file.read(max(0, stop - start))


def read_whole(path: str) -> bytes:
    """All bytes of a file; those of a small remote one in one request, where that can be had.

    Raises:
      NotFoundError: it is not there.
    """
    answer = None if local_path(path) is not None else _asked_once(path, "beginning", 0, _BEGINNING_BYTES)
    if answer is not None and answer[0].get("size") == len(answer[1]):  # what else it says need not be understood
        return bytes(answer[1])
    found = _complete(answer, 0, _BEGINNING_BYTES)
    if found is None:
        with _remote(path, RemoteFile) or open_binary(path) as file:
            return bytes(file.read())
    facts, first, _ = found
    with naming(path):
        return b"".join([first, *fetch(path, [len(first)], [facts.size or 0], facts)])


def begun(path: str, start: int = 0) -> DescribedBytes | None:
    """What is asked for first to read a remote file from this byte on; None if that takes more than one request."""
    known = _of_file(HINTS.begun, path)
    if known is not None and not start:
        return known
    size = room_for(_BEGINNING_BYTES)
    size = size if HINTS.until is None else min(HINTS.until - start, size)
    return beginning(path, start, size) if size > 0 else None


def _opened(path: str, start: int) -> RemoteStream | None:
    """Open a remote file that is read on from this byte; None for any other file."""
    if local_path(path) is not None or path.startswith("memory://"):
        return None
    known, before = _of_file(HINTS.begun, path), None
    if HINTS.until is None or HINTS.until > _BEGINNING_BYTES:
        before = _READ_ON.pop(path, None)
    if before is not None and known is None:
        again = _opened_again(path, start, before)
        if again is not None:
            return again
    within_it = known is not None and start < max(1, len(known.data))
    first, answer = (0, known) if within_it else (start, begun(path, start))
    stream: RemoteStream | None
    if answer is None or answer.facts.size is None:
        stream = _remote(path, RemoteStream)
    else:
        stream = RemoteStream(path, answer.facts.size, answer.facts)
        stream.tells_version = bool(answer.facts.etag or answer.facts.written)
    if stream is not None:
        _follow_hints(stream)
        if answer is not None:
            stream.begin(first, answer.data)
            if before is not None:
                stream.read_far(first + len(answer.data))
    return stream


def _opened_again(path: str, start: int, facts: FileMetadata) -> RemoteStream | None:
    """Open a file of which an answer told these facts before, and read far ahead at once; None: it is another one now.

    So is one that is not there, or may not be read: who opens it as usual is told so.
    """
    if facts.size is None or start >= facts.size or local_cache() is not None:
        return None
    stream = RemoteStream(path, facts.size, facts)
    stream.tells_version = True
    _follow_hints(stream)
    try:
        with ExitStack() as stack, naming(path):
            stack.enter_context(stream)
            stream.read_far(start, room_for(_BEGINNING_BYTES))
            stack.pop_all()
            return stream
    except Exception as error:
        refused = isinstance(error, DataLossError | OSError) or 400 <= getattr(error, "status", 0) < 500
        if not refused:
            raise
        return None


def _follow_hints(stream: RemoteStream) -> None:
    """Have a stream that was opened do as the hints of this thread say."""
    stream.requested = HINTS.requested
    if HINTS.until is not None:
        stream.stop = min(HINTS.until, stream.size)
    if HINTS.room is not None and HINTS.requests is not None:
        stream.keep_within(HINTS.room, HINTS.requests)


def _note_read(stream: RemoteStream) -> None:
    """Note that a large file was read to the end of what was wanted of it."""
    end = min(stream.stop, stream.size)
    if stream.tells_version and stream.facts is not None and stream.tell() >= end > _BEGINNING_BYTES:
        if len(_READ_ON) >= _MOST_FACTS:
            _READ_ON.clear()
        _READ_ON[stream.path] = stream.facts


_READ_ON: dict[str, FileMetadata] = {}
"""What was said of files that were read to their ends: who opens one the next time reads far ahead at once."""


_MOST_ADJOINING = 4 << 20
"""The largest buffer in which several files lie."""


class Adjoining:
    """Memory in which files that are read one after the other lie in one buffer, as long as rows of them are wanted together.

    Such rows are joined without a copy of their bytes.
    """

    def __init__(self) -> None:
        self._left, self._given, self._wanted = EMPTY, 0, 0

    def part(self) -> None:
        """What follows is not wanted together with what is there."""
        self._left, self._given, self._wanted = EMPTY, 0, min(self._given, _MOST_ADJOINING)

    def empty(self, size: int) -> Bytes:
        """So many bytes, aligned as those of the pool."""
        if len(self._left) < size:
            self._left = EMPTY  # whose buffer may be the next one
            self._left = _POOL.empty((max(size, self._wanted),), _BYTE)
        padded = -(-size // ALIGNMENT) * ALIGNMENT
        found, self._left = self._left[:size], self._left[padded:]
        self._given += padded
        return found


def read_small(path: str, most: int) -> Bytes | None:
    """All bytes of a local file, in memory that stays unchanged while it is referenced.

    None if it is no file of at most so many bytes, or cannot be read, or not at once: who reads it as a `FileStream` sees why.
    """
    local = local_path(path)
    if local is None:
        return None
    with suppress(OSError, ValueError):
        status = os.stat(local)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= most:
            return None
        room = status.st_size + 1  # which is not filled unless the file has grown
        buffer = _POOL.empty((room,), _BYTE) if HINTS.memory is None else HINTS.memory.empty(room)
        with open(local, "rb", 0) as file:
            if file.readinto(buffer) == status.st_size:  # type: ignore[arg-type]  # as below
                return buffer[:-1]
    return None


class FileStream(Closing):
    """A file read from front to back.

    Args:
      path: a local path or a URL.
      compression: "" for none, "AUTO" for the one that the suffix stands for, or a codec.
      start: the byte to begin at; always 0 for a compressed file.
      first: the byte that `go_to` names next, if that is known and another one.

    Attributes:
      offset: decompressed bytes returned so far, counted from the beginning of the file.
      size: of the file in bytes; None for a pipe, and for a compressed file, whose decompressed size is unknown.
      lends: true if the bytes that arrive can be had without a copy; see `next_bytes`.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: the file ends before `start`, or becomes shorter while it is read.
    """

    def __init__(self, path: str, compression: Compression = "", start: int = 0, first: int | None = None) -> None:
        self.path = path
        self.offset = start
        self._file: Any = _opened(path, start if first is None else first) or open_binary(path)
        codec = compression_of(compression, path)
        self._inflater = Inflater(codec, path, self._compressed) if codec else None
        self._damage: DataLossError | None = None  # found after bytes that are still good; raised by the next call
        self.size: int | None = None
        self._taken = start  # bytes read from the file
        self.lends = not codec and isinstance(self._file, RemoteStream)
        self._memory = HINTS.memory
        try:
            local = isinstance(self._file, LocalFile)
            size = self._size() if local or self._inflater is None else None
            self._whole = size if local else None  # a remote file may yield a size other than reported
            if self._inflater is not None:
                return
            self.size = size
            if start:
                self.go_to(start)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file; returned bytes stay valid."""
        if isinstance(self._file, RemoteStream):
            _note_read(self._file)
        self._file.close()

    def _size(self) -> int | None:
        if isinstance(self._file, LocalFile):
            return self._file.size
        if isinstance(self._file, io.BytesIO):
            return self._file.getbuffer().nbytes
        known = getattr(self._file, "size", None)
        with naming(self.path):
            return int(known) if known is not None else _remote_size(self.path)

    def expect_end(self, offset: int) -> None:
        """Limit read-ahead of an uncompressed file to this byte; bytes after it are only read on request."""
        if isinstance(self._file, RemoteStream):
            self._file.stop = min(offset, self._file.size)

    def go_to(self, offset: int) -> None:
        """Continue reading an uncompressed file at this byte.

        Raises:
          DataLossError: the file ends before it.
        """
        size = self.size
        if size is None or offset <= size:  # no system seeks to every number
            with naming(self.path):
                end = self._file.seek(offset)
            size = end if size is None else size  # of a file that is sent whole, if it comes before
        if offset > size:
            raise DataLossError(
                f"{self.path}: has {size} bytes, but reading must continue at byte {offset}; the file has changed"
            )
        self.offset = self._taken = offset

    def skip(self, size: int) -> int:
        """Skip `size` bytes; returns how many were skipped, which is fewer only at the end of the file.

        Raises:
          DataLossError: the compressed data is damaged.
        """
        before = self.offset
        while before + size > self.offset:
            _, ended = self.more(EMPTY, min(_INFLATED_FROM, before + size - self.offset))
            if ended:
                break
        return self.offset - before

    def more(self, kept: Bytes, size: int) -> tuple[Bytes, bool]:
        """Return `kept` followed by up to `size` new bytes, in memory that stays unchanged while it is referenced.

        Args:
          kept: the unused end of the previous result, to be put before the new bytes.
          size: how many new bytes; fewer are returned only at the end of the file.

        Returns:
          The bytes, and true if the file has ended.

        Raises:
          DataLossError: the compressed data is damaged, or expands to a record out of all proportion.
        """
        length, whole = len(kept), len(kept) + size
        if self._inflater is not None and whole > _MOST_INFLATED:
            whole = min(whole, max(_MOST_INFLATED, _MOST_RATIO * self._taken))
            if length >= whole:
                raise DataLossError(
                    f"{self.path}: {self._taken} bytes of it expand to a record of more than {length} bytes, which begins at "
                    f"byte {self.offset - length} of what it expands to; if that is no mistake, store it without compression"
                )
        buffer = _POOL.empty((whole,), _BYTE) if self._memory is None else self._memory.empty(whole)
        buffer[:length] = kept
        view = memoryview(buffer)  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
        read, local = (self._read, self._whole) if self._inflater is None else (self._inflater.readinto, None)
        with naming(self.path):
            while length < whole and self._damage is None:
                try:
                    got = read(view[length:whole])
                except DataLossError as error:
                    self._damage = error
                    break
                length += got
                if not got or (length < whole and local is not None and self._taken >= local):
                    break  # one read of it is short at its end alone
        if self._damage is not None and length == len(kept):
            raise self._damage
        self.offset += length - len(kept)
        return buffer[:length], length < whole and self._damage is None

    def next_bytes(self, size: int) -> tuple[Bytes, bool]:
        """Return some of the next `size` bytes of a file that lends them, as they came, and true if the file has ended."""
        with naming(self.path):
            found = np.frombuffer(self._file.read(size), _BYTE)
        self.offset += len(found)
        self._taken += len(found)
        return found, self.offset == self.size

    def _read(self, view: memoryview) -> int:
        got = int(self._file.readinto(view) or 0)
        self._taken += got
        return got or self._end()

    def _end(self) -> int:
        """Return 0: the file has ended.

        Raises:
          DataLossError: it was longer when it was opened. Otherwise truncated text would silently lack lines.
        """
        if self._whole is not None and self._taken < self._whole:
            raise DataLossError(
                f"{self.path}: had {self._whole} bytes when it was opened, but ends after {self._taken}; it was cut short "
                "while it was read"
            )
        return 0

    def _compressed(self, size: int) -> bytes:
        """Read up to `size` bytes of a compressed file."""
        data = self._file.read(size)
        self._taken += len(data)
        if not data:
            self._end()
        return bytes(data)


# ----------------------------------------------------------------------------
# Read many spans of one file at once, without what lies between them.
# ----------------------------------------------------------------------------


_GAP = 4096
"""Spans of a local file are read together if at most so many bytes lie between them."""


def read_spans(path: str, starts: Ints, sizes: Ints, out: Bytes | None = None) -> Bytes:
    """Read bytes starts[i] to starts[i] + sizes[i] of a file, and return the spans concatenated.

    Spans that follow each other in the file are read as one.

    Args:
      path: of the file.
      starts: [n].
      sizes: [n].
      out: memory for them; None: some that is made.

    Raises:
      NotFoundError: it is not there.
      DataLossError: the file ends before a span does.
    """
    out = np.empty(int(sizes.sum()), np.uint8) if out is None else out
    firsts = np.flatnonzero(np.append(True, starts[1:] != (starts + sizes)[:-1])[: len(starts)])
    starts, sizes = starts[firsts], np.add.reduceat(sizes, firsts) if len(firsts) else sizes
    with naming(path):
        local = local_path(path)
        if local is None:
            got = b"".join(fetch(path, starts.tolist(), (starts + sizes).tolist()))
            if len(got) == len(out):
                out[:] = np.frombuffer(got, np.uint8)
                return out
            raise _too_short(path)
        return _of_local(path, local, starts, sizes, out)


def _of_local(path: str, local: str, starts: Ints, sizes: Ints, out: Bytes) -> Bytes:
    """Spans of a local file: those near each other are read at once, since a call costs as much as some KiB."""
    order = np.argsort(starts, kind="stable")
    begins, ends = starts[order], np.maximum.accumulate((starts + sizes)[order])
    apart = np.flatnonzero(begins[1:] - ends[:-1] > _GAP) + 1
    firsts = np.append(0, apart) if len(begins) else apart
    runs, stops = begins[firsts], ends[np.append(apart, len(ends)) - 1] if len(ends) else ends
    offsets = np.append(0, np.cumsum(stops - runs))
    # Nothing is copied again where nothing lies between the spans, and they are in the order of the file.
    direct = offsets[-1] == len(out) and bool((starts[1:] >= (starts + sizes)[:-1]).all())
    data = out if direct else np.empty(int(offsets[-1]), np.uint8)
    view = memoryview(data)  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
    file = os.open(local, os.O_RDONLY)
    try:
        for at, end, run in zip(offsets[:-1].tolist(), offsets[1:].tolist(), runs.tolist(), strict=True):
            done = at
            while done < end:
                got = os.preadv(file, [view[done:end]], run + done - at)
                if not got:
                    raise _too_short(path)
                done += got
    finally:
        os.close(file)
    if direct:
        return out
    shifts = np.empty(len(starts), np.int64)
    shifts[order] = np.repeat(offsets[:-1] - runs, np.diff(np.append(firsts, len(starts)))) if len(starts) else 0
    gather_spans(data, starts + shifts, np.ascontiguousarray(sizes), out, np.append(0, np.cumsum(sizes)))
    return out


def _too_short(path: str) -> DataLossError:
    return DataLossError(f"{path}: ends before the last record that was counted; the file has changed")
