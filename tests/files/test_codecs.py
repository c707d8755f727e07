# SPDX-License-Identifier: Apache-2.0
"""Codecs by themselves; what holds for all of them is in test_compression."""

from distinput.files.compression import ArrowEncoder, ZlibDecoder, ZlibEncoder


def test_bytes_that_wait_are_those_that_were_read_and_not_used() -> None:
    encoder = ZlibEncoder(31, -1)
    data = encoder.encode(b"a" * 1000) + encoder.finish()
    read = iter([data, b""])
    decoder = ZlibDecoder(31, lambda size: next(read))
    assert decoder.decode(1) == b"a"
    assert 0 < decoder.waiting < len(data)
    assert decoder.decode(2000) == b"a" * 999
    assert decoder.decode(1) == b""
    assert decoder.waiting == 0


def test_nothing_to_compress_makes_no_frame() -> None:
    assert ArrowEncoder("zstd", -1).encode(b"") == b""
