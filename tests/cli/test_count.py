# SPDX-License-Identifier: Apache-2.0
"""`distinput count` counts the records of files of several formats."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands_of_files import shown, told


def test_files_and_their_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.arange(1200))
    (tmp_path / "b.txt").write_text("one\ntwo")
    words = ("count", str(tmp_path / "a.npy"), str(tmp_path / "b.txt"))
    found = told(capsys, *words)
    assert (found["records"], [file["records"] for file in found["files"]]) == (1202, [1200, 2])
    lines = shown(capsys, *words).splitlines()
    assert [line.split()[0] for line in lines] == ["records", "1,200", "2", "1,202"]
