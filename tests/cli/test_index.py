# SPDX-License-Identifier: Apache-2.0
"""`distinput index` writes the indices that datasets read."""

from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.cli import main
from tests.cli.commands_of_files import shown, told


def test_indices_are_there_afterwards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.txt")
    Path(path).write_text("one\ntwo\n")
    np.save(tmp_path / "b.npy", np.arange(3))
    folder = str(tmp_path / "indices")
    text = shown(capsys, "index", path, str(tmp_path / "b.npy"), "--folder", folder)
    assert (
        text
        == f"2 records in 1 file have an index\n{tmp_path}/b.npy: needs no index; its format says where records are\n"
    )
    assert len(list(Path(folder).iterdir())) == 1
    assert di.data.TextLineDataset(path, index=folder)[1] == b"two"
    assert told(capsys, "index", path) == {"records": 2, "files": [path], "without": []}


def test_formats_without_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.bin").write_bytes(b"aabb")
    words = [
        "index",
        str(tmp_path / "a.bin"),
        "--format",
        "csv_tuples",
        "--option",
        'types=["int64"]',
        "--option",
        "defaults=[0]",
    ]
    assert main(words) == 1
    assert "files of format csv_tuples have no index" in capsys.readouterr().err
