# SPDX-License-Identifier: Apache-2.0
"""Arrays as NumPy writes them, in memory: `.npy` and `.npz`, without pickle."""

import io
import zipfile
from typing import Any

import numpy as np

from distinput.errors import DataLossError, InvalidArgumentError

__all__ = ["MOST_BYTES", "decode_npy", "decode_npz"]

MOST_BYTES = 1 << 30
"""The most bytes that the arrays of an archive may take."""


def decode_npy(contents: bytes) -> Any:
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
    try:
        # `max_header_size`: a header is a Python literal, and parsing a long one may take all memory.
        found = np.load(io.BytesIO(contents), allow_pickle=False, max_header_size=10_000)
    except Exception as error:  # parsing a damaged header may raise anything
        if "allow_pickle" in str(error):
            raise InvalidArgumentError(
                "it holds objects, which only pickle reads, and that can run any code; save numbers, or decode it as 'bytes'"
            ) from None
        raise DataLossError(f"it is not a .npy file, or damaged: {error}") from error
    if not isinstance(found, np.ndarray):
        raise DataLossError("it is not a .npy file, but an archive of several; decode it as 'npz'")
    if found.dtype.kind not in "biufcmM":
        raise InvalidArgumentError(
            f"it holds values of dtype {found.dtype}, which no element has; decode it as 'bytes'"
        )
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


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
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
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
                if name in found:
                    raise DataLossError(f"it holds two arrays {name!r}")
                found[name] = decode_npy(archive.read(member))
    except (InvalidArgumentError, DataLossError):
        raise
    except Exception as error:  # of zipfile and zlib there are many
        raise DataLossError(f"it is not a .npz file, or damaged: {error}") from error
    return found
