# SPDX-License-Identifier: Apache-2.0
"""Quantities are short, and close to what they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from distinput.names.words import bytes_text, number_text, seconds_text

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "min": 60.0, "h": 3600.0}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@given(st.floats(1e-6, 3e5))
def test_seconds_are_read_back(seconds: float) -> None:
    words = seconds_text(seconds).split()
    read = sum(float(n) * SECONDS[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    assert abs(read - seconds) <= (60 if seconds >= 3600 else 0.01 * seconds)


@given(st.integers(0, 1 << 48))
def test_bytes_are_read_back(count: int) -> None:
    number, unit = bytes_text(count).split()
    assert abs(float(number) * BYTES[unit] - count) <= 0.01 * count
    assert len(number) <= 5


@given(st.integers(-(10**12), 10**12))
def test_whole_numbers_stay_whole(n: int) -> None:
    assert int(number_text(n).replace(",", "")) == n
