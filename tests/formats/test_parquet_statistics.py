# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distinput.arrow.expression import ColumnBounds
from distinput.files.source import stamp_of
from distinput.formats.parquet import ranges_of


def written(path: Path, groups: int = 2, **columns: Any) -> str:
    table = pa.table(columns)
    pq.write_table(table, path, row_group_size=-(-table.num_rows // groups))
    return str(path)


def test_each_row_group_has_bounds(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.parquet",
        x=pa.array([1, -5, 7, 9], pa.int16()),
        f=pa.array([0.5, np.nan, 2.0, 3.0], pa.float32()),
        s=["b", "a", "c", "d"],
    )
    first, second = ranges_of(path, stamp_of(path))
    assert first == {"x": ColumnBounds(-5, 1), "f": ColumnBounds(0.5, 0.5, nan=True), "s": ColumnBounds(b"a", b"b")}
    assert second == {"x": ColumnBounds(7, 9), "f": ColumnBounds(2.0, 3.0, nan=True), "s": ColumnBounds(b"c", b"d")}


def test_columns_with_nulls_and_other_orders_are_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.parquet",
        groups=1,
        x=[1, None],
        f=[1.0, None],
        u=pa.array([1, 2**63], pa.uint64()),
        l=[[1], [2]],
        t=pa.array([1, 2], pa.timestamp("us")),
        b=[True, False],
    )
    assert ranges_of(path, stamp_of(path)) == [{"f": ColumnBounds(1.0, 1.0, nan=True)}]  # its null is NaN
    assert ranges_of(path, stamp_of(path), frozenset({"f"})) == [{}]


def test_a_file_without_statistics_has_no_bounds(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1, 2]}), path, write_statistics=False)
    assert ranges_of(path, stamp_of(path)) == [{}]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40])
def test_damaged_statistics_tell_nothing(damage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / f"{len(damage)}.parquet", x=[1, 2])
    monkeypatch.setattr("distinput.formats.parquet.footer_bytes", lambda *_: damage)
    assert ranges_of(path, stamp_of(path)) == []
