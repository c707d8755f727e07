# SPDX-License-Identifier: Apache-2.0
"""CRC-32, the checksum of gzip and of the manifests of written files, several times as fast as zlib's.

Where the machine has carry-less products, eight words of eight bytes are folded at a time: a word that stands 64 bytes before
another one may be replaced by its product with x to the 512, modulo the polynomial, added to the other (V. Gopal et al., "Fast
CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). Each half of a word is multiplied by a
factor of its own, so that a product fits into a word. Other machines process eight bytes at a time with eight tables.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, inlined, kernel
from distinput.kernels.machine import carryless_product, has_crc32, load_u64

POLYNOMIAL = 0xEDB88320  # lowest bit first, which is the highest power
FOLDED = 64  # bytes folded at a time

_ALL, _ZERO = np.uint64(0xFFFFFFFF), np.uint64(0)
_LOW, _8, _16, _24, _32, _40, _48, _56 = (np.uint64(each) for each in (255, 8, 16, 24, 32, 40, 48, 56))


def _byte_tables() -> npt.NDArray[np.uint64]:
    """[8, 256] item (k, b): the register after byte b followed by k zero bytes."""
    tables = np.empty((8, 256), np.uint64)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = (tables[0] >> np.uint64(1)) ^ (np.uint64(POLYNOMIAL) * (tables[0] & np.uint64(1)))
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> _8) ^ tables[0][tables[k - 1] & _LOW]
    return tables


def _power(exponent: int) -> int:
    """X to the `exponent` modulo the polynomial, lowest bit first."""
    state = 1 << 31
    for _ in range(exponent):
        state = state >> 1 ^ (POLYNOMIAL if state & 1 else 0)
    return state


TABLES = _byte_tables()
# The product of two polynomials whose lowest bit comes first is shifted by one.
_FIRST, _SECOND = np.uint64(_power(8 * FOLDED + 31)), np.uint64(_power(8 * FOLDED - 1))


def crc32_reference(data: Bytes, value: int) -> int:
    """The CRC-32 of the bytes, going on from the one of the bytes before them, 0 if there are none."""
    return zlib.crc32(data.data, value)


@inlined
def _after_word(word: np.uint64) -> np.uint64:
    """The register after a word, to which the register before it was added."""
    return (  # type: ignore[no-any-return]
        TABLES[7, word & _LOW]
        ^ TABLES[6, (word >> _8) & _LOW]
        ^ TABLES[5, (word >> _16) & _LOW]
        ^ TABLES[4, (word >> _24) & _LOW]
        ^ TABLES[3, (word >> _32) & _LOW]
        ^ TABLES[2, (word >> _40) & _LOW]
        ^ TABLES[1, (word >> _48) & _LOW]
        ^ TABLES[0, word >> _56]
    )


@inlined
def _folded(word: np.uint64, later: np.uint64) -> np.uint64:
    """What stands for a word and the one that is 64 bytes behind it, in the place of the latter."""
    return carryless_product(word & _ALL, _FIRST) ^ carryless_product(word >> _32, _SECOND) ^ later


@kernel(crc32_reference)
def crc32(data: Bytes, value: int) -> int:
    """See `crc32_reference`."""
    state, position = np.uint64(value) ^ _ALL, 0
    if has_crc32() and data.size >= 2 * FOLDED:
        a, b, c, d = load_u64(data, 0) ^ state, load_u64(data, 8), load_u64(data, 16), load_u64(data, 24)
        e, f, g, h = load_u64(data, 32), load_u64(data, 40), load_u64(data, 48), load_u64(data, 56)
        position = FOLDED
        while position + FOLDED <= data.size:
            a, b = _folded(a, load_u64(data, position)), _folded(b, load_u64(data, position + 8))
            c, d = _folded(c, load_u64(data, position + 16)), _folded(d, load_u64(data, position + 24))
            e, f = _folded(e, load_u64(data, position + 32)), _folded(f, load_u64(data, position + 40))
            g, h = _folded(g, load_u64(data, position + 48)), _folded(h, load_u64(data, position + 56))
            position += FOLDED
        state = _ZERO
        for word in (a, b, c, d, e, f, g, h):
            state = _after_word(word ^ state)
    while position + 8 <= data.size:
        state = _after_word(load_u64(data, position) ^ state)
        position += 8
    while position < data.size:
        state = (state >> _8) ^ TABLES[0, (state ^ np.uint64(data[position])) & _LOW]
        position += 1
    return int(state ^ _ALL)
