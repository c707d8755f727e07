# SPDX-License-Identifier: Apache-2.0
"""Writing files: whole or not at all."""

import contextlib
import os
import stat
import warnings
from io import FileIO
from typing import Any, Self

from distinput.core.ending import Ending
from distinput.files.compression import Compression, Deflater
from distinput.files.paths import local_path
from distinput.files.source import naming
from distinput.files.unfinished import Unfinished, Upload

__all__ = ["Sink"]

_BUFFERED = 256 * 1024  # bytes gathered before they are written


class Sink(Ending):
    """A file being written from front to back.

    It is written under a hidden name, which no pattern matches, and gets its own name when `close` has succeeded. Until
    then whatever had that name stays. A sink that is forgotten, or of which a write failed, leaves nothing.

    Args:
      path: a local path or a URL.
      compression: "", "GZIP" or "ZLIB".
      level: of the compression, -1 for its default.

    Raises:
      NotFoundError: the folder is not there.
    """

    def __init__(self, path: str, compression: Compression = "", level: int = -1) -> None:
        self.path = path
        self._target: Unfinished | Upload | _Stream | None = None
        self._deflater = Deflater(compression, level) if compression else None
        self._parts: list[bytes | memoryview] = []
        self._gathered = 0
        self._finished = False
        self._failure: BaseException | None = None
        with naming(path, "writing"):
            self._target = _target(path)
        self.begun()

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._target is None or self._finished

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, which must stay as they are until the next `flush`.

        Raises:
          ValueError: the sink is closed.
          OSError: the bytes, or earlier ones, could not be written; the file is given up.
        """
        self._check_failure()
        if self.closed:
            raise ValueError(f"{self.path}: writing to a closed file")
        self._parts.append(data)
        self._gathered += len(data)
        if self._gathered >= _BUFFERED:
            with self._giving_up():
                self._write_out()

    def flush(self) -> None:
        """Hand everything written so far to the system; the file still has its hidden name."""
        self._check_failure()
        if self.closed:
            return
        with self._giving_up():
            self._write_out()
            if self._deflater is not None:
                self._put(self._deflater.flush())
            self._file.flush()

    def finish(self) -> None:
        """Write the end of the file; only its name is missing then. May be called again."""
        self._check_failure()
        if self.closed:
            return
        with self._giving_up():
            self._write_out()
            if self._deflater is not None:
                self._put(self._deflater.finish())
            self._file.flush()
            self._finished = True

    def close(self) -> None:
        """Finish the file and give it its name; may be called again.

        Raises:
          OSError: it could not be written whole; nothing is left of it.
        """
        self.finish()
        if self._target is not None:
            with self._giving_up():
                self._target.publish()
            self._target = None

    def discard(self) -> None:
        """Give the file up; may be called again, and after `close`, when it does nothing."""
        target, self._target = self._target, None
        self._parts.clear()
        if target is not None:
            target.discard()

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
        """It was forgotten, or the program ends: nothing is kept of it."""
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
        """An error inside the `with` gives the file up: who goes on writing would leave one with a gap."""
        try:
            with naming(self.path, "writing"):
                yield
        except BaseException as error:
            self._failure = error
            self.discard()
            raise

    def _check_failure(self) -> None:
        if self._failure is not None:
            number = getattr(self._failure, "errno", None)
            text = f"{self.path}: was given up, and nothing is left of it, since writing failed: {self._failure}"
            raise OSError(text) if number is None else OSError(number, text)

    def _write_out(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        self._gathered = 0
        self._put(data if self._deflater is None else self._deflater.deflate(data))

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while len(view):
            view = view[self._file.write(view) :]


class _Stream:
    """A pipe or a device: it has no other name, and what was written is gone."""

    def __init__(self, path: str) -> None:
        self.file: Any = FileIO(path, "wb")

    def publish(self) -> None:
        self.file.close()

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()


def _target(path: str) -> Unfinished | Upload | _Stream:
    local = local_path(path)
    if local is None:
        return Upload(path)
    local = os.path.realpath(local)
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(local).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{path} is a folder")
        if not stat.S_ISREG(mode):
            return _Stream(local)
    return Unfinished(local)
