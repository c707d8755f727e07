# SPDX-License-Identifier: Apache-2.0
"""CRC-32, the checksum of gzip and of manifests, CRC32C, and the frames of TFRecord files, which it guards."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import (
    carryless_product,
    copy_bytes,
    crc32_u64,
    has_crc32,
    load_u32,
    load_u64,
    signed,
    store_u32,
    store_u64,
    will_load,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

# ----------------------------------------------------------------------------
# CRC-32, the checksum of gzip and of the manifests of written files, several times as fast as zlib's.
#
# Where the machine has carry-less products, eight words of eight bytes are folded at a time: a word that stands 64 bytes
# before another one may be replaced by its product with x to the 512, modulo the polynomial, added to the other (V. Gopal
# et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). Each half of a word is
# multiplied by a factor of its own, so that a product fits into a word. Other machines process eight bytes at a time with
# eight tables.
# ----------------------------------------------------------------------------


GZIP_POLYNOMIAL = 0xEDB88320  # lowest bit first, which is the highest power
FOLDED = 64  # bytes folded at a time

_ALL, _ZERO, _ONE = np.uint64(0xFFFFFFFF), np.uint64(0), np.uint64(1)
_LOW, _8, _16, _24, _32, _40, _48, _56 = (np.uint64(each) for each in (255, 8, 16, 24, 32, 40, 48, 56))


def byte_table(polynomial: int) -> npt.NDArray[np.uint64]:
    """[256] the register after each byte, starting from zero; the lowest bit of the polynomial is the highest power."""
    state = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        state = (state >> np.uint64(1)) ^ (np.uint64(polynomial) * (state & np.uint64(1)))
    return state


def _word_tables(polynomial: int) -> npt.NDArray[np.uint64]:
    """[8, 256] item (k, b): the register after byte b followed by k zero bytes."""
    tables = [byte_table(polynomial)]
    for _ in range(7):
        tables.append((tables[-1] >> _8) ^ tables[0][tables[-1] & _LOW])
    return np.stack(tables)


@inlined
def _by_tables(state: np.uint64, data: Bytes, start: int, stop: int, tables: Words) -> np.uint64:
    """The register after data[start:stop], on any machine."""
    while start + 8 <= stop:
        state = _after_word(load_u64(data, start) ^ state, tables)
        start += 8
    while start < stop:
        state = (state >> _8) ^ tables[0, (state ^ np.uint64(data[start])) & _LOW]
        start += 1
    return state


@inlined
def _after_word(word: np.uint64, tables: Words) -> np.uint64:
    """The register after a word, to which the register before it was added."""
    return (  # type: ignore[no-any-return]
        tables[7, word & _LOW]
        ^ tables[6, (word >> _8) & _LOW]
        ^ tables[5, (word >> _16) & _LOW]
        ^ tables[4, (word >> _24) & _LOW]
        ^ tables[3, (word >> _32) & _LOW]
        ^ tables[2, (word >> _40) & _LOW]
        ^ tables[1, (word >> _48) & _LOW]
        ^ tables[0, word >> _56]
    )


def _power(exponent: int) -> int:
    """X to the `exponent` modulo the polynomial, lowest bit first."""
    state = 1 << 31
    for _ in range(exponent):
        state = state >> 1 ^ (GZIP_POLYNOMIAL if state & 1 else 0)
    return state


_GZIP_TABLES = _word_tables(GZIP_POLYNOMIAL)
# The product of two polynomials whose lowest bit comes first is shifted by one.
_FIRST, _SECOND = np.uint64(_power(8 * FOLDED + 31)), np.uint64(_power(8 * FOLDED - 1))


def crc32_reference(data: Bytes, value: int) -> int:
    """The CRC-32 of the bytes, going on from the one of the bytes before them, 0 if there are none."""
    return zlib.crc32(data.data, value)


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
            state = _after_word(word ^ state, _GZIP_TABLES)
    return int(_by_tables(state, data, position, data.size, _GZIP_TABLES) ^ _ALL)


# ----------------------------------------------------------------------------
# CRC32C without kernels: with the package google-crc32c if it is installed, else with NumPy and tables.
#
# The kernels below are as fast as that package. This is used until they are compiled, and if they cannot be compiled.
# ----------------------------------------------------------------------------


CASTAGNOLI = 0x82F63B78  # Castagnoli's, lowest bit first
ALL_BITS = 0xFFFFFFFF
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


@cache
def _tables() -> tuple[list[int], list[list[int]], npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """The byte table; the position table as rows and as a flat array; the start of each row in the flat array.

    Row i of the position table holds what a byte at position i of a chunk contributes to the register after the chunk.
    """
    table = byte_table(CASTAGNOLI).astype(np.uint32)
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
    register, position = ALL_BITS, 0
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
    return register ^ ALL_BITS


# ----------------------------------------------------------------------------
# CRC32C, the checksum of TFRecord files, plain and masked.
#
# If the machine has an instruction for it, three words are processed at a time, because the instruction has a latency of
# three cycles but a throughput of one: the bytes are split into three lanes, and the checksums of the lanes are combined by
# multiplying each by the factor that accounts for the lanes after it (V. Gopal et al., "Fast CRC Computation for iSCSI
# Polynomial Using CRC32 Instruction", Intel 2011). Other machines process eight bytes at a time with eight tables.
# ----------------------------------------------------------------------------


MASK_DELTA = np.uint32(0xA282EAD8)
LONGEST_LANE = 128  # words of eight bytes; three lanes fit in the L1 cache

_15, _17 = np.uint32(15), np.uint32(17)


def _after_zeros() -> npt.NDArray[np.uint64]:
    """Item k: the factor for a checksum such that the checksum of the product is that after k more zero words."""
    # That is x to the power 64 k - 33, since processing a word of 64 bits multiplies by x to the 32, and the product of
    # two bit-reversed polynomials is shifted by one. The first is x to the 31: the lowest bit.
    first, second, third, fourth = (_CASTAGNOLI_TABLES[7 - k].tolist() for k in range(4))
    powers = [0, 1]
    for _ in range(2 * LONGEST_LANE - 1):
        state = powers[-1]
        parts = first[state & 255], second[state >> 8 & 255], third[state >> 16 & 255], fourth[state >> 24]
        powers.append(parts[0] ^ parts[1] ^ parts[2] ^ parts[3])
    return np.array(powers, np.uint64)


_CASTAGNOLI_TABLES = _word_tables(CASTAGNOLI)
AFTER_ZEROS = _after_zeros()


def sum_reference(data: Bytes) -> int:
    """The CRC32C of the bytes."""
    library = crc32c_library()
    return crc32c_numpy(data) if library is None else int(library(data.tobytes()))


def masked_reference(data: Bytes) -> int:
    """The masked CRC32C of the bytes, as stored in TFRecord files; masking keeps checksums of checksums useful."""
    return _masked_number(sum_reference(data))


def masked_crc32c_of_bytes(data: bytes) -> int:
    """See `masked_reference`; for single byte strings, where the package google-crc32c is fast without a kernel."""
    library = crc32c_library()
    if library is None:
        return masked_crc32c(np.frombuffer(data, np.uint8))
    return _masked_number(library(data))


def _masked_number(plain: int) -> int:
    return ((plain >> 15 | plain << 17) + int(MASK_DELTA)) & 0xFFFFFFFF


@inlined
def _in_lanes(state: np.uint64, data: Bytes, start: int, words: int) -> np.uint64:
    """The register after three lanes of `words` words each."""
    second, third = np.uint64(0), np.uint64(0)
    lane = 8 * words
    for at in range(start, start + lane, 8):
        will_load(data, start + 3 * (at - start) + _AHEAD)
        state = crc32_u64(state, load_u64(data, at))
        second = crc32_u64(second, load_u64(data, at + lane))
        third = crc32_u64(third, load_u64(data, at + 2 * lane))
    shifted = carryless_product(state, AFTER_ZEROS[2 * words]) ^ carryless_product(second, AFTER_ZEROS[words])
    return crc32_u64(np.uint64(0), shifted) ^ third


@inlined
def _by_instruction(state: np.uint64, data: Bytes, start: int, stop: int) -> np.uint64:
    """The register after data[start:stop]; requires `has_crc32`."""
    if stop - start < 8:
        return _by_tables(state, data, start, stop, _CASTAGNOLI_TABLES)
    while start + 24 * LONGEST_LANE <= stop:
        state = _in_lanes(state, data, start, LONGEST_LANE)
        start += 24 * LONGEST_LANE
    words = (stop - start) // 24
    if words > 1:
        state = _in_lanes(state, data, start, words)
    elif words > 0:
        for at in range(start, start + 24, 8):
            state = crc32_u64(state, load_u64(data, at))
    start += 24 * words
    # Up to two words and a part of one are left. Both words are taken in, whether the results are used or not: records differ
    # in length, so branches would be predicted wrongly, which takes longer.
    for _ in range(2):
        after = crc32_u64(state, load_u64(data, min(start, stop - 8)))
        state, start = (after, start + 8) if stop - start >= 8 else (state, start)
    # The remaining bytes are the end of the last word; since leading zeros do not change a zero register, they are
    # processed as one word, combined with as many bits of the register as they take up.
    bits = np.uint64(8 * (stop - start))
    rest = (load_u64(data, stop - 8) & ~(~_ZERO >> bits)) ^ (state << _ONE << (np.uint64(63) - bits))
    return crc32_u64(_ZERO, rest) ^ (state >> bits)


@inlined
def crc32c_of(data: Bytes, start: int, stop: int) -> np.uint32:
    """For use in kernels: the CRC32C of data[start:stop]; the caller checks the bounds."""
    if has_crc32():
        return np.uint32(_by_instruction(_ALL, data, start, stop) ^ _ALL)
    return np.uint32(_by_tables(_ALL, data, start, stop, _CASTAGNOLI_TABLES) ^ _ALL)


@inlined
def crc32c_of_word(data: Bytes, start: int) -> np.uint32:
    """For use in kernels: the CRC32C of the eight bytes at `start`; the caller checks the bounds."""
    if has_crc32():
        return np.uint32(crc32_u64(_ALL, load_u64(data, start)) ^ _ALL)
    return np.uint32(_by_tables(_ALL, data, start, start + 8, _CASTAGNOLI_TABLES) ^ _ALL)


@inlined
def masked(plain: np.uint32) -> np.uint32:
    """For use in kernels: a checksum in its masked form."""
    return np.uint32(((plain >> _15) | (plain << _17)) + MASK_DELTA)


@kernel(sum_reference)
def crc32c(data: Bytes) -> int:
    """See `sum_reference`."""
    return int(crc32c_of(data, 0, data.size))


@kernel(sum_reference)
def crc32c_portable(data: Bytes) -> int:
    """See `sum_reference`; the variant of `crc32c` for machines without an instruction for it."""
    return int(_by_tables(_ALL, data, 0, data.size, _CASTAGNOLI_TABLES) ^ _ALL)


@kernel(masked_reference)
def masked_crc32c(data: Bytes) -> int:
    """See `masked_reference`."""
    return int(masked(crc32c_of(data, 0, data.size)))


# ----------------------------------------------------------------------------
# The framing of TFRecord files: each record is a length, its checksum, the payload and its checksum.
#
# All numbers are little-endian: an unsigned length of 8 bytes, and masked CRC32Cs of 4 bytes each.
# ----------------------------------------------------------------------------


HEADER = 12  # bytes before a payload
FOOTER = 4  # bytes after it
LONGEST = (1 << 63) - 1 - HEADER - FOOTER  # the longest payload whose record size fits in an int64

_AHEAD = 2048  # bytes are prefetched this far ahead of the checksum

# Why a scan stopped.
OK = 0  # no more room for spans, or the buffer ends where a record ends
INCOMPLETE = 1  # the next record continues after the end of the buffer
BAD_LENGTH = 2  # the length does not match its checksum
BAD_DATA = 3  # the payload does not match its checksum


def scan_reference(buffer: Bytes, start: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int, int, int]:
    """Find the payloads of the records of buffer[start:], until `starts` is full or a record is incomplete.

    Args:
      buffer: a piece of a file.
      start: the offset at which a record begins.
      starts: out; the start of each payload.
      lengths: out; the length of each payload.

    Returns:
      The number of payloads found; the start of the next record, or of the one at fault; one of `OK`, `INCOMPLETE`,
      `BAD_LENGTH`, `BAD_DATA`; and for `INCOMPLETE` how many bytes from there on are needed to continue (at most
      2**63 - 1, whatever length the record claims), else 0.
    """
    if not 0 <= start <= buffer.size or starts.size != lengths.size:
        raise ValueError("scan_records: start must be in the buffer, starts and lengths must have the same size")
    count = 0
    while count < starts.size and start < buffer.size:
        if start + HEADER > buffer.size:
            return count, start, INCOMPLETE, HEADER
        length, length_crc = struct.unpack("<QI", buffer[start : start + HEADER].tobytes())
        if masked_reference(buffer[start : start + 8]) != length_crc:
            return count, start, BAD_LENGTH, 0
        if length > LONGEST or start + HEADER + length + FOOTER > buffer.size:
            return count, start, INCOMPLETE, min(length, LONGEST) + HEADER + FOOTER
        payload = buffer[start + HEADER : start + HEADER + length]
        (crc,) = struct.unpack("<I", buffer[start + HEADER + length :][:FOOTER].tobytes())
        if masked_reference(payload) != crc:
            return count, start, BAD_DATA, 0
        starts[count], lengths[count] = start + HEADER, length
        start += HEADER + length + FOOTER
        count += 1
    return count, start, OK, 0


@kernel(scan_reference)
def scan_records(buffer: Bytes, start: int, starts: IntsOut, lengths: IntsOut) -> tuple[int, int, int, int]:
    """See `scan_reference`."""
    size = buffer.size
    if start < 0 or start > size or starts.size != lengths.size:
        raise ValueError("scan_records: start must be in the buffer, starts and lengths must have the same size")
    count = 0
    while count < starts.size and start < size:
        left = size - start
        if left < HEADER:
            return count, start, INCOMPLETE, HEADER
        if masked(crc32c_of_word(buffer, start)) != load_u32(buffer, start + 8):
            return count, start, BAD_LENGTH, 0
        told = load_u64(buffer, start)
        if told > np.uint64(LONGEST):
            return count, start, INCOMPLETE, LONGEST + HEADER + FOOTER
        length = signed(told)
        if length > left - HEADER - FOOTER:
            return count, start, INCOMPLETE, length + HEADER + FOOTER
        payload = start + HEADER
        stop = payload + length
        will_load(buffer, start + _AHEAD)
        if masked(crc32c_of(buffer, payload, stop)) != load_u32(buffer, stop):
            return count, start, BAD_DATA, 0
        starts[count] = payload
        lengths[count] = length
        count += 1
        start = stop + FOOTER
    return count, start, OK, 0


def frame_reference(data: Bytes, offsets: Ints, out: BytesOut) -> int:
    """Write the payloads data[offsets[i]:offsets[i + 1]] as consecutive records.

    Args:
      data: the payloads.
      offsets: [n + 1], not decreasing.
      out: room for the payloads plus 16 bytes for each.

    Returns:
      How many bytes were written.
    """
    if offsets.size == 0 or offsets[0] < 0 or np.any(offsets[1:] < offsets[:-1]) or offsets[-1] > data.size:
        raise ValueError("frame_records: offsets must not decrease, and must stay within the data")
    if offsets[-1] - offsets[0] + (HEADER + FOOTER) * (offsets.size - 1) > out.size:
        raise ValueError("frame_records: out must hold the payloads and 16 bytes for each")
    records = []
    for start, stop in pairwise(offsets.tolist()):
        length = np.frombuffer(struct.pack("<Q", stop - start), np.uint8)
        payload = data[start:stop]
        header = struct.pack("<QI", stop - start, masked_reference(length))
        records += [header, payload.tobytes(), struct.pack("<I", masked_reference(payload))]
    written = np.frombuffer(b"".join(records), np.uint8)
    out[: written.size] = written
    return written.size


@kernel(frame_reference)
def frame_records(data: Bytes, offsets: Ints, out: BytesOut) -> int:
    """See `frame_reference`."""
    count = offsets.size - 1
    if count < 0 or offsets[0] < 0 or offsets[count] > data.size:
        raise ValueError("frame_records: offsets must not decrease, and must stay within the data")
    for i in range(count):
        if offsets[i] > offsets[i + 1]:
            raise ValueError("frame_records: offsets must not decrease, and must stay within the data")
    if offsets[count] - offsets[0] + (HEADER + FOOTER) * count > out.size:
        raise ValueError("frame_records: out must hold the payloads and 16 bytes for each")
    at = 0
    for i in range(count):
        length = offsets[i + 1] - offsets[i]
        store_u64(out, at, np.uint64(length))
        store_u32(out, at + 8, masked(crc32c_of_word(out, at)))
        at += HEADER
        copy_bytes(out, at, data, offsets[i], length)
        store_u32(out, at + length, masked(crc32c_of(data, offsets[i], offsets[i] + length)))
        at += length + FOOTER
    return at
