# SPDX-License-Identifier: Apache-2.0
"""What commands print: values as JSON, rows in columns."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.cli.output import as_json, print_json, print_table, shortened


@given(st.binary())
def test_bytes_come_back_from_json(value: bytes) -> None:
    found = json.loads(json.dumps(as_json({"x": value})))["x"]
    assert (base64.b64decode(found["base64"]) if isinstance(found, dict) else found.encode()) == value


def test_arrays_are_lists(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"x": np.arange(4).reshape(2, 2), "y": (np.float32(0.5), None, "é")})
    assert capsys.readouterr().out == '{"x": [[0, 1], [2, 3]], "y": [0.5, null, "é"]}\n'


def test_numbers_stand_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["file", "rows"], [["a.csv", 1234], ["b", 5]])
    assert capsys.readouterr().out == "file    rows\na.csv  1,234\nb          5\n"


def test_a_table_may_have_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["file", "rows"], [])
    assert capsys.readouterr().out == "file  rows\n"


@given(st.text(), st.integers(1, 20))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    found = shortened(text, width)
    assert len(found) <= width
    assert found == text or found[:-1] == text[: width - 1]
