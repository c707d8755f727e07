# SPDX-License-Identifier: Apache-2.0
"""Single instructions that Python cannot spell: what each does, in plain Python.

Kernels call them by these names; `compiler` puts the machine's own instruction in their place, which checks no bound:
the kernel must have done so. These here do check, so that the source of a kernel, run as plain Python, shows where it
would have gone astray.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, BytesOut, inlined

MASK = (1 << 64) - 1


@inlined
def signed(word: np.uint64) -> int:
    """The number as one that may be negative, which is what indices are."""
    return np.int64(word)  # type: ignore[return-value]  # to numba this is an int


def load_u8(data: Bytes, offset: int) -> int:
    """The byte at `offset`, which must not be negative: indexing looks whether it is, at each byte anew."""
    return int(_within(data, offset, 1)[0])


def load_u32(data: Bytes, offset: int) -> np.uint32:
    """The four bytes at `offset`, lowest first."""
    return np.uint32(int.from_bytes(_within(data, offset, 4).tobytes(), "little"))


def load_u64(data: Bytes, offset: int) -> np.uint64:
    """The eight bytes at `offset`, lowest first."""
    return np.uint64(int.from_bytes(_within(data, offset, 8).tobytes(), "little"))


def store_u32(out: npt.NDArray[np.generic], offset: int, value: np.uint32) -> None:
    """Write four bytes at byte `offset`, lowest first, whatever the array holds."""
    _within(out.view(np.uint8), offset, 4)[:] = np.frombuffer(int(value).to_bytes(4, "little"), np.uint8)


def store_u64(out: npt.NDArray[np.generic], offset: int, value: np.uint64) -> None:
    """Write eight bytes at byte `offset`, lowest first, whatever the array holds."""
    _within(out.view(np.uint8), offset, 8)[:] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


def copy_bytes(out: npt.NDArray[np.generic], to: int, data: npt.NDArray[np.generic], start: int, count: int) -> None:
    """Copy `count` bytes; both offsets are in bytes, whatever the arrays hold. The two may not overlap."""
    _within(out.view(np.uint8), to, count)[:] = _within(data.view(np.uint8), start, count)


def will_load(data: npt.NDArray[np.generic], offset: int) -> None:
    """Say that the byte at `offset` will be read soon, so that it is on its way from memory by then; any offset is allowed."""


def fill_bytes(out: BytesOut, start: int, count: int, value: int) -> None:
    """Set `count` bytes to one value."""
    _within(out, start, count)[:] = value


def equal_mask(data: Bytes, offset: int, value: int) -> np.uint64:
    """Bit i is whether byte `offset + i` is `value`, for 64 bytes."""
    return load_u64(np.packbits(_within(data, offset, 64) == value, bitorder="little"), 0)


def high_mask(data: Bytes, offset: int) -> np.uint64:
    """Bit i is the highest bit of byte `offset + i`, for 64 bytes."""
    return load_u64(np.packbits(_within(data, offset, 64) >= 128, bitorder="little"), 0)


def trailing_zeros(word: np.uint64) -> int:
    """How many zeros are below the lowest bit that is set; 64 where there is none."""
    number = int(word)
    return (number & -number).bit_length() - 1 if number else 64


def bit_count(word: np.uint64) -> int:
    """How many bits are set."""
    return int(word).bit_count()


def multiply_high(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper half of the product, which has 128 bits."""
    return np.uint64(int(a) * int(b) >> 64)


def has_crc32() -> bool:
    """Whether the machine has instructions for CRC32C and carry-less products; known when a kernel is compiled."""
    return False


def crc32_u64(crc: np.uint64, word: np.uint64) -> np.uint64:
    """The CRC32C register after eight more bytes; only where `has_crc32`."""
    state = int(crc) ^ int(word)
    for _ in range(64):
        state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return np.uint64(state & 0xFFFFFFFF)


def carryless_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The lower half of the product of two polynomials whose coefficients are bits; only where `has_crc32`."""
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
