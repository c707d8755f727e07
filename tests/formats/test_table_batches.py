# SPDX-License-Identifier: Apache-2.0
"""Record batches hold what the dataset holds, and nulls beside."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats import format_named
from distinput.formats.table_batches import is_table, table_batches


def values(format: str, path: Path, most_rows: int = 100, **options: Any) -> list[Any]:
    made = format_named(format, **options)
    return [row for batch in table_batches(made, str(path), most_rows) for row in batch.to_pylist()]


ROWS = [{"x": number if number % 3 else None, "y": [number]} for number in range(1000)]


@pytest.mark.parametrize("most_rows", [1, 7, 10_000])
def test_nulls_of_every_table(tmp_path: Path, most_rows: int) -> None:
    columns = {"x": pa.array([row["x"] for row in ROWS]), "y": pa.array([row["y"] for row in ROWS])}
    di.io.write_parquet(str(tmp_path / "a.parquet"), columns, row_group_size=300)
    di.io.write_arrow(str(tmp_path / "a.arrow"), columns, batch_rows=300)
    (tmp_path / "a.jsonl").write_text("".join(f'{{"x": {row["x"] or "null"}, "y": {row["y"]}}}\n' for row in ROWS))
    for format in ("parquet", "arrow", "jsonl"):
        assert values(format, tmp_path / f"a.{format}", most_rows) == ROWS
        assert values(format, tmp_path / f"a.{format}", columns=["y"]) == [{"y": row["y"]} for row in ROWS]
        batches = list(table_batches(format_named(format), str(tmp_path / f"a.{format}"), most_rows))
        assert max(batch.num_rows for batch in batches) <= most_rows


def test_other_formats_are_tables_too(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    assert values("npy", tmp_path / "a.npy") == [{"value": [0, 1]}, {"value": [2, 3]}, {"value": [4, 5]}]
    (tmp_path / "a.txt").write_text("one\n\ntwo")
    assert values("text", tmp_path / "a.txt") == [{"value": b"one"}, {"value": b""}, {"value": b"two"}]
    assert [is_table(format_named(name)) for name in ("csv", "parquet", "text", "npy")] == [True, True, False, False]


def test_rows_before_a_bad_one_come_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,a\n" * 300_000 + "one,b\n")
    batches, seen = table_batches(format_named("csv"), str(tmp_path / "a.csv")), list[int]()
    with pytest.raises(InvalidArgumentError, match=r"a\.csv: line 300002: column 'x'"):
        seen.extend(batch.num_rows for batch in batches)
    assert sum(seen) == 300_000


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n")
    assert values("csv", tmp_path / "a.csv") == []


def test_damage_is_an_error_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    di.io.write_parquet(str(path), {"x": np.arange(1000)})
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataLossError, match=r"a\.parquet: row group 0"):
        values("parquet", path)
    with pytest.raises(InvalidArgumentError, match="has no column 'z'"):
        values("parquet", path, columns=["z"])
