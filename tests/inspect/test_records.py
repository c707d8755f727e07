# SPDX-License-Identifier: Apache-2.0
"""The first records are those of the dataset, in every format; samples depend on the seed alone."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.inspect.files import open_files
from distinput.inspect.records import head, record_kind, sample
from distinput.inspect.verification import same
from tests.depth import cases
from tests.inspect import kept


@settings(max_examples=cases(3, 100))
@given(rows=kept.rows, lines=kept.lines, n=st.integers(0, 50))
def test_head_shows_the_first_records_in_every_format(rows: list[Any], lines: list[bytes], n: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for values, formats in ((rows, kept.TABLES), (lines, kept.LINES)):
            for format in formats:
                if values is lines and format == "csv" and b"" in lines:
                    continue  # an empty line is no record of CSV
                folder = Path(name, f"{format}-{values is lines}")
                kept.write(folder, values, format)
                found = head(str(folder), n)
                assert [record.row for record in found] == list(range(min(n, len(values))))
                for record, value in zip(found, values, strict=False):
                    assert same(record.value, value), format


@settings(max_examples=cases(3, 100))
@given(lines=kept.lines, n=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_samples_are_the_same_in_every_format(lines: list[bytes], n: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = []
        for format in ("text", "parquet"):
            kept.write(Path(name, format), lines, format, shard_rows=7)
            found.append(sample(str(Path(name, format)), n, seed=seed))
    for records in found:
        numbers = [int(Path(record.file).name.split("-")[1].split(".")[0]) * 7 + record.row for record in records]
        assert len(numbers) == min(n, len(lines))
        assert numbers == sorted(set(numbers))
        assert all(same(record.value, lines[number]) for record, number in zip(records, numbers, strict=True))
    assert [(record.row, Path(record.file).stem) for record in found[0]] == [
        (record.row, Path(record.file).stem) for record in found[1]
    ]


def test_each_record_is_as_likely_as_any_other(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(10))
    files = open_files(str(tmp_path / "a.npy"))
    seen = Counter(record.row for seed in range(300) for record in sample(files, 3, seed=seed))
    # 90 times each, with a standard deviation of 8
    assert all(50 < seen[row] < 130 for row in range(10)), seen


def test_nulls_are_none(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": pa.array([1, None]), "t": pa.array([None, "b"]), "v": pa.array([[1, None], None])})
    assert [record.value for record in head(path)] == [
        {"x": 1, "t": None, "v": [1, None]},
        {"x": None, "t": b"b", "v": None},
    ]
    (tmp_path / "a.jsonl").write_text('{"x": 1, "s": {"a": "b"}}\n{"x": null, "s": null}\n')
    assert [record.value for record in head(str(tmp_path / "a.jsonl"))] == [
        {"x": 1, "s": {"a": b"b"}},
        {"x": None, "s": None},
    ]


def test_records_of_bytes_are_looked_into(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_sequence_example({"id": 7}, {"words": [["a"], ["b", "c"]]}))
    assert record_kind(open_files(path), path) == "sequence_example"
    (record,) = head(path)
    assert same(record.value, {"context": {"id": 7}, "feature_lists": {"words": [["a"], ["b", "c"]]}})
    assert isinstance(head(path, records="bytes")[0].value, bytes)
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_example({"x": 1}))
        writer.write(b"\xff\xff")
    assert record_kind(open_files(path), path) == "bytes"
    with pytest.raises(DataLossError, match="record 1 is no example"):
        head(path, records="example")
    with pytest.raises(InvalidArgumentError, match="records must be one of"):
        head(path, records="text")


def test_records_before_damage_are_shown_if_they_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n{"x": 2}\n{"x": "three"}\n')
    with pytest.raises(InvalidArgumentError, match=r"a\.jsonl"):
        head(str(path), 3)
    with di.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for text in (b"one", b"two", b"three"):
            writer.write(text)
    path = tmp_path / "a.tfrecord"
    path.write_bytes(path.read_bytes()[:-1])
    assert [record.value for record in head(str(path), 2)] == [b"one", b"two"]
    with pytest.raises(DataLossError, match=r"a\.tfrecord"):
        head(str(path), 3)


@pytest.mark.parametrize("call", [head, sample])
def test_a_negative_number_is_refused(call: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="n must be at least 0"):
        call("a.txt", -1)


def test_times_that_are_none_of_a_day_are_shown_as_they_are(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    for kind, stored in ((pa.time32("s"), pa.int32()), (pa.time64("us"), pa.int64())):
        di.io.write_arrow(path, {"t": pa.array([100_000 if stored == pa.int32() else -5], stored).view(kind)})
        (found,) = head(path)
        assert found.value["t"].astype(int) == (100_000 if stored == pa.int32() else -5)


def test_text_in_maps_is_bytes_as_elsewhere(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.string()))
    di.io.write_parquet(str(tmp_path / "a.parquet"), {"m": pa.array([[("k", ["v"])], None], kind)})
    assert [record.value["m"] for record in head(str(tmp_path / "a.parquet"))] == [[(b"k", [b"v"])], None]


def test_lists_of_types_of_others_are_shown_where_all_of_them_are_null(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"u" * 16], pa.binary(16)))
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), uuids)
    views = pa.array([["a"]], pa.list_view(pa.string_view()))
    nulls = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pa.nulls(1, pa.list_(pa.struct([("u", pa.uuid())]))))
    for column, value in ((lists, uuids.to_pylist()), (views, [b"a"]), (nulls, [None])):
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, pa.schema([("x", column.type)])) as writer:
            writer.write_table(pa.table({"x": column}))
        assert [record.value["x"] for record in head(path)] == [value]
