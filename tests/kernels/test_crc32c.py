# SPDX-License-Identifier: Apache-2.0
"""CRC32C against known answers."""

from __future__ import annotations

import numpy as np
import pytest

from distinput.kernels.checksums import crc32c, crc32c_portable, masked_crc32c

KNOWN = [
    (b"", 0),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),  # this and the next two: RFC 3720, B.4
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
]


@pytest.mark.parametrize("content, expected", KNOWN)
def test_checksums_are_those_of_the_standard(content: bytes, expected: int) -> None:
    data = np.frombuffer(content, np.uint8)
    for function in (crc32c.compiled(), crc32c_portable.compiled(), crc32c.reference):
        assert function(data) == expected


def test_all_lengths_around_the_lanes() -> None:
    data = np.random.default_rng(0).integers(0, 256, 7000, np.uint8)
    for size in [*range(420), *range(760, 780), *range(3065, 3085), 3456, 6143, 6144, 6145, 7000]:
        expected = crc32c.reference(data[:size])
        assert crc32c.compiled()(data[:size]) == expected, size
        assert crc32c_portable.compiled()(data[:size]) == expected, size


def test_the_mask_is_that_of_tfrecord() -> None:
    # The header of a record of 5 bytes, as TensorFlow writes it.
    header = bytes.fromhex("0500000000000000 ea b2 04 3e")
    assert masked_crc32c(np.frombuffer(header[:8], np.uint8)) == int.from_bytes(header[8:], "little")
