# SPDX-License-Identifier: Apache-2.0
"""The table of what the tests run of each room."""

import json
from pathlib import Path

import pytest

from tests.covered import main, rooms


def file(lines: int, of_lines: int, branches: int, of_branches: int) -> dict[str, dict[str, int]]:
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return {"summary": dict(zip(names, (lines, of_lines, branches, of_branches), strict=True))}


FILES = {
    "distinput/ops/take.py": file(9, 10, 1, 2),
    "distinput/ops/skip/all.py": file(8, 8, 0, 0),
    "distinput/errors.py": file(5, 5, 0, 0),
    "distinput/plan/__init__.py": file(0, 0, 0, 0),
}


def test_lines_and_branches_of_a_room_are_counted_together() -> None:
    assert rooms(FILES) == {"distinput": 100.0, "ops": 90.0, "plan": 100.0}


def test_a_room_with_too_little_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"files": FILES}), encoding="utf-8")
    assert main(str(path)) == 1
    assert "ops               90.0 %, less than 97 %\n" in capsys.readouterr().out
    path.write_text(json.dumps({"files": {"distinput/errors.py": file(5, 5, 0, 0)}}), encoding="utf-8")
    assert main(str(path)) == 0
