# SPDX-License-Identifier: Apache-2.0
"""Machine instructions that Python cannot express, implemented in plain Python.

Kernels call them by these names; `compiler` replaces them by machine instructions, which do not check bounds: the
kernel must do that. The versions here do check, so that running the source of a kernel as plain Python reveals accesses
out of bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, inlined

if TYPE_CHECKING:
    import numpy.typing as npt

MASK = (1 << 64) - 1
LANES = 64  # bytes that are copied or compared at once
LONGEST_LOOP = 8192  # bytes; the system copies more of them as quickly, and knows how


@inlined
def signed(word: np.uint64) -> int:
    """The number as a signed one, the type of indices."""
    return np.int64(word)  # type: ignore[return-value]  # to numba this is an int


@inlined
def has_text(data: Bytes, at: int, texts: Bytes, begin: int, end: int) -> bool:
    """True if texts[begin:end] stands in the data at an offset."""
    if at + end - begin > data.size:
        return False
    while begin + 8 <= end:
        if load_u64(data, at) != load_u64(texts, begin):
            return False
        at, begin = at + 8, begin + 8
    while begin < end:
        if load_u8(data, at) != load_u8(texts, begin):
            return False
        at, begin = at + 1, begin + 1
    return True


def load_u8(data: Bytes, offset: int) -> int:
    """The byte at `offset`, which must not be negative; unlike indexing, this does not check the sign for each byte."""
    return int(_within(data, offset, 1)[0])


def load_u32(data: Bytes, offset: int) -> np.uint32:
    """The four bytes at `offset`, lowest first."""
    return np.uint32(int.from_bytes(_within(data, offset, 4).tobytes(), "little"))


def load_u64(data: Bytes, offset: int) -> np.uint64:
    """The eight bytes at `offset`, lowest first."""
    return np.uint64(int.from_bytes(_within(data, offset, 8).tobytes(), "little"))


def store_u32(out: npt.NDArray[np.generic], offset: int, value: np.uint32) -> None:
    """Write four bytes at byte `offset`, lowest first, whatever the dtype of the array."""
    _within(out.view(np.uint8), offset, 4)[:] = np.frombuffer(int(value).to_bytes(4, "little"), np.uint8)


def store_u64(out: npt.NDArray[np.generic], offset: int, value: np.uint64) -> None:
    """Write eight bytes at byte `offset`, lowest first, whatever the dtype of the array."""
    _within(out.view(np.uint8), offset, 8)[:] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


@inlined
def copy_bytes(out: npt.NDArray[np.generic], to: int, data: npt.NDArray[np.generic], start: int, count: int) -> None:
    """Copy `count` bytes; both offsets are in bytes, whatever the dtypes. The ranges must not overlap.

    For rows of this size, a loop is quicker than a call: 1.2 to 1.4 times where they come from memory one after the other.
    """
    if count < LANES or count > LONGEST_LOOP:
        move_bytes(out, to, data, start, count)
        return
    for at in range(0, count - LANES, LANES):
        copy_lanes(out, to + at, data, start + at)
    copy_lanes(out, to + count - LANES, data, start + count - LANES)


def copy_lanes(out: npt.NDArray[np.generic], to: int, data: npt.NDArray[np.generic], start: int) -> None:
    """Copy `LANES` bytes; both offsets are in bytes, whatever the dtypes. The ranges must not overlap."""
    move_bytes(out, to, data, start, LANES)


def move_bytes(out: npt.NDArray[np.generic], to: int, data: npt.NDArray[np.generic], start: int, count: int) -> None:
    """Copy `count` bytes by a function of the system; both offsets are in bytes, whatever the dtypes."""
    _within(out.view(np.uint8), to, count)[:] = _within(data.view(np.uint8), start, count)


def stream_lines(out: BytesOut, to: int, data: Bytes, start: int, count: int) -> None:
    """As `copy_bytes`, but past the caches; whole lines of 64 bytes, and `to` must be where one begins."""
    if count and ((out.ctypes.data + to) % 64 or count % 64):
        raise IndexError(f"bytes {to} to {to + count} are no whole lines")
    copy_bytes(out, to, data, start, count)


def will_load(data: npt.NDArray[np.generic], offset: int) -> None:
    """Prefetch the cache line of the byte at `offset`, which will be read soon; any offset is allowed."""


def fill_bytes(out: BytesOut, start: int, count: int, value: int) -> None:
    """Set `count` bytes to one value."""
    _within(out, start, count)[:] = value


def equal_mask(data: Bytes, offset: int, value: int) -> np.uint64:
    """Bit i is set if byte `offset + i` equals `value`, for 64 bytes."""
    return load_u64(np.packbits(_within(data, offset, 64) == value, bitorder="little"), 0)


def high_mask(data: Bytes, offset: int) -> np.uint64:
    """Bit i is the highest bit of byte `offset + i`, for 64 bytes."""
    return load_u64(np.packbits(_within(data, offset, 64) >= 128, bitorder="little"), 0)


def trailing_zeros(word: np.uint64) -> int:
    """The number of zeros below the lowest set bit; 64 if no bit is set."""
    number = int(word)
    return (number & -number).bit_length() - 1 if number else 64


def leading_zeros(word: np.uint64) -> int:
    """The number of zeros above the highest set bit; 64 if no bit is set."""
    return 64 - int(word).bit_length()


def bit_count(word: np.uint64) -> int:
    """The number of set bits."""
    return int(word).bit_count()


def multiply_high(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper half of the 128-bit product."""
    return np.uint64(int(a) * int(b) >> 64)


def has_bit_extraction() -> bool:
    """True if the machine has a quick instruction for `extract_bits`; constant in a compiled kernel."""
    return False


def extract_bits(word: np.uint64, mask: np.uint64) -> np.uint64:
    """The bits of a word that are set in the mask, side by side; requires `has_bit_extraction`."""
    both = zip(f"{int(word):064b}", f"{int(mask):064b}", strict=True)
    return np.uint64(int("0" + "".join([bit for bit, wanted in both if wanted == "1"]), 2))


def has_crc32() -> bool:
    """True if the machine has instructions for CRC32C and carry-less products; constant in a compiled kernel."""
    return False


def crc32_u64(crc: np.uint64, word: np.uint64) -> np.uint64:
    """The CRC32C register after eight more bytes; requires `has_crc32`."""
    state = int(crc) ^ int(word)
    for _ in range(64):
        state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return np.uint64(state & 0xFFFFFFFF)


def carryless_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The lower half of the product of two polynomials whose coefficients are bits; requires `has_crc32`."""
    left, right, product = int(a), int(b), 0
    while right:
        low = right & -right
        product ^= left * low
        right ^= low
    return np.uint64(product & MASK)


def _within(data: Bytes, start: int, count: int) -> Bytes:
    if start < 0 or count < 0 or start + count > data.size:
        raise IndexError(f"bytes {start} to {start + count} of {data.size}")
    return data[start : start + count]
