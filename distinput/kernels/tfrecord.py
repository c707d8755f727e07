# SPDX-License-Identifier: Apache-2.0
"""The framing of TFRecord files: each record is a length, its checksum, the payload and its checksum.

All numbers are little-endian: an unsigned length of 8 bytes, and masked CRC32Cs of 4 bytes each.
"""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np

from distinput.kernels.checksums import crc32c_of, crc32c_of_word, masked, masked_reference
from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, kernel
from distinput.kernels.machine import copy_bytes, load_u32, load_u64, signed, store_u32, store_u64, will_load

HEADER = 12  # bytes before a payload
FOOTER = 4  # bytes after it
LONGEST = (1 << 63) - 1 - HEADER - FOOTER  # the longest payload whose record size fits in an int64

_AHEAD = 2048  # bytes are prefetched this far ahead of the checksum
_LINE = 64  # bytes in a cache line

# Why a scan stopped.
OK = 0  # no more room for spans, or the buffer ends where a record ends
INCOMPLETE = 1  # the next record continues after the end of the buffer
BAD_LENGTH = 2  # the length does not match its checksum
BAD_DATA = 3  # the payload does not match its checksum


def scan_reference(
    buffer: Bytes, start: int, starts: IntsOut, lengths: IntsOut, check: bool
) -> tuple[int, int, int, int]:
    """Find the payloads of the records of buffer[start:], until `starts` is full or a record is incomplete.

    Args:
      buffer: a piece of a file.
      start: the offset at which a record begins.
      starts: out; the start of each payload.
      lengths: out; the length of each payload.
      check: true if the checksums of payloads are verified. Those of lengths always are, because a wrong length
        would make the caller wait for bytes that never come.

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
        if check and masked_reference(payload) != crc:
            return count, start, BAD_DATA, 0
        starts[count], lengths[count] = start + HEADER, length
        start += HEADER + length + FOOTER
        count += 1
    return count, start, OK, 0


@kernel(scan_reference)
def scan_records(
    buffer: Bytes, start: int, starts: IntsOut, lengths: IntsOut, check: bool
) -> tuple[int, int, int, int]:
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
        for line in range(start + _AHEAD, stop + _AHEAD, _LINE):
            will_load(buffer, line)
        if check and masked(crc32c_of(buffer, payload, stop)) != load_u32(buffer, stop):
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
