# SPDX-License-Identifier: Apache-2.0
"""CRC32C without kernels: with the package google-crc32c if it is installed, else with NumPy and tables.

The kernels in `distinput.kernels.crc32c` are as fast as that package. This module is used until they are compiled, and
if they cannot be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes

__all__ = ["byte_table", "crc32c_library", "crc32c_numpy"]

POLYNOMIAL = 0x82F63B78  # Castagnoli's, lowest bit first
ALL = 0xFFFFFFFF
CHUNK = 512  # bytes; a table for each position fits into the second-level cache
GROUP = 64  # chunks looked up at once
SHORT = 48  # bytes; up to here a loop in Python is as fast


@cache
def crc32c_library() -> Callable[[bytes], int] | None:
    """The function of google-crc32c; None if its compiled code is not installed.

    It is not loaded in free-threaded Python: an extension module that does not declare support for it would enable the
    GIL again for the whole process.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    try:
        library = import_module("google_crc32c")
    except ImportError:
        return None
    if library.implementation != "c":
        return None
    value: Callable[[bytes], int] = library.value
    return value


def byte_table() -> npt.NDArray[np.uint32]:
    """[256] the register after each byte, starting from zero."""
    state = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        state = (state >> np.uint32(1)) ^ (np.uint32(POLYNOMIAL) * (state & np.uint32(1)))
    return state


@cache
def _tables() -> tuple[list[int], list[list[int]], npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """The byte table; the position table as rows and as a flat array; the start of each row in the flat array.

    Row i of the position table holds what a byte at position i of a chunk contributes to the register after the chunk.
    """
    table = byte_table()
    positions = np.empty((CHUNK, 256), np.uint32)
    positions[-1] = table
    for i in range(CHUNK - 2, -1, -1):
        positions[i] = (positions[i + 1] >> 8) ^ table[positions[i + 1] & 255]
    return table.tolist(), positions.tolist(), positions.reshape(-1), np.arange(CHUNK, dtype=np.int32) * 256


def crc32c_numpy(data: Bytes) -> int:
    """The CRC32C of the bytes.

    The register is the XOR of the contributions of all bytes, so they are looked up for all bytes at once.

    >>> hex(crc32c_numpy(np.frombuffer(b"123456789", np.uint8)))
    '0xe3069283'
    """
    table, rows, positions, offsets = _tables()
    register, position = ALL, 0
    while len(data) - position > SHORT:
        width = min(CHUNK, len(data) - position)
        count = min(GROUP, (len(data) - position) // width)
        chunks = data[position : position + count * width].reshape(count, width)
        looked_up = positions.take(chunks + offsets[CHUNK - width :])  # [count, width]
        # The register before a chunk acts as if it were XORed into the first four bytes of the chunk.
        first, second, third, fourth = rows[CHUNK - width : CHUNK - width + 4]
        for contribution in np.bitwise_xor.reduce(looked_up, axis=1).tolist():
            register = (
                first[register & 255]
                ^ second[register >> 8 & 255]
                ^ third[register >> 16 & 255]
                ^ fourth[register >> 24]
                ^ contribution
            )
        position += count * width
    for byte in data[position:].tolist():
        register = (register >> 8) ^ table[(register ^ byte) & 255]
    return register ^ ALL
