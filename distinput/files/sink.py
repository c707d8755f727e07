# SPDX-License-Identifier: Apache-2.0
"""Atomic writing of files: a file is written completely or not at all."""

import contextlib
import os
import stat
import time
import warnings
from collections.abc import Iterator
from io import FileIO
from itertools import count
from typing import Any, Self

import numpy as np

from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.files.compression import Compression, compression_of, encoder_of
from distinput.files.paths import UNFINISHED, file_system, has_name, local_path, locked
from distinput.files.source import naming
from distinput.kernels.checksums import crc32
from distinput.names.lazy import library
from distinput.run.threads import Ending

hashlib, uuid = library("hashlib"), library("uuid")  # for those who write

# ----------------------------------------------------------------------------
# Unfinished files: written under a hidden name beside the final one, which no pattern matches.
#
# The writer of a local file holds a lock on it. The lock is released when the process ends, however it ends, so the next
# writer of the same file recognizes files that were left behind and removes them. Remote files, and file systems without
# locks, are judged by age.
# ----------------------------------------------------------------------------


_LEFT_BEHIND_SECONDS = 24 * 3600
"""Without locks, a file that was not modified for so long counts as left behind."""

_LONGEST_NAME = 200  # bytes; file systems allow 255

_WHOLE_WHEN_CLOSED = frozenset({"abfs", "abfss", "adl", "az", "gcs", "gs", "hf", "oci", "oss", "s3", "s3a"})
"""Stores whose objects appear only when the upload is complete. They need no hidden name; renaming would be a copy."""


class Unfinished:
    """A local file under its hidden name, open for writing.

    Args:
      path: its final name.

    Attributes:
      file: the file object to write to.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._process: int | None = os.getpid()
        names = (_hidden(path, str(number)) for number in count())
        self._name, claimed = next(found for found in map(_claim, names) if found)
        # Remove what killed writers have left behind.
        all(os.path.lexists(name) and _remove_left_behind(name) for name in names)
        # Closing the file may fail if the disk is full, and must not release the lock: the descriptor is closed at the end.
        self.file: Any = FileIO(claimed, "wb", closefd=False)
        self._descriptor: int | None = claimed
        self._locked = locked(claimed)

    def publish(self, *, durable: bool = False) -> None:
        """Close the file and give it its final name; with `durable`, both are on the disk afterwards."""
        if durable:
            os.fsync(self.file.fileno())
        self.file.close()
        assert self._descriptor is not None
        os.close(os.dup(self._descriptor))  # which tells what the file system could not write
        if self._locked and not has_name(self._descriptor, self._name):
            raise FileNotFoundError(f"{self._name} was removed while it was written")
        os.replace(self._name, self._path)
        if durable:
            _sync_folder(self._path)
        self._end()

    def discard(self) -> None:
        """Delete the file; may be called again."""
        with contextlib.suppress(OSError):
            self.file.close()
        # A forked child has the file too, but must not remove it.
        if self._process == os.getpid():
            with contextlib.suppress(OSError):
                if self._descriptor is None or not self._locked or has_name(self._descriptor, self._name):
                    os.unlink(self._name)
        self._end()

    def _end(self) -> None:
        descriptor, self._descriptor, self._process = self._descriptor, None, None
        if descriptor is not None:
            os.close(descriptor)


class Upload:
    """A file that fsspec writes: under a hidden name, or under its own if the store shows only complete objects.

    Args:
      path: its final URL.

    Attributes:
      file: the file object to write to.
    """

    def __init__(self, path: str) -> None:
        self._system, self._path = file_system(path)
        protocols = self._system.protocol
        known = {protocols} if isinstance(protocols, str) else set(protocols)
        self._name = self._path
        if not known & _WHOLE_WHEN_CLOSED and not getattr(self._system, "whole_when_closed", False):
            self._remove_left_behind()
            self._name = _hidden(self._path, uuid.uuid4().hex[:12])
        try:
            self.file: Any = self._system.open(self._name, "wb")
        except NotImplementedError as error:
            raise UnimplementedError(f"{path}: files there can be read, but not written; name another place") from error

    def publish(self, *, durable: bool = False) -> None:
        """Close the file and give it its final name; how durable it is then is the store's business."""
        self.file.close()
        if self._name == self._path:
            return
        from fsspec import AbstractFileSystem

        # The default `mv` would treat `[` and `*` in a name as a pattern.
        if getattr(self._system.mv, "__func__", None) is AbstractFileSystem.mv:
            self._system.cp_file(self._name, self._path)
            self._system.rm_file(self._name)
        else:
            self._system.mv(self._name, self._path)

    def discard(self) -> None:
        """Delete the file; may be called again."""
        with contextlib.suppress(Exception):
            if self._name == self._path:
                # Closing it would complete the upload, and so would deleting the object.
                file, self.file.closed = self.file, True
                file.discard()
            else:
                self.file.close()
        if self._name != self._path:
            with contextlib.suppress(Exception):
                self._system.rm_file(self._name)

    def _remove_left_behind(self) -> None:
        start = _hidden(self._path, "").removesuffix(UNFINISHED)
        with contextlib.suppress(Exception):  # not every file system can list files or tell when they were written
            for name in self._system.ls(self._system._parent(self._path), detail=False):
                if name.endswith(UNFINISHED) and name.rpartition("/")[2].startswith(start.rpartition("/")[2]):
                    age = time.time() - self._system.modified(name).timestamp()
                    if age > _LEFT_BEHIND_SECONDS:
                        self._system.rm_file(name)


