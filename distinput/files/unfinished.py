# SPDX-License-Identifier: Apache-2.0
"""Unfinished files: written under a hidden name beside the final one, which no pattern matches.

The writer of a local file holds a lock on it. The lock is released when the process ends, however it ends, so the next
writer of the same file recognizes files that were left behind and removes them. Remote files, and file systems without
locks, are judged by age.
"""

import contextlib
import hashlib
import os
import time
import uuid
from io import FileIO
from itertools import count
from typing import Any

from distinput.files.lock import has_name, locked
from distinput.files.paths import UNFINISHED, file_system

__all__ = ["Unfinished", "Upload"]

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
        self.file: Any = self._system.open(self._name, "wb")

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
