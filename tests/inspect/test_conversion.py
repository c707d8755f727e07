# SPDX-License-Identifier: Apache-2.0
"""What was converted and converted back is what it was; a conversion that was killed goes on."""

import json
import os
import signal
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.inspect.conversion import convert
from distinput.inspect.files import open_files
from distinput.inspect.records import head
from distinput.inspect.verification import first_difference
from tests.depth import cases
from tests.inspect import kept


@settings(max_examples=cases(4, 200))
@given(
    rows=kept.rows,
    one=st.sampled_from(kept.TABLES),
    other=st.sampled_from(kept.TABLES),
    shard=st.integers(1, 20),
    compression=st.sampled_from([None, "ZSTD"]),
)
def test_rows_come_back(rows: list[Any], one: str, other: str, shard: int, compression: str | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, there, back = (str(Path(name, each)) for each in ("first", "there", "back"))
        if "tfrecord" in (one, other) and {one, other} & {
            "csv",
            "jsonl",
        }:  # what text has is float64, an Example has none
            rows = [{"n": row["n"], "t": row["t"]} for row in rows]
        kept.write(Path(first), rows, one)
        assert convert(first, there, other, shard_rows=shard, compression=compression).rows == len(rows)
        assert convert(there, back, one, shards=2).rows == len(rows)
        for folder in (there, back):
            assert first_difference(open_files(folder), open_files(first)) is None


@settings(max_examples=cases(4, 200))
@given(lines=kept.lines, format=st.sampled_from(["arrow", "elements", "jsonl", "parquet"]))
def test_lines_come_back(lines: list[bytes], format: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, there, back = (str(Path(name, each)) for each in ("first", "there", "back"))
        kept.write(Path(first), lines, "text")
        convert(first, there, format)
        convert(there, back, "text")
        assert Path(open_files(back).paths[0]).read_bytes() == Path(open_files(first).paths[0]).read_bytes()
        convert(there, str(Path(name, "records")), "tfrecord", value=None if format == "elements" else "value")
        assert [record.value for record in head(str(Path(name, "records")), 50, records="bytes")] == lines


def test_columns_are_cast(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,n\n0.1,1\n2.5,300\n")
    with pytest.raises(InvalidArgumentError, match=r"'x' is float64.*--cast"):
        convert(str(tmp_path / "a.csv"), str(tmp_path / "b"), "tfrecord")
    convert(str(tmp_path / "a.csv"), str(tmp_path / "b"), "tfrecord", casts={"x": "float32", "n": "int64"})
    found = [record.value for record in head(str(tmp_path / "b"), 5)]
    assert [float(row["x"][0]) for row in found] == [np.float32(0.1), 2.5]
    for casts, said in [
        ({"n": "int8"}, "column 'n' has 300, which is no int8"),
        ({"x": "int64"}, "column 'x' has 0.1, which is no int64"),
        ({"y": "int64"}, "there is no column 'y'; the columns are n, x"),
        ({"n": "S3"}, "cast to integers or floats"),
        ({"n": "none"}, "cast to integers or floats, got 'none' for 'n'"),
    ]:
        with pytest.raises(InvalidArgumentError, match=said):
            convert(str(tmp_path / "a.csv"), str(tmp_path / "c"), "arrow", casts=casts)


def test_columns_are_cast_beside_others_of_any_kind(tmp_path: Path) -> None:
    table = pa.table({"x": [1.5, None], "i": [300, None], "s": [{"a": 1}, {"a": None}], "l": [[1], [2, 3]]})
    pq.write_table(table, str(tmp_path / "a.parquet"))
    casts = {"x": "float32", "i": "int16", "l": "float32"}
    convert(str(tmp_path / "a.parquet"), str(tmp_path / "b"), "parquet", casts=casts)
    made = pq.read_table(str(tmp_path / "b" / "part-00000.parquet"))
    assert [str(made.schema.field(name).type) for name in "xi"] == ["float", "int16"]
    assert str(made.schema.field("l").type.value_type) == "float"
    assert made.drop_columns(["x"]).to_pylist() == table.drop_columns(["x"]).to_pylist()
    for casts, said in [({"s": "int8"}, "only columns of numbers"), ({"i": "int8"}, "column 'i' has 300")]:
        with pytest.raises(InvalidArgumentError, match=said):
            convert(str(tmp_path / "a.parquet"), str(tmp_path / "c"), "parquet", casts=casts)


@pytest.mark.parametrize("to", ["tfrecord", "text", "npy", "tar"])
def test_nulls_are_refused_where_they_have_no_place(to: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": [300, None]}), str(tmp_path / "a.parquet"))
    for value in (None, "i") if to != "tar" else (None,):
        with pytest.raises(InvalidArgumentError, match=f"{to} cannot write the nulls of .* --null .=value"):
            convert(str(tmp_path / "a.parquet"), str(tmp_path / "b"), to, value=value)


def test_elements_are_compared_and_shown_with_their_nulls(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": [1, None], "l": [[1, None], None], "n": [1, 2]}), str(tmp_path / "a.parquet"))
    convert(str(tmp_path / "a.parquet"), str(tmp_path / "b"), "elements")
    assert [record.value for record in head(str(tmp_path / "b"))] == [
        {"i": 1, "l": [1, None], "n": 1},
        {"i": None, "l": None, "n": 2},
    ]
    assert first_difference(open_files(str(tmp_path / "b")), open_files(str(tmp_path / "a.parquet"))) is None


def test_arrays_come_back(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    np.save(tmp_path / "a.npy", array)
    convert(str(tmp_path / "a.npy"), str(tmp_path / "b"), "parquet")
    written = convert(str(tmp_path / "b"), str(tmp_path / "c"), "npy", shard_rows=3)
    assert np.array_equal(np.concatenate([np.load(path) for path in written.paths]), array)


@pytest.mark.parametrize(
    "to, options, says",
    [
        ("text", {}, r"3 columns; name one with value= \(--value in the command line\): "),
        ("text", {"value": "n"}, "a line of text is one byte string"),
        ("npy", {"value": "t"}, "elements must be arrays of one known shape"),
        ("npy", {"value": "z"}, "there is no column 'z'; the columns are n, t, x"),
        ("tar", {}, "cannot become the file 'n'"),
        ("parquet", {"colour": "red"}, "its options are"),
        ("arrow", {"compression": "GZIP"}, "compression of Arrow files"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path: Path, to: str, options: Any, says: str) -> None:
    kept.write(tmp_path / "a", [{"n": 1, "x": 0.5, "t": b"a"}], "parquet")
    with pytest.raises(InvalidArgumentError, match=says):
        convert(str(tmp_path / "a"), str(tmp_path / "b"), to, **options)


def test_examples_with_absent_features_and_messages_of_other_kinds(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_example({"n": 1}))
        writer.write(di.io.encode_example({"n": [2, 3], "late": "x"}))
    convert(path, str(tmp_path / "b"), "jsonl")
    assert [record.value for record in head(str(tmp_path / "b"))] == [
        {"late": [], "n": [1]},
        {"late": [b"x"], "n": [2, 3]},
    ]
    with pytest.raises(InvalidArgumentError, match="Key: n"):
        convert(path, str(tmp_path / "c"), "jsonl", scan=1)
    convert(path, str(tmp_path / "d"), "tfrecord", records="bytes")
    assert first_difference(open_files(str(tmp_path / "d")), open_files(path)) is None
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_example({"n": 1}))
        writer.write(di.io.encode_example({"n": "x"}))
    with pytest.raises(InvalidArgumentError, match="feature 'n' has values of several kinds"):
        convert(path, str(tmp_path / "e"), "jsonl")
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_sequence_example({}, {"w": [[1]]}))
    with pytest.raises(InvalidArgumentError, match="SequenceExamples, which are not rows"):
        convert(path, str(tmp_path / "e"), "jsonl")


def test_nulls_stay_nulls_or_get_something_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n,b\n")
    with pytest.raises(InvalidArgumentError, match="column 'x' has no value"):
        convert(str(tmp_path / "a.csv"), str(tmp_path / "b"), "parquet", options={"nulls": "error"})
    convert(str(tmp_path / "a.csv"), str(tmp_path / "d"), "parquet")
    assert [record.value["x"] for record in head(str(tmp_path / "d"))] == [1, None]
    convert(str(tmp_path / "a.csv"), str(tmp_path / "c"), "parquet", options={"nulls": {"x": -1}})
    assert [record.value["x"] for record in head(str(tmp_path / "c"))] == [1, -1]


def test_a_dataset_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    for overwrite in (False, True):
        convert(str(tmp_path / "a.txt"), str(tmp_path / "b"), "parquet", overwrite=overwrite)
    with pytest.raises(FailedPreconditionError, match=r"convert: .* holds a complete dataset of 1 elements"):
        convert(str(tmp_path / "a.txt"), str(tmp_path / "b"), "parquet")


@pytest.mark.parametrize("value", [None, "x"])
def test_a_conversion_that_was_killed_goes_on(tmp_path: Path, value: str | None) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "".join(f"{number}\n" for number in range(300)))
    source, folder = str(tmp_path / "a.csv"), str(tmp_path / "out")
    seen: list[int] = []

    def killed(done: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            convert(source, folder, "npy" if value else "jsonl", shard_rows=30, value=value, progress=killed)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    journal = next(Path(folder).glob(".*/journal.json"))
    complete = len(json.loads(journal.read_text())["files"])
    assert complete > 0
    written = convert(source, folder, "npy" if value else "jsonl", shard_rows=30, value=value, progress=seen.append)
    assert written.rows == 300
    assert seen == [] or seen[0] > 30 * complete
    numbers = [record.value if value else record.value["x"] for record in head(folder, 300)]
    assert numbers == list(range(300))


def test_nulls_of_all_files_stay_nulls_between_tables(tmp_path: Path) -> None:
    tables = [
        {"x": [1, 2], "f": [1.0, 2.0]},
        {"x": pa.array([1, None]), "f": pa.array([None, float("nan")])},
    ]
    for number, table in enumerate(tables):
        di.io.write_parquet(str(tmp_path / f"{number}.parquet"), table)
    convert(str(tmp_path / "*.parquet"), str(tmp_path / "out"), "arrow")
    (path,) = (tmp_path / "out").glob("part-*")
    found = pa.ipc.open_file(path).read_all()
    assert (found["x"].to_pylist(), str(found["f"].to_pylist())) == ([1, 2, 1, None], "[1.0, 2.0, None, nan]")
    names = [column.name for column in di.inspect.describe(str(tmp_path / "1.parquet")).columns]
    assert names == ["x.valid", "x.value", "f"]
    convert(str(tmp_path / "1.parquet"), str(tmp_path / "csv"), "csv")
    assert (tmp_path / "csv" / "part-00000.csv").read_text() == '"x","f"\n1,\n,nan\n'
    with pytest.raises(di.errors.InvalidArgumentError, match="tfrecord cannot write the nulls"):
        convert(str(tmp_path / "1.parquet"), str(tmp_path / "tfrecord"), "tfrecord")


def test_nulls_of_all_folders_stay_nulls(tmp_path: Path) -> None:
    for year, values in (("2023", [1, 2]), ("2024", [3, None])):
        (tmp_path / "in" / f"year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"x": pa.array(values, pa.int64())}), tmp_path / "in" / f"year={year}" / "a.parquet")
    convert(str(tmp_path / "in"), str(tmp_path / "out"), "parquet")
    assert [record.value["x"] for record in head(str(tmp_path / "out"))] == [1, 2, 3, None]


@pytest.mark.parametrize("to", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize(
    "kind, value, said",
    [
        (pa.time32("s"), 5, "column 'x' has times of day, which become durations since midnight"),
        (pa.time64("us"), 5, "column 'x' has times of day"),
        (
            pa.timestamp("us", "Europe/Paris"),
            5,
            "column 'x' has times of the zone Europe/Paris, which become those of UTC",
        ),
        (pa.list_(pa.timestamp("s", "UTC")), [5], "column 'x' has times of the zone UTC"),
        (pa.struct({"a": pa.int8(), "b": pa.list_(pa.time32("s"))}), {"a": 1, "b": [5]}, "column 'x' has times of day"),
        (pa.timestamp("us"), 5, None),
        (pa.duration("us"), 5, None),
    ],
    ids=str,
)
def test_times_that_become_others_are_told(to: str, kind: Any, value: Any, said: str | None, tmp_path: Path) -> None:
    if to == "csv" and pa.types.is_nested(kind):
        return
    schemas = {"0": pa.schema({"x": kind}), "1": pa.schema({"x": kind})}
    for name, schema in schemas.items():
        pq.write_table(pa.Table.from_pylist([{"x": value}], schema), tmp_path / f"{name}.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        convert(str(tmp_path / "*.parquet"), str(tmp_path / "out"), to)
    assert [each.category for each in caught] == [di.errors.InputWarning] * (said is not None)
    assert said is None or (said in str(caught[0].message) and str(caught[0].message).count("column") == 2)
    assert all(each.filename == __file__ for each in caught)
