# SPDX-License-Identifier: Apache-2.0
"""`distinput stats` prints what is known of each column."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.cli import main
from distinput.cli.file_commands import bars
from tests.cli.commands_of_files import shown, told


def test_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.parquet")
    columns = {
        "n": pa.array([*range(99), None]),
        "t": ["ab"] * 100,
        "d": np.arange(100).astype("M8[D]"),
        "nothing": pa.array([None] * 100, pa.int32()),
    }
    di.io.write_parquet(path, columns)
    found = {column["column"]: column for column in told(capsys, "stats", path)}
    assert found["n"]["missing"] == 1
    assert found["n"]["values"]["mean"] == 49
    assert sum(found["n"]["values"]["histogram"]["counts"]) == 99
    assert found["t"]["lengths"]["max"] == 2
    assert found["nothing"]["missing"] == 100
    assert main(["stats", path, "--column", "n", "--column", "z"]) == 1
    assert "there is no column z; the columns are n, t, d, nothing" in capsys.readouterr().err
    lines = shown(capsys, "stats", path, "--column", "n").splitlines()
    assert lines[1].split()[:8] == ["n", "int64", "100", "1", "values", "0", "49", "98"]
    assert "1970-04-10" in lines[3]
    assert any(line.startswith("[0, 8) ") and line.endswith(" 8") for line in lines)


def test_bars() -> None:
    assert bars([]) == ""
    assert bars([1, 1000, 0, 500]) == "▁█ ▄"
