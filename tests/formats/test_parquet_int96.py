# SPDX-License-Identifier: Apache-2.0
"""Points in time of the type INT96, as Spark writes them: none is another one when it is read."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.cli.main import main
from distinput.errors import InvalidArgumentError
from distinput.formats import parquet_file

NEAR = np.array(["2024-01-01T01:02:03.456789", "NaT", "1969-12-31T23:59:59.999999"], "M8[us]")
FAR = np.array(["9999-12-31T23:59:59", "NaT", "0001-01-01"], "M8[us]")
REFUSED = r"t\.parquet: row group 1: column '.' has points in time of the type INT96 that nanoseconds do not hold, such as 9999"
MICROSECONDS = {"t": "datetime64[us]", "x": "int64"}


def write(folder: Path, times: Any, kind: Any = None) -> str:
    path = str(folder / "t.parquet")
    table = pa.table({"t": pa.array(times, kind), "x": np.arange(len(times))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=3, data_page_size=16)
    return path


def both(folder: Path) -> str:
    return write(folder, np.concatenate([NEAR, FAR]))


def test_near_times_are_nanoseconds(tmp_path: Path) -> None:
    rows = di.data.ParquetDataset(write(tmp_path, NEAR))
    assert rows.element_spec["t"].dtype == np.dtype("M8[ns]")
    np.testing.assert_array_equal([row["t"] for row in rows], NEAR.astype("M8[ns]"))
    ends = np.array([-(1 << 63) + 1, (1 << 63) - 1, 1001])
    found = [row["t"].astype(np.int64) for row in di.data.ParquetDataset(write(tmp_path, ends, pa.timestamp("ns")))]
    assert found == ends.tolist()


@pytest.mark.parametrize("small", [1, 1 << 40])
def test_times_that_nanoseconds_do_not_hold_are_refused(tmp_path: Path, monkeypatch: Any, small: int) -> None:
    monkeypatch.setattr("distinput.formats.parquet_pages._SMALL_BYTES", small)  # pages are read where it is small
    rows = di.data.ParquetDataset(both(tmp_path))
    iterator = iter(rows)
    np.testing.assert_array_equal([next(iterator)["t"] for _ in range(3)], NEAR.astype("M8[ns]"))
    with pytest.raises(InvalidArgumentError, match=REFUSED):
        next(iterator)
    assert rows[2]["x"] == 2
    with pytest.raises(InvalidArgumentError, match=REFUSED):
        rows[5]
    with pytest.raises(InvalidArgumentError, match=REFUSED):
        rows.global_shuffle(seed=1).to_list()
    assert [row["x"] for row in rows.select(["x"])] == list(range(6))


def test_a_command_refuses_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["head", both(tmp_path)]) != 0
    assert "INT96" in capsys.readouterr().err


@pytest.mark.parametrize("small", [1, 1 << 40])
def test_a_schema_states_their_unit(tmp_path: Path, monkeypatch: Any, small: int) -> None:
    monkeypatch.setattr("distinput.formats.parquet_pages._SMALL_BYTES", small)
    rows = di.data.ParquetDataset(both(tmp_path), schema=MICROSECONDS)
    want = np.concatenate([NEAR, FAR])
    np.testing.assert_array_equal([row["t"] for row in rows], want)
    np.testing.assert_array_equal([rows[place]["t"] for place in range(6)], want)
    far = di.data.ParquetDataset(write(tmp_path, FAR), schema={**MICROSECONDS, "t": "datetime64[s]"})
    np.testing.assert_array_equal([row["t"] for row in far], FAR.astype("M8[s]"))
    days = di.data.ParquetDataset(write(tmp_path, FAR.astype("M8[D]").astype("M8[us]")), schema={"t": "datetime64[D]"})
    np.testing.assert_array_equal([row["t"] for row in days], FAR.astype("M8[D]"))


def test_a_stated_unit_loses_no_digit(tmp_path: Path) -> None:
    path = write(tmp_path, [1_000, -999], pa.timestamp("ns"))
    with pytest.raises(
        InvalidArgumentError, match=r"'t' has points .* that lose digits as microseconds, such as 1969-12-31"
    ):
        di.data.ParquetDataset(path, schema=MICROSECONDS).to_list()
    with pytest.raises(InvalidArgumentError, match="would lose data"):
        di.data.ParquetDataset(write(tmp_path, NEAR), schema={**MICROSECONDS, "t": "datetime64[ms]"}).to_list()


def test_they_are_found_in_lists_and_structs(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    kinds = {"l": pa.list_(pa.timestamp("us")), "s": pa.struct({"q": pa.timestamp("us")})}
    kinds["m"] = pa.map_(pa.string(), pa.timestamp("us"))
    near, far = NEAR[0].item(), FAR[0].item()
    columns = {
        "l": [[near, None], None, [far]],
        "s": [{"q": near}, None, {"q": far}],
        "m": [[("a", near)], None, [("b", far)]],
        "l.x": [1, 2, 3],
    }
    table = pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)
    for name in kinds:
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            di.data.ParquetDataset(path, columns=[name]).to_list()
    assert di.data.ParquetDataset(path, columns=["l.x"]).to_list() == [{"l.x": 1}, {"l.x": 2}, {"l.x": 3}]
    rows = di.data.ParquetDataset(path, schema=pa.schema(kinds), valid=["s", "l", "m"]).to_list()
    assert (rows[2]["l"]["value"], rows[2]["s"]["value"]["q"], rows[2]["m"]["value"]["value"]) == ([far], far, [far])


def test_a_row_group_is_looked_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    rows = di.data.ParquetDataset(write(tmp_path, NEAR))
    assert len(rows.to_list()) == 3
    monkeypatch.setattr(parquet_file, "_times", None)
    assert len(rows.to_list()) == 3
    assert rows[0]["x"] == 0
