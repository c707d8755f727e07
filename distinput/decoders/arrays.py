# SPDX-License-Identifier: Apache-2.0
"""Arrays as NumPy writes them, in memory: `.npy` and `.npz`, without pickle, and their headers."""

import errno
import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.names.lazy import library

lzma, zipfile = library("lzma"), library("zipfile")  # for archives

# ----------------------------------------------------------------------------
# The header of a NumPy array file, and the errors of what reads such files; nothing is unpickled.
# ----------------------------------------------------------------------------


ARRAY_MARK = b"\x93NUMPY"
"""What the file of an array begins with."""

_HEADER_BYTES = 20_000
"""The most bytes of a header: it is a Python literal, and parsing a long one may take all memory."""

_CHUNK = 1 << 20
"""Bytes of a member that are inflated at a time."""

_READERS = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0", (3, 0): "read_array_header_2_0"}
"""Version 3.0 is like 2.0, with names of fields that are not ASCII."""


class MalformedArray(Exception):
    """What should be an array file is none."""


class ObjectsError(MalformedArray):
    """An array of objects, which only pickle reads."""


class MalformedArchive(Exception):
    """What should be an archive is none."""


class NpyHeader(NamedTuple):
    """What a header says.

    Attributes:
      shape: of the array.
      in_columns: whether it is stored in Fortran's order.
      dtype: as it is stored.
      start: the byte at which the values begin.
    """

    shape: tuple[int, ...]
    in_columns: bool
    dtype: np.dtype[Any]
    start: int


def npy_header(data: bytes) -> NpyHeader:
    """The header at the beginning of an array file.

    Raises:
      MalformedArray: it is none, or `data` ends within it.

    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((3, 2), np.float32))
    >>> npy_header(file.getvalue())
    NpyHeader(shape=(3, 2), in_columns=False, dtype=dtype('float32'), start=128)
    """
    from numpy.lib import format as npy

    file = io.BytesIO(data)
    try:
        version = npy.read_magic(file)
    except ValueError as error:
        raise MalformedArray(str(error)) from error
    if version not in _READERS:
        raise MalformedArray(f"its version is {version[0]}.{version[1]}; known are 1.0, 2.0 and 3.0")
    read = getattr(npy, _READERS[version])
    try:
        try:
            shape, in_columns, dtype = read(file)
        except SystemError:  # Python 3.11 counts wrongly where another thread parses a literal in between
            file.seek(npy.MAGIC_LEN)
            shape, in_columns, dtype = read(file)
        np.broadcast_to(np.empty((), dtype), shape)  # rejects impossible shapes without allocating memory
    except Exception as error:  # of NumPy, which parses a Python literal: damage may raise anything
        raise MalformedArray(str(error.args[0] if error.args else error)) from error
    if any(size < 0 for size in shape):
        raise MalformedArray(f"its shape is {shape}")
    return NpyHeader(shape, in_columns, dtype, file.tell())


def npy_array(data: Any) -> np.ndarray[Any, Any]:
    """The array of an array file in memory, a view of it, in native byte order where it has to be copied.

    Args:
      data: the file, as bytes or as an array of them.

    Raises:
      MalformedArray: it is none, or shorter than it says, or another one is behind it.

    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> npy_array(file.getvalue())
    array([0, 1, 2])
    """
    shape, in_columns, dtype, start = npy_header(bytes(data[:_HEADER_BYTES]))
    there, count = len(data) - start, prod(shape)
    if dtype.hasobject:
        raise ObjectsError("it holds objects, which only pickle reads")
    if count * dtype.itemsize > there:
        raise MalformedArray(f"an array {dtype}{list(shape)} does not fit into {there} bytes")
    end = start + count * dtype.itemsize
    if bytes(data[end : end + len(ARRAY_MARK)]) == ARRAY_MARK:
        raise MalformedArray(f"another array begins at byte {end}, behind the first one; give each a file of its own")
    flat = np.frombuffer(data, dtype, count, start) if count and dtype.itemsize else np.empty(count, dtype)
    return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)


def _of_archives() -> tuple[type[Exception], ...]:
    """What `zipfile` and its codecs raise for what they cannot read."""
    bad = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, struct.error)
    return *bad, EOFError, NotImplementedError, RuntimeError, ValueError


