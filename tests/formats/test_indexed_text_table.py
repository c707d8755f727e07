# SPDX-License-Identifier: Apache-2.0
"""CSV and JSON Lines with an index."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.formats.csv import Csv
from distinput.formats.indexed_text_table import IndexedCsv, IndexedJsonLines
from distinput.formats.jsonl import JsonLines
from distinput.testing import check_format
from tests.formats.reading import check_positions, plain, records

TEXT = st.text('a,"\n\r ', max_size=5)
ROWS = st.lists(st.tuples(st.integers(-9, 99), TEXT, st.sampled_from(["", "\n", "\r\n\n"])), max_size=40)
SCHEMA = {"n": int, "t": str}


def csv_text(rows: list[Any]) -> str:
    """A header, and a record for each row, some of them behind empty lines."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["n", "t"])
    for number, text, before in rows:
        out.write(before)
        writer.writerow([number, text])
    return out.getvalue()


def json_text(rows: list[Any]) -> str:
    return "".join(f"{before}{json.dumps({'n': number, 't': text})}\n" for number, text, before in rows)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@given(rows=ROWS, closed=st.booleans(), data=st.data())
def test_any_records_are_counted_and_fetched(kind: str, rows: list[Any], closed: bool, data: st.DataObject) -> None:
    text = (csv_text if kind == "csv" else json_text)(rows)
    path = f"memory://indexed/any.{kind}"
    with Sink(path) as sink:
        sink.write((text if closed else text.removesuffix("\n")).encode())
    format: Any = IndexedCsv(SCHEMA) if kind == "csv" else IndexedJsonLines(SCHEMA)
    want = records(Csv(SCHEMA) if kind == "csv" else JsonLines(SCHEMA), path)
    assert want == [{"n": number, "t": text.encode()} for number, text, _ in rows]
    check_positions(format, path, want)
    wanted = data.draw(st.lists(st.integers(0, len(want) - 1), max_size=9)) if want else []
    found = [plain(element) for element in format.fetch(path, np.array(wanted, np.int64)).elements()]
    assert found == [want[row] for row in wanted]
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(want))] * 2)))
    part = [plain(e) for block, _ in format.read_fragment(format.part(path, low, high)) for e in block.elements()]
    assert part == want[low:high]


def test_the_laws_of_formats(tmp_path: Path) -> None:
    def write(folder: Path) -> list[str]:
        for number, count in enumerate((11, 1, 0)):
            rows = [(row, f"{row}\n" * (row % 2), "\n" * (row % 3)) for row in range(count)]
            (folder / f"{number}.csv").write_text(csv_text(rows))
        return sorted(str(path) for path in folder.iterdir() if path.suffix == ".csv")

    assert "fetch" in check_format(IndexedCsv(SCHEMA), write)


def test_a_bad_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('n,t\n1,"a\nb"\n2,c\nthree,d\n4,e\n')
    ds = di.data.FileDataset(str(path), "csv", index=True, schema=SCHEMA)
    assert (len(ds), ds[1], ds[3]["n"]) == (4, {"n": 2, "t": b"c"}, 4)
    with pytest.raises(InvalidArgumentError, match=r"a\.csv: line 5: column 'n': expected int64, got 'three'"):
        ds[2]
    with pytest.raises(InvalidArgumentError, match=r"a\.csv: line 5: column 'n'"):
        ds.global_shuffle(seed=1).to_list()


def test_columns_and_types_do_not_make_another_index(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,t\n1,a\n")
    for options in ({}, {"columns": ["n"]}, {"schema": {"n": str, "t": str}}):
        assert len(di.data.FileDataset(str(path), "csv", index=True, **options)) == 1
        stamp = (tmp_path / ".a.csv.csv.index").stat().st_mtime_ns
        assert stamp == (tmp_path / ".a.csv.csv.index").stat().st_mtime_ns
    assert di.io.write_index(path, "csv", header=False, column_names=["a", "b"]) == 2


def test_datasets_take_an_index(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,t\n1,a\n2,b\n")
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    table = di.data.CsvDataset(str(tmp_path / "a.csv"), index=True)
    assert (len(table), table[1]) == (2, {"n": 2, "t": b"b"})
    assert len(di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), index=str(tmp_path / "indices"))) == 2
    with pytest.raises(InvalidArgumentError, match="CsvDataset: index is for dicts"):
        di.data.CsvDataset(str(tmp_path / "a.csv"), [di.int32, "x"], index=True)


LINES = st.lists(st.tuples(TEXT, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20)


@given(lines=LINES, data=st.data())
def test_records_of_all_line_ends_are_where_the_index_says(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    text = "".join([f'"{value}",1{end}' for value, end in ((value.replace('"', ""), end) for value, end in lines)])
    path, format = "memory://indexed/ends.csv", IndexedCsv({"t": str, "n": int}, header=False)
    with Sink(path) as sink:
        sink.write(text.encode())
    want = records(Csv({"t": str, "n": int}, header=False), path)
    assert [row["t"].decode() for row in want] == [value.replace('"', "") for value, _ in lines]
    wanted = data.draw(st.lists(st.integers(0, len(want) - 1), max_size=9)) if want else []
    found = [plain(element) for element in format.fetch(path, np.array(wanted, np.int64)).elements()]
    assert found == [want[row] for row in wanted]


def test_newlines_in_quotes_do_not_make_up_for_records_that_end_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b't,n\r"a\nb",1\r"c\nd",2\re,3\r')
    table = di.data.CsvDataset(str(path), index=True)
    assert [table[row]["t"] for row in range(3)] == [b"a\nb", b"c\nd", b"e"]
    assert table.skip(1).to_list() == [{"t": b"c\nd", "n": 2}, {"t": b"e", "n": 3}]
