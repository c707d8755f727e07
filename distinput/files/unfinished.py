# SPDX-License-Identifier: Apache-2.0
"""Files that are not whole yet: a hidden name beside their own, which no pattern matches.

A local one is locked by whoever writes it. The lock ends with the process, however that ends, so the next writer of the
same file knows those that were left behind and removes them. Where there are no locks, and elsewhere, age tells.
"""

import contextlib
import hashlib
import os
import time
import uuid
from io import FileIO
from itertools import count
from typing import Any

from distinput.files.paths import UNFINISHED, file_system

__all__ = ["Unfinished", "Upload"]

_LEFT_BEHIND_SECONDS = 24 * 3600
"""What nobody has written to for so long is taken as left behind, where no lock can tell."""

_LONGEST_NAME = 200  # bytes; file systems allow 255

_WHOLE_WHEN_CLOSED = frozenset({"abfs", "abfss", "adl", "az", "gcs", "gs", "hf", "oci", "oss", "s3", "s3a"})
"""Stores whose objects appear when their upload is complete. They need no other name, and renaming would be a copy."""


class Unfinished:
    """A local file under its hidden name, open for writing.

    Args:
      path: the name that it gets when it is whole.

    Attributes:
      file: to write to.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._process: int | None = os.getpid()
        names = (_hidden(path, str(number)) for number in count())
        self._name, claimed = next(found for found in map(_claim, names) if found)
        # What other writers that were ended have left.
        all(os.path.lexists(name) and _remove_left_behind(name) for name in names)
        self.file: Any = FileIO(claimed, "wb")
        # Closing the file may fail, where the disk is full, and must not end the lock.
        self._lock = os.dup(claimed) if _locked(claimed) else None

    def publish(self) -> None:
        """Close the file and give it its own name."""
        self.file.close()
        if self._lock is not None and not _is(self._lock, self._name):
            raise FileNotFoundError(f"{self._name} was removed while it was written")
        os.replace(self._name, self._path)
        self._end()

    def discard(self) -> None:
        """Leave nothing of it; may be called again."""
        with contextlib.suppress(OSError):
            self.file.close()
        # A process that was forked has the file too, but it is not its own to remove.
        if self._process == os.getpid():
            with contextlib.suppress(OSError):
                if self._lock is None or _is(self._lock, self._name):
                    os.unlink(self._name)
        self._end()

    def _end(self) -> None:
        lock, self._lock, self._process = self._lock, None, None
        if lock is not None:
            os.close(lock)


class Upload:
    """A file that fsspec writes: under a hidden name, or where it appears only when it is whole, under its own.

    Args:
      path: the URL that it gets when it is whole.

    Attributes:
      file: to write to.
    """

    def __init__(self, path: str) -> None:
        self._system, self._path = file_system(path)
        protocols = self._system.protocol
        known = {protocols} if isinstance(protocols, str) else set(protocols)
        self._name = self._path
        if not known & _WHOLE_WHEN_CLOSED:
            self._remove_left_behind()
            self._name = _hidden(self._path, uuid.uuid4().hex[:12])
        self.file: Any = self._system.open(self._name, "wb")

    def publish(self) -> None:
        """Close the file and give it its own name."""
        self.file.close()
        if self._name == self._path:
            return
        from fsspec import AbstractFileSystem

        # It would take `[` and `*` in a name for a pattern.
        if getattr(self._system.mv, "__func__", None) is AbstractFileSystem.mv:
            self._system.cp_file(self._name, self._path)
            self._system.rm_file(self._name)
        else:
            self._system.mv(self._name, self._path)

    def discard(self) -> None:
        """Leave nothing of it; may be called again."""
        with contextlib.suppress(Exception):
            if self._name == self._path:
                # Closing it would complete the upload, and so would forgetting it.
                file, self.file.closed = self.file, True
                file.discard()
            else:
                self.file.close()
        if self._name != self._path:
            with contextlib.suppress(Exception):
                self._system.rm_file(self._name)

    def _remove_left_behind(self) -> None:
        start = _hidden(self._path, "").removesuffix(UNFINISHED)
        with contextlib.suppress(Exception):  # not every file system lists, or knows when a file was written
            for name in self._system.ls(self._system._parent(self._path), detail=False):
                if name.endswith(UNFINISHED) and name.rpartition("/")[2].startswith(start.rpartition("/")[2]):
                    age = time.time() - self._system.modified(name).timestamp()
                    if age > _LEFT_BEHIND_SECONDS:
                        self._system.rm_file(name)


def _hidden(path: str, which: str) -> str:
    """The name of an unfinished file, which stands for `path`; `which` of those that are written at a time."""
    folder, slash, name = path.rpartition("/") if os.sep == "/" or "/" in path else path.rpartition(os.sep)
    encoded = name.encode(errors="surrogateescape")
    if len(encoded) > _LONGEST_NAME:
        name = f"{name[:40]}-{hashlib.sha256(encoded).hexdigest()[:16]}"
    return f"{folder}{slash}.{name}.{which}{UNFINISHED}"


def _claim(name: str) -> tuple[str, int] | None:
    """The name, and a locked descriptor of a new file that has it; None: it belongs to a living writer."""
    while True:
        try:
            found = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            if not _remove_left_behind(name):
                return None
            continue
        # Whoever looks for what was left behind may have taken it for that before it was locked.
        if _locked(found) is not False and _is(found, name):
            return name, found
        os.close(found)


def _remove_left_behind(name: str) -> bool:
    """Remove an unfinished file unless it belongs to a living writer; True when it is gone."""
    try:
        found = os.open(name, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return True
    except OSError:  # another user's
        return False
    try:
        locked = _locked(found)
        if locked is None:
            locked = time.time() - os.fstat(found).st_mtime > _LEFT_BEHIND_SECONDS
        if locked and _is(found, name):
            os.unlink(name)
        return locked
    except FileNotFoundError:
        return True
    except OSError:
        return False
    finally:
        os.close(found)


def _locked(descriptor: int) -> bool | None:
    """Lock a file if nobody has; None where there are no locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        return None
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is(descriptor: int, name: str) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, follow_symlinks=False))
    except FileNotFoundError:
        return False
