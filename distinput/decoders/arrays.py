# SPDX-License-Identifier: Apache-2.0
"""Arrays as NumPy writes them, in memory: `.npy` and `.npz`, without pickle."""

import io
import zipfile
from typing import Any

from distinput.core.npy_header import (
    MalformedArchive,
    MalformedArray,
    ObjectsError,
    content_of,
    npy_array,
    reading_archive,
)
from distinput.errors import DataLossError, InvalidArgumentError

__all__ = ["MOST_BYTES", "decode_npy", "decode_npz"]

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
    try:
        return _of_archive(contents)
    except MalformedArchive as error:
        raise DataLossError(f"it is not a .npz file, or damaged: {error}") from error


def _of_archive(contents: bytes) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    with reading_archive():
        archive = zipfile.ZipFile(io.BytesIO(contents))
    with archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)  # reading stops where a member is longer than it says
        if size > MOST_BYTES:
            raise InvalidArgumentError(f"its arrays take {size} bytes, more than {MOST_BYTES}; decode it as 'bytes'")
        for member in members:
            if not member.filename.endswith(".npy"):
                raise InvalidArgumentError(f"it holds {member.filename!r}, which is no array; decode it as 'bytes'")
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise DataLossError(f"it holds two arrays {name!r}")
            arrays[name] = decode_npy(content_of(archive, member.filename))
    return arrays
