# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, EngineMissing, UnimplementedError
from distinput.formats.array_record import ArrayRecords
from distinput.testing import check_format
from tests.formats.reading import records, records_until_error


def test_without_the_package_the_cure_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "array_record.python.array_record_module", None)
    with pytest.raises(EngineMissing, match=r"pip install 'distinput\[arrayrecord\]'"):
        ArrayRecords().rows(str(tmp_path / "a"))


def write(path: Path, items: list[bytes], options: str = "group_size:2") -> str:
    module = pytest.importorskip("array_record.python.array_record_module")
    writer = module.ArrayRecordWriter(str(path), options)
    for item in items:
        writer.write(item)
    writer.close()
    return str(path)


ITEMS = [b"record %d" % i * (i % 5) for i in range(90)]


def test_all_laws_of_formats() -> None:
    pytest.importorskip("array_record")
    check_format(
        ArrayRecords(),
        lambda folder: [write(folder / "a", ITEMS[:40]), write(folder / "b", ITEMS[40:41]), write(folder / "c", [])],
        [ITEMS[:40], ITEMS[40:41], []],
        leave_out=["damage"],  # files have 64 KiB, mostly of zeros; see below
    )


def test_records_by_position(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", ITEMS[:50], "group_size:1"), write(tmp_path / "b", ITEMS[50:], "group_size:7")]
    made = di.data.ArrayRecordDataset(paths)
    assert len(made) == 90
    assert made.to_list() == ITEMS
    assert made[[3, 70, 3]] == [ITEMS[3], ITEMS[70], ITEMS[3]]
    assert sorted(made.global_shuffle(seed=1)) == sorted(ITEMS)
    assert made.skip(60).take(2).to_list() == ITEMS[60:62]
    turns = di.data.ArrayRecordDataset(paths, num_parallel_reads=2).take(4)
    assert turns.to_list() == [ITEMS[0], ITEMS[50], ITEMS[1], ITEMS[51]]


def test_damage_is_found(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a", ITEMS))
    content = path.read_bytes()
    for damaged in (b"", content[: len(content) // 2], content[:-1], b"x" * len(content)):
        path.write_bytes(damaged)
        with pytest.raises(DataLossError, match=f"{path}: not an ArrayRecord file, damaged, or cut short"):
            records(ArrayRecords(), path)
    found = 0
    for at in range(64, 500, 40):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        seen, error = records_until_error(ArrayRecords(), path)
        assert seen == ITEMS or isinstance(error, DataLossError)
        assert error is None or str(path) in str(error)
        found += error is not None
    assert found


def test_files_must_be_local() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/records/a", b"")
    with pytest.raises(
        UnimplementedError, match=r"memory://records/a: the package array_record reads local files only"
    ):
        records(ArrayRecords(), "memory://records/a")


def test_fetching_nothing(tmp_path: Path) -> None:
    assert ArrayRecords().fetch(write(tmp_path / "a", ITEMS), np.array([], np.int64)).size == 0
