# SPDX-License-Identifier: Apache-2.0
"""Records in a few words, and as JSON."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.cli.files import print_records, value_text
from distinput.inspect.records import Record


@pytest.mark.parametrize(
    "value, text",
    [
        (b"\xff\x00", "b'\\xff\\x00'"),
        ("ä".encode(), "'ä'"),
        (b"x" * 100, f"'{'x' * 64}'… (100 bytes)"),
        ("ä".encode() * 40 + b"x", f"'{'ä' * 32}'… (81 bytes)"),
        (b"x" + "ä".encode() * 40, f"'x{'ä' * 31}'… (81 bytes)"),
        (np.zeros((2, 2), np.float32), "float32[2,2] 0.0 0.0 0.0 0.0"),
        (np.array([b"a"], object), "bytes[1] 'a'"),
        (np.zeros(0), "float64[0]"),
        (np.int32(3), "3"),
        ({"a": [1, None]}, "{a: [1, null]}"),
        (list(range(10)), "[0, 1, 2, 3, 4, 5, 6, 7, …]"),
        (1.5, "1.5"),
    ],
)
def test_values_are_shown_as_text(value: Any, text: str) -> None:
    assert value_text(value) == text


@given(st.binary())
def test_bytes_are_never_an_error(value: bytes) -> None:
    assert len(value_text(value)) < 400


def test_lines_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    records = [Record("a", 0, {"x": 1, "name": b"b"}), Record("a", 1, b"c")]
    print_records(records, json=False, title="a")
    assert capsys.readouterr().out == "==> a <==\n0:\n  x     1\n  name  'b'\n1: 'c'\n\n"
    print_records(records, json=True)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"file": "a", "record": 0, "value": {"x": 1, "name": "b"}},
        {"file": "a", "record": 1, "value": "c"},
    ]
