# SPDX-License-Identifier: Apache-2.0
"""Plain records of CSV in memory: columns of each kind, and 32 bits."""

from typing import Any

import numpy as np
import pytest

from distinput.kernels.plain_csv import AS_WRITTEN, FLOAT32, FLOAT64, INT32, INT64, NOT_PLAIN, OK, TEXT, plain_csv


def one(kind: int, text: str, dtype: Any) -> Any:
    out = np.zeros(8, np.uint8)
    status, _ = plain_csv.compiled()(np.frombuffer(f"{text}\n".encode(), np.uint8), 1, 44, 34, np.array([kind, 0]), out)
    return out.view(dtype)[0] if status == OK else None


@pytest.mark.parametrize("text", ["0.1", "-1e-30", "3.4e37", "16777220", "0", "-0.0", "1.00000017881393432617"])
def test_floats_of_32_bits_are_rounded_once(text: str) -> None:
    found = one(FLOAT32, text, np.float32)
    assert found is None if len(text) > 20 else found.tobytes() == np.float32(text).tobytes()


@pytest.mark.parametrize("text", ["16777217", "1e39", "1e-45"])
def test_halfway_floats_of_32_bits_are_left_to_others(text: str) -> None:
    assert one(FLOAT32, text, np.float32) is None


@pytest.mark.parametrize(
    "kind, text, wanted",
    [
        (INT32, "2147483647", 2147483647),
        (INT32, "-2147483648", -2147483648),
        (INT32, "2147483648", None),
        (INT64, "-999999999999999999", -(10**18) + 1),
        (INT64, "1000000000000000000", None),
        (INT64, "007", 7),
        (INT64, "-", None),
        (INT64, "12345678x", None),
    ],
)
def test_whole_numbers(kind: int, text: str, wanted: int | None) -> None:
    assert one(kind, text, np.int32 if kind == INT32 else np.int64) == wanted


@pytest.mark.parametrize(
    "kind, text, wanted",
    [
        (INT64, "007", None),
        (INT64, "-00", None),
        (INT64, "-0", 0),
        (INT64, "123456789012345678", 123456789012345678),
        (FLOAT64, "00.5", None),
        (FLOAT64, "0.5", 0.5),
        (FLOAT64, "-123456789012345", -123456789012345.0),
        (FLOAT64, "9007199254740993", None),
        (FLOAT64, "9007199254740993.5", 9007199254740993.5),
    ],
)
def test_what_an_inferred_type_might_change_is_left_to_others(kind: int, text: str, wanted: float | None) -> None:
    assert one(kind + AS_WRITTEN, text, np.int64 if kind == INT64 else np.float64) == wanted


def test_many_records_of_long_text() -> None:
    words = [b"x" * (i % 150) for i in range(300)]
    data = np.frombuffer(b"".join(b'%d,"%s"\r\n' % (i, word) for i, word in enumerate(words)), np.uint8)
    n = len(words)
    out = np.zeros(8 * n + 16 * n, np.uint8)
    assert plain_csv.compiled()(data, n, 44, 34, np.array([INT64, 0, TEXT, 8 * n]), out) == (OK, 0)
    assert out[: 8 * n].view(np.int64).tolist() == list(range(n))
    starts, sizes = out[8 * n :].view(np.int64).reshape(2, n)
    assert [data[a : a + size].tobytes() for a, size in zip(starts, sizes, strict=True)] == words
    assert plain_csv.compiled()(data, n - 1, 44, 34, np.array([INT64, 0, TEXT, 8 * n]), out) == (NOT_PLAIN, 0)


def test_no_memory_is_asked_for_more_values_than_there_are_bytes() -> None:
    assert plain_csv.compiled()(
        np.frombuffer(b"1\n", np.uint8), 2**40, 44, 34, np.array([0, 0]), np.zeros(0, np.uint8)
    ) == (
        NOT_PLAIN,
        0,
    )