def _sync_folder(path: str) -> None:
    """Have the names in the folder of a file written to the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _hidden(path: str, which: str) -> str:
    """The hidden name of an unfinished file for `path`; `which` distinguishes concurrent writers."""
    folder, slash, name = path.rpartition("/") if os.sep == "/" or "/" in path else path.rpartition(os.sep)
    encoded = name.encode(errors="surrogateescape")
    if len(encoded) > _LONGEST_NAME:
        name = f"{name[:40]}-{hashlib.sha256(encoded).hexdigest()[:16]}"
    return f"{folder}{slash}.{name}.{which}{UNFINISHED}"


def _claim(name: str) -> tuple[str, int] | None:
    """Create and lock a file of this name: the name and its descriptor; None if it belongs to a living writer."""
    while True:
        try:
            found = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            if not _remove_left_behind(name):
                return None
            continue
        # Another process may have removed the file as left behind before it was locked.
        if locked(found) is not False and has_name(found, name):
            return name, found
        os.close(found)


def _remove_left_behind(name: str) -> bool:
    """Remove an unfinished file unless it belongs to a living writer; True if it is gone."""
    try:
        descriptor = os.open(name, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return True
    except OSError:  # another user's
        return False
    try:
        free = locked(descriptor)
        if free is None:
            free = time.time() - os.fstat(descriptor).st_mtime > _LEFT_BEHIND_SECONDS
        if free and has_name(descriptor, name):
            os.unlink(name)
        return free
    except FileNotFoundError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


_BUFFERED = 256 * 1024  # bytes collected before they are written
WRITTEN_ALONE = _BUFFERED
"""Bytes that are written at once when `write` is called, without being kept or copied."""


class Sink(Ending):
    """A file being written from front to back.

    It is written under a hidden name, which no pattern matches, and is renamed when `close` succeeds. Until then an
    existing file of that name stays. A sink that is never closed, or whose write failed, leaves nothing behind.

    Args:
      path: a local path or a URL.
      compression: "" for none, "AUTO" for the one that the suffix stands for, or a codec.
      level: of the compression, -1 for its default.
      durable: True if a file that `close` has completed must also outlive a machine that loses power; takes milliseconds.
      checksum: True to compute a checksum of the file while it is written.
      own: True where the library chose the name: a link of this name is replaced, never what it leads to, and so is a pipe.

    Raises:
      NotFoundError: the folder does not exist.
    """

    def __init__(
        self,
        path: str,
        compression: Compression = "",
        level: int = -1,
        *,
        durable: bool = False,
        checksum: bool = False,
        own: bool = False,
    ) -> None:
        self.path = path
        self._durable = durable
        self._target: Unfinished | Upload | _Stream | None = None
        codec = compression_of(compression, path)
        self._encoder = encoder_of(codec, level) if codec else None
        self._parts: list[bytes | memoryview] = []
        self._gathered = 0
        self._finished = False
        self.size = 0
        """Bytes that the file has so far, without those that are still collected."""
        self.crc32: int | None = 0 if checksum else None
        """The checksum of these bytes, if it was asked for."""
        self._failure: BaseException | None = None
        with naming(path, "writing"):
            self._target = _target(path, own)
        self.begun()

    @property
    def closed(self) -> bool:
        """True if nothing can be written any more."""
        return self._target is None or self._finished

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, which must not change until the next `flush`.

        Raises:
          ValueError: the sink is closed.
          OSError: the bytes, or earlier ones, could not be written; the file is discarded.
        """
        self._check_failure()
        if self.closed:
            raise InvalidArgumentError(f"{self.path}: writing to a closed file")
        self._parts.append(data)
        self._gathered += len(data)
        if self._gathered >= _BUFFERED:
            with self._giving_up():
                self._write_out()

    def flush(self) -> None:
        """Pass everything written so far to the operating system; the file keeps its hidden name."""
        self._pass_on(whole=False)

    def finish(self) -> None:
        """Write the end of the file, without renaming it yet. May be called again."""
        self._pass_on(whole=True)

    def _pass_on(self, *, whole: bool) -> None:
        self._check_failure()
        if self.closed:
            return
        with self._giving_up():
            self._write_out()
            if self._encoder is not None:
                self._put(self._encoder.finish() if whole else self._encoder.flush())
            self._file.flush()
            self._finished = whole

    def close(self, patience: float | None = None) -> None:
        """Finish the file and give it its final name; may be called again.

        Raises:
          OSError: the file could not be written completely; nothing is left of it.
        """
        self.finish()
        if self._target is not None:
            with self._giving_up():
                self._target.publish(durable=self._durable)
            self._target = None

    def discard(self) -> None:
        """Discard the file; may be called again, and does nothing after `close`."""
        target, self._target = self._target, None
        self._parts.clear()
        if target is not None:
            target.discard()

    def give_up(self, error: BaseException) -> None:
        """Discard the file because of an error, which whatever is done with it afterwards tells."""
        self._failure = self._failure or error
        self.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if getattr(self, "_target", None) is not None:
            self.end(0.0)

    def end(self, patience: float | None) -> None:
        """Discard a file that was never closed, with a warning; called on deletion and at exit."""
        if self._target is not None:
            self.discard()
            warnings.warn(
                f"{self.path}: was written, but never closed, so nothing was kept of it; write it in a `with` block or "
                "call close()",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )

    @property
    def _file(self) -> Any:
        assert self._target is not None
        return self._target.file

    @contextlib.contextmanager
    def _giving_up(self) -> Any:
        """Discard the file on any error inside the `with`: writing on would leave a file with a gap."""
        try:
            with naming(self.path, "writing"):
                yield
        except BaseException as error:
            self.give_up(error)
            raise

    def _check_failure(self) -> None:
        if self._failure is not None:
            number = getattr(self._failure, "errno", None)
            text = f"{self.path}: was given up, and nothing is left of it, since writing failed: {self._failure}"
            raise OSError(text) if number is None else OSError(number, text)

    def _write_out(self) -> None:
        parts, self._parts, self._gathered = self._parts, [], 0
        for data in _joined(parts):
            self._put(data if self._encoder is None else self._encoder.encode(data))

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self.size += len(view)
        if self.crc32 is not None and len(view):
            self.crc32 = crc32(np.frombuffer(view, np.uint8), self.crc32)
        while len(view):
            written = self._file.write(view)
            if written is None:  # some files, such as paramiko's, write all and say nothing
                return
            view = view[written:]


def _joined(parts: list[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes, small parts joined, and large ones as they are, so that they are not copied."""
    small: list[bytes | memoryview] = []
    for part in parts:
        if len(part) < WRITTEN_ALONE:
            small.append(part)
            continue
        if small:
            yield b"".join(small)
            small.clear()
        yield part
    if small:
        yield b"".join(small)


class _Stream:
    """A pipe or a device: it has no hidden name, and what was written cannot be taken back."""

    def __init__(self, path: str) -> None:
        self.file: Any = FileIO(path, "wb")

    def publish(self, *, durable: bool) -> None:
        self.file.close()

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()


def _target(path: str, own: bool) -> Unfinished | Upload | _Stream:
    local = local_path(path)
    if local is None:
        return Upload(path)
    if own:
        if os.path.isdir(local) and not os.path.islink(local):
            raise IsADirectoryError(f"{path} is a folder")
        return Unfinished(local)
    local = os.path.realpath(local)
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(local).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{path} is a folder")
        if not stat.S_ISREG(mode):
            return _Stream(local)
    return Unfinished(local)
