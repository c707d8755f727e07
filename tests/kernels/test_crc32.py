# SPDX-License-Identifier: Apache-2.0
"""CRC-32 against known answers, and zlib's."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.kernels.checksums import crc32


@pytest.mark.parametrize("content, expected", [(b"", 0), (b"123456789", 0xCBF43926), (bytes(32), 0x190A55AD)])
def test_checksums_are_those_of_the_standard(content: bytes, expected: int) -> None:
    for function in (crc32.compiled(), crc32.reference):
        assert function(np.frombuffer(content, np.uint8), 0) == expected


def test_all_lengths_around_the_words_that_are_folded() -> None:
    content = np.random.default_rng(0).integers(0, 256, 5000, np.uint8)
    for size in [*range(300), *range(4090, 4200), 5000]:
        assert crc32.compiled()(content[:size], 0) == zlib.crc32(content[:size]), size


@given(st.lists(st.integers(0, 700), max_size=4), st.integers(0, 2**32))
def test_a_sum_goes_on_from_that_of_the_bytes_before(sizes: list[int], seed: int) -> None:
    content = np.random.default_rng(seed).integers(0, 256, sum(sizes), np.uint8)
    value, at = 0, 0
    for size in sizes:
        value, at = crc32.compiled()(content[at : at + size], value), at + size
    assert value == zlib.crc32(content)
