# SPDX-License-Identifier: Apache-2.0
"""Decimal numbers become the floats that Python makes of them."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.kernels.plain_csv import FIVES, FLOAT64, HIGHEST, LOWEST, OK, plain_csv
from tests.depth import cases


def read(text: str) -> Any:
    out = np.zeros(8, np.uint8)
    status, _ = plain_csv.compiled()(
        np.frombuffer(f"{text}\n".encode(), np.uint8), 1, 44, -1, np.array([FLOAT64, 0]), out
    )
    return float(out.view(np.float64)[0]) if status == OK else None


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@settings(max_examples=cases(300, 20_000), deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_every_float_is_read_as_it_was_written(word: int) -> None:
    value = struct.unpack("<d", struct.pack("<Q", word))[0]
    found = read(repr(value))
    if 1e-299 < abs(value) < 1e308 or value == 0:
        assert found is not None
    assert found is None or bits(found) == bits(value)


@settings(max_examples=cases(300, 20_000), deadline=None)
@given(st.integers(0, 10**19 - 1), st.integers(-340, 300))
def test_any_decimal_becomes_the_nearest_float(w: int, q: int) -> None:
    text = f"{w}e{q}"
    found = read(text)
    assert found is None or bits(found) == bits(float(text))


@settings(max_examples=cases(300, 20_000), deadline=None)
@given(st.integers(2**52, 2**53 - 1), st.integers(0, 10), st.sampled_from([-1, 0, 0, 0, 1]))
def test_halfway_between_two_floats_the_even_one_is_nearest(fraction: int, more: int, off: int) -> None:
    text = str(((2 * fraction + 1) << more) + off)
    found = read(text)
    assert found is not None or len(text) > 19
    assert found is None or found == float(text)


@pytest.mark.parametrize(
    "text",
    ["0.000000000000000000000012345", "1234567890123456789", "-0.0", "0e999", "5e-1", "1E+5", "9007199254740993"],
)
def test_odd_but_plain(text: str) -> None:
    assert bits(read(text)) == bits(float(text))


@pytest.mark.parametrize(
    "text",
    ["", "-", ".5", "1.", "1e", "1e-", "1e0000", "+1", "nan", "inf", "1e309", "1e-310", "12345678901234567890", "1 "],
)
def test_left_to_others(text: str) -> None:
    assert read(text) is None


def test_the_table_is_that_of_the_paper() -> None:
    for q in range(LOWEST, HIGHEST + 1):
        high, low = map(int, FIVES[q - LOWEST])
        bits = high << 64 | low
        assert bits >> 127 == 1
        # Within one of five to the q, moved so that its first bit is the first of 128.
        power = 5 ** abs(q)
        scale = 128 - power.bit_length() if q >= 0 else power.bit_length() + 127
        exact = power << scale if scale >= 0 and q >= 0 else power >> -scale if q >= 0 else (1 << scale) // power
        assert 0 <= bits - exact <= (-27 <= q < 0)
