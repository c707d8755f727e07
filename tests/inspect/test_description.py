# SPDX-License-Identifier: Apache-2.0
"""What files are, and what a record of them looks like, in every format."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.inspect.description import ColumnDescription, describe
from tests.inspect import kept

ROWS = [{"n": number, "x": number / 2, "t": b"abc"} for number in range(6)]


@pytest.mark.parametrize("format", kept.TABLES)
def test_columns_of_every_format(tmp_path: Path, format: str) -> None:
    paths = kept.write(tmp_path / "a", ROWS, format, shards=2)
    found = describe(str(tmp_path / "a"))
    assert (found.format, found.files, found.compression) == (format, tuple(paths), "")
    assert found.bytes == sum(Path(path).stat().st_size for path in paths)
    assert found.records == (6 if format in ("arrow", "parquet") else None)
    assert found.record == ("example" if format == "tfrecord" else "row")
    assert [column.name for column in found.columns] == (["n", "t", "x"] if format == "tfrecord" else ["n", "x", "t"])
    by_name = {column.name: (column.dtype, column.shape) for column in found.columns}
    assert by_name["n"] == ("int64", ())
    assert by_name["t"] == ("string", ())


def test_records_without_columns(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 5), np.int16))
    assert describe(str(tmp_path / "a.npy")).columns == (ColumnDescription("value", "int16", (4, 5)),)
    (tmp_path / "a.txt").write_text("one\n")
    assert describe(str(tmp_path / "a.txt")).columns == (ColumnDescription("value", "string", ()),)


def test_nested_columns(tmp_path: Path) -> None:
    di.data.Dataset.from_tensor_slices({"s": {"b": [1.5], "a": [1]}, "v": [[1, 2]]}).write(
        str(tmp_path / "a"), "parquet"
    )
    assert {(column.name, column.shape) for column in describe(str(tmp_path / "a")).columns} == {
        ("s.b", ()),
        ("s.a", ()),
        ("v", (2,)),
    }


def test_how_many_messages_are_looked_at(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        for number in range(5):
            writer.write(di.io.encode_example({"n": number} | ({"late": 1} if number == 4 else {})))

    def names(**options: Any) -> tuple[int, list[str]]:
        found = describe(path, **options)
        return found.looked_at, [column.name for column in found.columns]

    assert names(scan=3) == (3, ["n"])
    assert names() == names(scan=None) == (5, ["late", "n"])
    assert describe(path, records="bytes").columns == (ColumnDescription("value", "string", ()),)


@pytest.mark.parametrize("told", [b"\x15\x00", b"\x19\x0d"], ids=["a number", "a list of what no kind is known of"])
def test_a_footer_that_says_something_else_of_its_writer(tmp_path: Path, told: bytes) -> None:
    path = tmp_path / "a.parquet"
    di.io.write_parquet(str(path), {"x": [1, 2]})
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    writer = pq.read_metadata(path).created_by.encode()
    before, _, after = footer.partition(b"\x18" + bytes([len(writer)]) + writer)
    changed = before + told + after  # which pyarrow passes over
    path.write_bytes(content[: -8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    found = describe(str(path))
    assert (found.records, found.details["written by"]) == (2, "")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt", "a.tfrecord"])
def test_files_without_a_byte_are_described(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    found = describe(str(tmp_path / name))
    assert (found.bytes, found.looked_at) == (0, 0)
    assert not found.columns or [column.name for column in found.columns] == ["value"]


def test_names_of_columns_may_hold_brackets_and_quotes(tmp_path: Path) -> None:
    names = ["a[0]", "it's", 'say "b"', "s"]
    values = [[1], [2], [3], [{"x[]": 1, "y": 2}]]
    di.io.write_parquet(str(tmp_path / "a.parquet"), dict(zip(names, values, strict=True)))
    found = [column.name for column in describe(str(tmp_path / "a.parquet")).columns]
    assert found == [*names[:3], "s.x[]", "s.y"]
