# SPDX-License-Identifier: Apache-2.0
"""Writing files: whole or not at all, as far as the file system allows."""

import contextlib
import os
import stat
import uuid
from typing import Any, Self

from distinput.files.compression import Compression, Deflater
from distinput.files.paths import file_system, local_path
from distinput.files.source import naming

__all__ = ["Sink"]

_BUFFERED = 256 * 1024  # bytes gathered before they are written


class Sink:
    """A file being written from front to back.

    A local file is written under another name in the same folder, and gets its own name at the first `flush` or at
    `close`; `discard` before that leaves whatever was there. Elsewhere the file system decides when the file appears.

    Args:
      path: a local path or a URL.
      compression: "", "GZIP" or "ZLIB".
      level: of the compression, -1 for its default.

    Raises:
      NotFoundError: the folder is not there.
    """

    def __init__(self, path: str, compression: Compression = "", level: int = -1) -> None:
        self.path = path
        self._deflater = Deflater(compression, level) if compression else None
        self._parts: list[bytes | memoryview] = []
        self._gathered = 0
        self._temporary: str | None = None
        self._local = local_path(path)
        with naming(path, "writing"):
            self._file: Any = self._open()

    def _open(self) -> Any:
        if self._local is None:
            system, name = file_system(self.path)
            return system.open(name, "wb")
        self._local = os.path.realpath(self._local)
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(self._local).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(f"{self.path} is a folder")
            if not stat.S_ISREG(mode):  # a pipe or a device has no other name
                return open(self._local, "wb", buffering=0)
        folder, name = os.path.split(self._local)
        self._temporary = os.path.join(folder, f".{name[:64]}.{uuid.uuid4().hex[:12]}.tmp")
        return open(self._temporary, "xb", buffering=0)

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._file is None

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, which must stay as they are until the next `flush`.

        Raises:
          ValueError: the sink is closed.
        """
        if self._file is None:
            raise ValueError(f"{self.path}: writing to a closed file")
        self._parts.append(data)
        self._gathered += len(data)
        if self._gathered >= _BUFFERED:
            self._write_out()

    def flush(self) -> None:
        """Everything written so far is in the file, under its own name."""
        if self._file is None:
            return
        self._write_out()
        if self._deflater is not None:
            self._put(self._deflater.flush())
        with naming(self.path, "writing"):
            self._file.flush()
            self._publish()

    def close(self) -> None:
        """Finish the file; may be called again."""
        if self._file is None:
            return
        try:
            self._write_out()
            if self._deflater is not None:
                self._put(self._deflater.finish())
            file, self._file = self._file, None
            with naming(self.path, "writing"):
                file.close()
                self._publish()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Give the file up; may be called again, and after `close`, when it does nothing."""
        file, self._file = self._file, None
        self._parts.clear()
        if file is not None:
            with contextlib.suppress(Exception):
                file.close()
            if self._local is None:
                with contextlib.suppress(Exception):  # a part of a file is worse than none
                    system, name = file_system(self.path)
                    system.rm_file(name)
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _publish(self) -> None:
        if self._temporary is not None:
            assert self._local is not None
            os.replace(self._temporary, self._local)
            self._temporary = None

    def _write_out(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        self._gathered = 0
        self._put(data if self._deflater is None else self._deflater.deflate(data))

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        with naming(self.path, "writing"):
            while len(view):
                view = view[self._file.write(view) :]
