# SPDX-License-Identifier: Apache-2.0
"""Snappy's frames; what holds for all codecs is in test_compression."""

import struct

from distinput.files.compression import SnappyEncoder
from distinput.kernels.checksums import crc32c_numpy


def test_a_chunk_has_the_checksum_of_what_was_compressed() -> None:
    import numpy as np

    plain = crc32c_numpy(np.frombuffer(b"a", np.uint8))
    masked = ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert SnappyEncoder().encode(b"a")[10:] == b"\x01\x05\0\0" + struct.pack("<I", masked) + b"a"


def test_large_data_is_cut_into_chunks_of_64_kb() -> None:
    chunks, at, sizes = SnappyEncoder().encode(bytes(100_000)), 10, []
    while at < len(chunks):
        sizes.append(int.from_bytes(chunks[at + 1 : at + 4], "little"))
        at += 4 + sizes[-1]
    assert len(sizes) == 2
