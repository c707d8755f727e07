# SPDX-License-Identifier: Apache-2.0
"""What commands print: values as JSON, rows in columns."""

import base64
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.cli import main
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


def test_rich_draws_tables_in_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "dumb")
    print_table(["file", "rows"], [["[bold]a.csv", 1234], ["b" * 70, 5]])
    lines = capsys.readouterr().out.splitlines()
    assert set(lines[1].strip()) == {"─"}
    assert "[bold]a.csv" in lines[2]
    assert lines[2].rstrip().endswith("1,234")
    assert "".join(lines[3:]).count("b") == 70  # nothing is cut


def test_without_rich_tables_are_text_in_a_terminal_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich", None)
    print_table(["file", "rows"], [["a.csv", 1234]])
    assert capsys.readouterr().out == "file    rows\na.csv  1,234\n"


def test_a_table_may_have_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["file", "rows"], [])
    assert capsys.readouterr().out == "file  rows\n"


@given(st.text(), st.integers(1, 20))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    found = shortened(text, width)
    assert len(found) <= width
    assert found == text or found[:-1] == text[: width - 1]


def test_names_of_strangers_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x\x9b31m\u202ey\x1b[0m"
    path = str(tmp_path / "a\x9b\u2066.jsonl")
    Path(path).write_text(json.dumps({name: 1, "deep": {name: 2}}) + "\n")
    for command in "head", "stats", "info", "schema", "sample", "count", "verify":
        for more in [], ["--json"]:
            main([command, path, *more])
            shown = capsys.readouterr()
            for text in shown.out, shown.err:
                assert all(
                    letter == "\n" or (letter.isprintable() and not "\x80" <= letter < "\xa0") for letter in text
                )
            if more and command != "verify":
                found = json.dumps([json.loads(line) for line in shown.out.splitlines()])
                assert json.dumps(name)[1:-1] in found or command in ("count", "info", "schema")
    assert main(["stats", path, "--column", "\x9b"]) == 1
    assert "\x9b" not in capsys.readouterr().err