@contextmanager
def reading_archive() -> Iterator[None]:
    """Tell damage by one error. Only calls of `zipfile` belong inside: whatever else they raise is no damage.

    Raises:
      MalformedArchive: the archive is damaged.
    """
    try:
        yield
    except _of_archives() as error:
        raise MalformedArchive(str(error)) from error
    except OSError as error:  # without a number, or of a place before the beginning, it is not of the operating system
        if error.errno not in (None, errno.EINVAL):
            raise
        raise MalformedArchive(str(error)) from error


_END_BYTES = 22 + 0xFFFF
"""The record at the end of an archive takes as many at most."""


def archive_in(file: Any) -> Any:
    """The archive in a file object: a `zipfile.ZipFile`.

    Raises:
      MalformedArchive: it is damaged, or stands behind another one, whose members no reader sees.
    """
    with reading_archive():
        archive = zipfile.ZipFile(file)
        first = min([member.header_offset for member in archive.infolist()], default=archive.start_dir)
        file.seek(0)
        before = b""
        if first and file.read(4) == b"PK\3\4":  # another archive, or a member that was deleted, which has no end
            file.seek(max(0, first - _END_BYTES))
            before = file.read(min(first, _END_BYTES))
    if b"PK\5\6" in before:
        raise MalformedArchive(
            f"another archive stands before byte {first}, and its arrays would be lost; bytes of archives cannot be joined"
        )
    return archive


def content_of(archive: Any, name: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The content of a member of an archive, in memory once; `ZipFile.read` has it there twice.

    Raises:
      MalformedArchive: the archive is damaged.
    """
    with reading_archive():
        size = archive.getinfo(name).file_size
        found, done = np.empty(size, np.uint8), 0
        with archive.open(name) as file:
            while done < size and (part := file.read(min(_CHUNK, size - done))):
                found[done : done + len(part)] = np.frombuffer(part, np.uint8)
                done += len(part)
            file.read(1)  # the checksum is looked at where the member ends
        if done < size:
            raise EOFError(f"{name!r} should have {size} bytes, and has {done}")
        return found


# ----------------------------------------------------------------------------
# Arrays as NumPy writes them, in memory: `.npy` and `.npz`, without pickle.
# ----------------------------------------------------------------------------


MOST_BYTES = 1 << 30
"""The most bytes that the arrays of an archive may take."""


def decode_npy(contents: Any) -> Any:
    """An array as `numpy.save` writes it, in native byte order.

    Raises:
      InvalidArgumentError: it holds objects or text, which need pickle or have no dtype here.
      DataLossError: it is damaged.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> decode_npy(file.getvalue())
    array([0, 1, 2])
    """
    if bytes(contents[:4]) == b"PK\3\4":
        raise DataLossError("it is not a .npy file, but an archive of several; decode it as 'npz'")
    try:
        array = npy_array(contents)
    except ObjectsError:
        raise InvalidArgumentError(
            "it holds objects, which only pickle reads, and that can run any code; save numbers, or decode it as 'bytes'"
        ) from None
    except MalformedArray as error:
        raise DataLossError(f"it is not a .npy file, or damaged: {error}") from error
    if array.dtype.kind not in "biufcmM":
        raise InvalidArgumentError(
            f"it holds values of dtype {array.dtype}, which no element has; decode it as 'bytes'"
        )
    return array.astype(array.dtype.newbyteorder("="), order="C")


def decode_npz(contents: bytes) -> dict[str, Any]:
    """The arrays of an archive as `numpy.savez` and `savez_compressed` write it, by name.

    Raises:
      InvalidArgumentError: an array holds objects or text, or all of them take more than 1 GiB.
      DataLossError: it is damaged.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, x=np.arange(2), y=np.float32(3))
    >>> decode_npz(file.getvalue())
    {'x': array([0, 1]), 'y': array(3., dtype=float32)}
    """
    arrays: dict[str, Any] = {}
    try:
        with archive_in(io.BytesIO(contents)) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)  # reading stops where a member is longer than it says
            if size > MOST_BYTES:
                raise InvalidArgumentError(
                    f"its arrays take {size} bytes, more than {MOST_BYTES}; decode it as 'bytes'"
                )
            for member in members:
                if not member.filename.endswith(".npy"):
                    raise InvalidArgumentError(f"it holds {member.filename!r}, which is no array; decode it as 'bytes'")
                name = member.filename.removesuffix(".npy")
                if name in arrays:
                    raise DataLossError(f"it holds two arrays {name!r}")
                arrays[name] = decode_npy(content_of(archive, member.filename))
    except MalformedArchive as error:
        raise DataLossError(f"it is not a .npz file, or damaged: {error}") from error
    return arrays
