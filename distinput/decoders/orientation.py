# SPDX-License-Identifier: Apache-2.0
"""How a camera was held, as an image says it (EXIF), and the pixels turned accordingly.

Source: "Exchangeable image file format for digital still cameras: Exif Version 2.3", section 4.6.4 A, tag 274.
"""

import struct
from typing import Any

import numpy as np

__all__ = ["orientation_of_exif", "orientation_of_jpeg", "turned"]

_MARK = b"Exif\0\0"
_TAG, _SHORT = 274, 3
_AS_IT_IS = 1


def orientation_of_jpeg(data: bytes) -> int:
    """The orientation that a JPEG states, from 1 to 8; 1, which is "as it is", if it states none that can be read."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:  # until the pixels begin
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xE1 and data.startswith(_MARK, at + 4):
            return orientation_of_exif(data[at + 4 : end])
        at = end
    return _AS_IT_IS


def orientation_of_exif(data: bytes) -> int:
    """The orientation in a block of EXIF, from 1 to 8; 1 if there is none that can be read."""
    tiff = data.removeprefix(_MARK)
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return _AS_IT_IS
    try:
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, first)
        for number in range(count):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, first + 2 + 12 * number)
            if tag == _TAG:
                return value if kind == _SHORT and 1 <= value <= 8 else _AS_IT_IS
    except struct.error:  # it ends before that
        pass
    return _AS_IT_IS


def turned(pixels: Any, orientation: int) -> Any:
    """Pixels `[height, width, channels]` as they are looked at.

    >>> turned(np.array([[[1], [2]]]), 6)[..., 0].tolist()
    [[1], [2]]
    >>> turned(np.array([[[1], [2]]]), 8)[..., 0].tolist()
    [[2], [1]]
    """
    if orientation >= 5:  # rows become columns
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)
