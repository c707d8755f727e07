# SPDX-License-Identifier: Apache-2.0
"""A file system in memory that counts what is read from it."""

import io
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class CountingFileSystem(MemoryFileSystem):
    """`counting://`: as `memory://`, with the bytes that were read and the questions for sizes."""

    protocol = "counting"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = True
    read = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.replace("counting://", "memory://"))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file = super()._open(path, mode, **options)
        return _Counted(file.getvalue()) if mode == "rb" else file

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        found = self.store[self._strip_protocol(path)].getvalue()[start:end]
        CountingFileSystem.read += len(found)
        return found


class _Counted(io.RawIOBase):
    """A file whose reads are counted; not a `BytesIO`, of which a reader would take all bytes at once."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self.size = data, 0, len(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, view: Any) -> int:
        found = self._data[self._at : self._at + len(view)]
        view[: len(found)] = found
        self._at += len(found)
        CountingFileSystem.read += len(found)
        return len(found)


fsspec.register_implementation("counting", CountingFileSystem, clobber=True)


def put(name: str, data: bytes) -> str:
    """A file of these bytes; its URL."""
    path = f"counting://{name}"
    with fsspec.open(path, "wb") as file:
        file.write(data)
    return path


def bytes_read() -> int:
    """Bytes read since the last time this was asked."""
    found, CountingFileSystem.read = CountingFileSystem.read, 0
    return found
