# SPDX-License-Identifier: Apache-2.0
r"""CSV whose lines end with "\r" alone, some or all of them, as Python's csv and pandas read them."""

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError
from distinput.formats.csv import Csv
from distinput.testing import check_format

ENDS = st.sampled_from(["\n", "\r", "\r\n", "\r\r", "\n\r", "\n\n"])
TEXTS = st.sampled_from(["a", "", '"a\rb"', '"a\nb"', '"a""b"', '"a\r\nb"', '"c,d"'])
ROWS = st.lists(st.tuples(st.integers(0, 99), TEXTS, ENDS), max_size=30)


def written(first: str, rows: list[Any], last: bool) -> str:
    text = f"x,t{first}" + "".join(f"{x},{t}{end}" for x, t, end in rows)
    return text if last else text.rstrip("\r\n")


def by_python(text: str) -> list[tuple[int, bytes]]:
    lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    return [(int(x), t.encode()) for x, t in lines[1:]]


@given(ENDS, ROWS, st.booleans())
@settings(deadline=None, max_examples=150)
def test_rows_are_those_of_pythons_csv(first: str, rows: list[Any], last: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(written(first, rows, last).encode())
        found = di.data.CsvDataset(str(path), schema={"x": "int64", "t": bytes})
        assert [(row["x"], row["t"]) for row in found] == by_python(written(first, rows, last))


@pytest.mark.parametrize("ends", ["\r", "\n", "\r\n", "mixed"])
def test_many_rows_restart_anywhere_and_are_cut_into_parts(ends: str, tmp_path: Path) -> None:
    several = ["\n", "\r\n", "\r", "\r"]
    text = "x,t" + ("\n" if ends == "mixed" else ends)
    text += "".join(f"{i},t{i % 7}{several[i // 3 % 4] if ends == 'mixed' else ends}" for i in range(13))
    (tmp_path / "a.csv").write_bytes(text.encode())
    records = [{"x": i, "t": b"t%d" % (i % 7)} for i in range(13)]
    leave_out = ["dataset"] if ends in ("\n", "\r\n") else []  # tests/testing/test_format.py has that
    check_format(Csv(), [tmp_path / "a.csv"], [records], leave_out=leave_out)
    many = f"x,t{ends if ends != 'mixed' else chr(13)}" + "".join(f"{i},{i}\n{i},{i}\r" for i in range(40_000))
    (tmp_path / "b.csv").write_bytes(many.encode())
    ds = di.data.CsvDataset(str(tmp_path / "b.csv"))
    table = ds.to_arrow()
    assert table["x"].to_pylist() == table["t"].to_pylist() == [i for i in range(40_000) for _ in "nr"]
    if ends == "\r":
        assert pd.read_csv(tmp_path / "b.csv")["x"].tolist() == table["x"].to_pylist()


def test_an_index_counts_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x,t\r1,a\r2,b\n3,c\r\n4,d")
    ds = di.data.CsvDataset(str(tmp_path / "a.csv"), index=True)
    assert [row["x"] for row in ds] == [1, 2, 3, 4]
    assert len(ds) == 4
    assert [ds[i]["t"] for i in (3, 0, 2, 1)] == [b"d", b"a", b"c", b"b"]


def test_where_newlines_are_records_they_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x,t\n1,a\r2,b\n")
    with pytest.raises(
        DataLossError, match=r'line 2: there is a "\\r" without "\\n", which ends a line only where values'
    ):
        di.data.CsvDataset(str(tmp_path / "a.csv"), newlines_in_values=False).to_list()
