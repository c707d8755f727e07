# SPDX-License-Identifier: Apache-2.0
"""Commands look at files that no dataset holds as they are: types that arrays have not, and nulls. They are healthy."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import distinput as di
from distinput.cli import main

COLUMNS: dict[str, Any] = {
    "decimal": pa.array([Decimal("1.50"), None]),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
    "float": pa.array([1.5, None]),
    "integer": pa.array([1, None]),
    "list": pa.array([[1, None], None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(2),
    "rows": pa.array([[{"a": 1}], None]),
    "struct": pa.array([{"a": 1, "b": None}, None], pa.struct({"a": pa.int64(), "b": pa.string()})),
    "text": pa.array(["Ada", None]),
    "time": pa.array([1, None], pa.timestamp("ns", "UTC")),
    "truth": pa.array([True, None]),
}


@pytest.mark.parametrize("name", sorted(COLUMNS))
@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_a_column_is_shown_and_healthy(
    name: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / f"a.{ending}")
    write = di.io.write_arrow if ending == "arrow" else di.io.write_parquet
    write(path, {"id": pa.array([1, 2]), "x": COLUMNS[name]})
    for command in ("info", "schema", "count", "head", "sample", "stats", "verify"):
        for how in ([], ["--json"]):
            assert main([command, path, *how]) == 0, (command, capsys.readouterr())
            out = capsys.readouterr().out
            if how:
                assert [json.loads(line) for line in out.splitlines()]
    with_id = di.data.FileDataset(path, columns=["id"])
    assert [int(row["id"]) for row in with_id] == [1, 2]
