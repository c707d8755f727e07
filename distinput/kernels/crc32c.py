# SPDX-License-Identifier: Apache-2.0
"""CRC32C, the checksum of TFRecord files, plain and masked.

Three words are summed at a time where the machine has an instruction for it, because one takes three cycles but three
can be under way: a chunk is cut in three lanes, and the sums of the lanes are joined by tables that tell what a sum
becomes after a lane of zeros. Elsewhere eight tables take eight bytes at a time.
"""

from __future__ import annotations

import google_crc32c
import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, inlined, kernel
from distinput.kernels.machine import crc32_u64, has_crc32, load_u64

POLYNOMIAL = np.uint32(0x82F63B78)  # Castagnoli's, lowest bit first
MASK_DELTA = np.uint32(0xA282EAD8)
ALL = np.uint32(0xFFFFFFFF)
LONG_LANE, SHORT_LANE = 1024, 128  # bytes; a third of a chunk

_1, _8, _15, _17 = (np.uint32(each) for each in (1, 8, 15, 17))
_LOW = np.uint32(255)
_LOW64 = np.uint64(255)


def _byte_tables() -> npt.NDArray[np.uint32]:
    """Row k: what byte b becomes after itself and k bytes of zeros. [8, 256]."""
    tables = np.empty((8, 256), np.uint32)
    state = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        state = (state >> _1) ^ (POLYNOMIAL * (state & _1))
    tables[0] = state
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> 8) ^ tables[0][tables[k - 1] & 255]
    return tables


def _lane_tables(length: int) -> npt.NDArray[np.uint32]:
    """Row k: what byte b at place k of a sum becomes after `length` bytes of zeros, a power of two. [4, 256]."""
    # A sum after zeros is a sum (exclusive or) over the bits of the sum before, so the 32 bits alone tell all;
    # and what they become after twice the zeros is what they become after what they become.
    bits = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
    bits = (bits >> 8) ^ TABLES[0][bits & 255]
    tables = _tables_of(bits)
    for _ in range(length.bit_length() - 1):
        parts = [tables[k][(bits >> 8 * k) & 255] for k in range(4)]
        bits = parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
        tables = _tables_of(bits)
    return tables


def _tables_of(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """What each byte at each place of a sum becomes, given what each bit becomes. [32] -> [4, 256]."""
    set_ = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")  # [256, 8]
    tables: npt.NDArray[np.uint32] = np.bitwise_xor.reduce(bits.reshape(4, 1, 8) * set_, axis=2, dtype=np.uint32)
    return tables


TABLES = _byte_tables()
LONG_TABLES, SHORT_TABLES = _lane_tables(LONG_LANE), _lane_tables(SHORT_LANE)


def sum_reference(data: Bytes) -> int:
    """The CRC32C of the bytes."""
    return int(google_crc32c.value(data.tobytes()))


def masked_reference(data: Bytes) -> int:
    """The CRC32C of the bytes as TFRecord files keep it, so that a sum over sums is no sum of zeros."""
    plain = sum_reference(data)
    return ((plain >> 15 | plain << 17) + int(MASK_DELTA)) & 0xFFFFFFFF


@inlined
def _by_tables(state: np.uint32, data: Bytes, start: int, stop: int) -> np.uint32:
    """The register after data[start:stop], on any machine."""
    while start + 8 <= stop:
        word = load_u64(data, start) ^ np.uint64(state)
        state = (
            TABLES[7, word & _LOW64]
            ^ TABLES[6, (word >> np.uint64(8)) & _LOW64]
            ^ TABLES[5, (word >> np.uint64(16)) & _LOW64]
            ^ TABLES[4, (word >> np.uint64(24)) & _LOW64]
            ^ TABLES[3, (word >> np.uint64(32)) & _LOW64]
            ^ TABLES[2, (word >> np.uint64(40)) & _LOW64]
            ^ TABLES[1, (word >> np.uint64(48)) & _LOW64]
            ^ TABLES[0, word >> np.uint64(56)]
        )
        start += 8
    while start < stop:
        state = (state >> _8) ^ TABLES[0, (state ^ np.uint32(data[start])) & _LOW]
        start += 1
    return state


@inlined
def _after_lane(tables: npt.NDArray[np.uint32], state: np.uint64) -> np.uint64:
    """The register after a lane of zeros."""
    return np.uint64(
        tables[0, state & _LOW64]
        ^ tables[1, (state >> np.uint64(8)) & _LOW64]
        ^ tables[2, (state >> np.uint64(16)) & _LOW64]
        ^ tables[3, (state >> np.uint64(24)) & _LOW64]
    )


@inlined
def _in_lanes(state: np.uint64, data: Bytes, start: int, lane: int, tables: npt.NDArray[np.uint32]) -> np.uint64:
    """The register after three lanes."""
    second, third = np.uint64(0), np.uint64(0)
    for at in range(start, start + lane, 8):
        state = crc32_u64(state, load_u64(data, at))
        second = crc32_u64(second, load_u64(data, at + lane))
        third = crc32_u64(third, load_u64(data, at + 2 * lane))
    return _after_lane(tables, _after_lane(tables, state) ^ second) ^ third


@inlined
def _by_instruction(state: np.uint32, data: Bytes, start: int, stop: int) -> np.uint32:
    """The register after data[start:stop], where `has_crc32`."""
    wide = np.uint64(state)
    while start + 3 * LONG_LANE <= stop:
        wide = _in_lanes(wide, data, start, LONG_LANE, LONG_TABLES)
        start += 3 * LONG_LANE
    while start + 3 * SHORT_LANE <= stop:
        wide = _in_lanes(wide, data, start, SHORT_LANE, SHORT_TABLES)
        start += 3 * SHORT_LANE
    while start + 8 <= stop:
        wide = crc32_u64(wide, load_u64(data, start))
        start += 8
    return _by_tables(np.uint32(wide), data, start, stop)


@inlined
def crc32c_of(data: Bytes, start: int, stop: int) -> np.uint32:
    """For other kernels: the CRC32C of data[start:stop], whose bounds they have checked."""
    if has_crc32():
        return _by_instruction(ALL, data, start, stop) ^ ALL
    return _by_tables(ALL, data, start, stop) ^ ALL


@inlined
def masked(plain: np.uint32) -> np.uint32:
    """For other kernels: a sum as TFRecord files keep it."""
    return np.uint32(((plain >> _15) | (plain << _17)) + MASK_DELTA)


@kernel(sum_reference)
def crc32c(data: Bytes) -> int:
    """See `sum_reference`."""
    return int(crc32c_of(data, 0, data.size))


@kernel(sum_reference)
def crc32c_portable(data: Bytes) -> int:
    """See `sum_reference`; what `crc32c` does on a machine without an instruction for it."""
    return int(_by_tables(ALL, data, 0, data.size) ^ ALL)


@kernel(masked_reference)
def masked_crc32c(data: Bytes) -> int:
    """See `masked_reference`."""
    return int(masked(crc32c_of(data, 0, data.size)))
