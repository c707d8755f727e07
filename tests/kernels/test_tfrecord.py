# SPDX-License-Identifier: Apache-2.0
"""Records in a buffer: whole ones, cut ones and damaged ones."""

from __future__ import annotations

import numpy as np
import pytest

from distinput.kernels import checksums
from distinput.kernels.checksums import masked_crc32c

PAYLOADS = [b"hello", b"", b"x" * 300]
RECORD_AT = [0, 21, 37, 353]  # and where the file ends


def framed(payloads: list[bytes]) -> np.ndarray:
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in payloads]))).astype(np.int64)
    out = np.empty(offsets[-1] + 16 * len(payloads), np.uint8)
    written = checksums.frame_records.compiled()(np.frombuffer(b"".join(payloads), np.uint8), offsets, out)
    assert written == out.size
    return out


def scan(buffer: np.ndarray, start: int = 0, room: int = 9) -> tuple[list[bytes], int, int, int]:
    starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
    results = {
        function(buffer, start, starts, lengths)
        for function in (checksums.scan_records.compiled(), checksums.scan_records.reference)
    }
    ((count, at, status, need),) = results
    found = [buffer[a : a + n].tobytes() for a, n in zip(starts[:count], lengths[:count], strict=True)]
    return found, at, status, need


def test_what_is_framed_is_found() -> None:
    assert framed([b"hello"])[:12].tobytes() == bytes.fromhex("0500000000000000 ea b2 04 3e")
    assert scan(framed(PAYLOADS)) == (PAYLOADS, 353, checksums.OK, 0)
    assert scan(framed(PAYLOADS), room=2) == (PAYLOADS[:2], 37, checksums.OK, 0)
    assert scan(framed(PAYLOADS), start=37) == (PAYLOADS[2:], 353, checksums.OK, 0)


def test_a_cut_record_tells_how_much_it_needs() -> None:
    buffer = framed(PAYLOADS)
    for size in range(buffer.size):
        whole = sum(end <= size for end in RECORD_AT[1:])
        _, at, status, need = scan(buffer[:size])
        assert at == RECORD_AT[whole]
        if size == at:
            assert (status, need) == (checksums.OK, 0)
        else:
            assert status == checksums.INCOMPLETE
            assert need == (12 if size - at < 12 else RECORD_AT[whole + 1] - at)


@pytest.mark.parametrize("length", [2**31, 2**60, 2**63 - 17, 2**63 - 16, 2**63, 2**64 - 1])
def test_an_absurd_length_only_needs_more_bytes(length: int) -> None:
    header = np.frombuffer(length.to_bytes(8, "little"), np.uint8)
    crc = np.frombuffer(masked_crc32c(header).to_bytes(4, "little"), np.uint8)
    buffer = np.concatenate((framed([b"first"]), header, crc, np.zeros(50, np.uint8)))
    assert scan(buffer) == ([b"first"], 21, checksums.INCOMPLETE, min(length + 16, 2**63 - 1))


def test_every_changed_bit_is_found_where_it_is() -> None:
    buffer = framed([b"first", b"second"])
    for bit in range(21 * 8, buffer.size * 8):
        damaged = buffer.copy()
        damaged[bit // 8] ^= 1 << bit % 8
        status = checksums.BAD_LENGTH if bit // 8 < 33 else checksums.BAD_DATA
        assert scan(damaged) == ([b"first"], 21, status, 0)
