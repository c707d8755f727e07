# SPDX-License-Identifier: Apache-2.0
"""Locks between processes: a lock on an open file, which the system releases when its process ends, however it ends."""

import contextlib
import os
import stat
from platform import node
from typing import Self

from distinput.errors import FailedPreconditionError

__all__ = ["FileLock", "has_name", "locked"]


def locked(descriptor: int) -> bool | None:
    """Try to lock a file: True if that succeeded, False if it is locked already, None if locks are unsupported."""
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


def has_name(descriptor: int, name: str) -> bool:
    """True if an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, follow_symlinks=False))
    except FileNotFoundError:
        return False


class FileLock:
    """A lock with a name, which one process at a time holds. What it writes says who that is.

    Args:
      path: of a local file, which is made; its folder must exist.

    >>> first, second = FileLock("lock"), FileLock("lock")
    >>> first.take(), second.take()
    (True, False)
    >>> first.release()
    >>> second.take()
    True
    >>> second.release()
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._held: int | None = None

    def take(self) -> bool | None:
        """Try to lock: True if that succeeded, False if another has it, None if the file system has no locks.

        Raises:
          FailedPreconditionError: what is there is a link, or no file: a lock is written to, and a link may lead anywhere.
        """
        while True:
            descriptor = self._opened()
            got = locked(descriptor)
            if got is True and not has_name(descriptor, self.path):  # the last holder has just removed it
                os.close(descriptor)
                continue
            if not got:
                os.close(descriptor)
                return got
            with contextlib.suppress(OSError):  # a full disk: it is locked, and only who has it is not told
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {node()}".encode())
            self._held = descriptor
            return True

    def _opened(self) -> int:
        """The file, which is made unless it is there; never what a link leads to."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(self.path, flags, 0o666)
        except OSError:
            if os.path.islink(self.path):
                raise self._no_lock() from None
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(descriptor)
            raise self._no_lock()
        return descriptor

    def _no_lock(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.path}: is a link, a pipe or a device, and must be a file of its own, since a lock is written to; remove it"
        )

    def holder(self) -> str:
        """Who has it, as far as is known."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with open(descriptor, encoding="utf-8", errors="replace") as file:
                return file.read(200).strip() or "another process"
        except OSError:
            return "another process"

    def release(self) -> None:
        """Unlock; may be called again."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.release()
