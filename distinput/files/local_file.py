# SPDX-License-Identifier: Apache-2.0
"""A local file whose reads are whole: they end early only at the end of the file.

The operating system reads at most 2,147,479,552 bytes at a time, and file systems over a network or in user space may give
fewer bytes than were asked for, whenever they like.
"""

import io
import os
import stat
from typing import Any

__all__ = ["LocalFile"]


class LocalFile(io.FileIO):
    """A local file, opened for reading.

    Args:
      path: of the file, or a descriptor, which is closed with it.

    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_bytes(b"some bytes")
    >>> with LocalFile("a.txt") as file:
    ...     file.read(4)
    b'some'
    """

    def __init__(self, path: str | int) -> None:
        super().__init__(path, "rb")
        self._whole = stat.S_ISREG(os.fstat(self.fileno()).st_mode)  # a pipe gives what is there

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        found = super().read(size)
        if not found or len(found) == size or not self._whole:
            return found or b""
        parts, left = [found], size - len(found)
        while left and (found := super().read(left)):
            parts.append(found)
            left -= len(found)
        return b"".join(parts)

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        done = super().readinto(view) or 0
        while self._whole and 0 < done < len(view) and (got := super().readinto(view[done:])):
            done += got
        return done
