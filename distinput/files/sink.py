# SPDX-License-Identifier: Apache-2.0
"""Atomic writing of files: a file is written completely or not at all."""

import contextlib
import os
import stat
import warnings
from collections.abc import Iterator
from io import FileIO
from typing import Any, Self

import numpy as np

from distinput.core.ending import Ending
from distinput.errors import InvalidArgumentError
from distinput.files.compression import Compression, Deflater, compression_of
from distinput.files.paths import local_path
from distinput.files.source import naming
from distinput.files.unfinished import Unfinished, Upload
from distinput.kernels.crc32 import crc32

__all__ = ["WRITTEN_ALONE", "Sink"]

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
        self._deflater = Deflater(codec, level) if codec else None
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
        self._check_failure()
        if self.closed:
            return
        with self._giving_up():
            self._write_out()
            if self._deflater is not None:
                self._put(self._deflater.flush())
            self._file.flush()

    def finish(self) -> None:
        """Write the end of the file, without renaming it yet. May be called again."""
        self._check_failure()
        if self.closed:
            return
        with self._giving_up():
            self._write_out()
            if self._deflater is not None:
                self._put(self._deflater.finish())
            self._file.flush()
            self._finished = True

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
            self._failure = error
            self.discard()
            raise

    def _check_failure(self) -> None:
        if self._failure is not None:
            number = getattr(self._failure, "errno", None)
            text = f"{self.path}: was given up, and nothing is left of it, since writing failed: {self._failure}"
            raise OSError(text) if number is None else OSError(number, text)

    def _write_out(self) -> None:
        parts, self._parts, self._gathered = self._parts, [], 0
        for data in _joined(parts):
            self._put(data if self._deflater is None else self._deflater.deflate(data))

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self.size += len(view)
        if self.crc32 is not None and len(view):
            self.crc32 = crc32(np.frombuffer(view, np.uint8), self.crc32)
        while len(view):
            view = view[self._file.write(view) :]


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
