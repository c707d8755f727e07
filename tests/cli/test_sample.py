# SPDX-License-Identifier: Apache-2.0
"""`distinput sample` shows some records, by a seed."""

from pathlib import Path

import pytest

from tests.cli.commands_of_files import shown, told


def test_a_seed_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{number}\n" for number in range(50)))
    words = ("sample", str(tmp_path), "-n", "6")
    found = told(capsys, *words, "--seed", "1")
    assert found == told(capsys, *words, "--seed", "1")
    assert found != told(capsys, *words, "--seed", "2")
    assert len(found) == 6
    assert all(record["value"] == f"{Path(record['file']).stem}{record['record']}" for record in found)
    text = shown(capsys, *words, "--seed", "1")
    assert [line for line in text.splitlines() if line.startswith("==>")] == [
        f"==> {tmp_path}/{name}.txt <==" for name in "ab"
    ]
