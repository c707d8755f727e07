# SPDX-License-Identifier: Apache-2.0
"""A manifest says later what the files were when it was written, and a damaged one is refused by its name."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table

from distinput.columns.column import Strings
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files import manifest as module
from distinput.files.manifest import FileTable, load_manifest, save_manifest

KINDS = ["manifest.json", "manifest.parquet"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, size in (("b.bin", 3), ("a.bin", 0), ("é.bin", 70)):
        (tmp_path / name).write_bytes(b"x" * size)
    return tmp_path


def said(table: FileTable) -> tuple[Any, ...]:
    assert table.stamps is not None
    rows = None if table.rows is None else table.rows.tolist()
    return list(table.names.values()), table.sizes.tolist(), rows, list(table.stamps.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [None, lambda path: len(Path(path).read_bytes()) // 2])
def test_what_was_saved_is_loaded(folder: Path, kind: str, count: Any) -> None:
    path = str(folder / kind)
    saved = save_manifest(path, str(folder / "*.bin"), count)
    names, sizes, rows, stamps = said(saved)
    assert names == [str(folder / name).encode() for name in ("a.bin", "b.bin", "é.bin")]
    assert sizes == [0, 3, 70]
    assert rows == (None if count is None else [0, 1, 35])
    assert all(stamps)
    assert said(load_manifest(path)) == (names, sizes, rows, stamps)


def test_nothing_is_written_where_no_file_matches(folder: Path) -> None:
    with pytest.raises(NotFoundError):
        save_manifest(str(folder / "manifest.json"), str(folder / "*.none"))
    assert not (folder / "manifest.json").exists()
    with pytest.raises(NotFoundError, match=r"manifest.json; No such file"):
        load_manifest(str(folder / "manifest.json"))


GOOD = {"distinput_manifest": 1, "name": ["a", "b"], "size": [1, 2], "rows": [-1, -1], "stamp": ["x", "y"]}


def test_a_good_one_written_by_hand_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(GOOD))
    assert said(load_manifest(str(tmp_path / "m.json"))) == ([b"a", b"b"], [1, 2], None, [b"x", b"y"])


@pytest.mark.parametrize(
    "change",
    [
        {"name": ["a"]},
        {"name": ["a", 1]},
        {"name": None},
        {"size": [1]},
        {"size": [1, -2]},
        {"size": [1, 2.5]},
        {"size": [1, "2"]},
        {"size": [[1], [2]]},
        {"size": [1, 1 << 70]},
        {"rows": [1, True, 2]},
        {"rows": [1.0, 2.0]},
        {"stamp": ["x"]},
        {"stamp": [None, "y"]},
    ],
)
def test_damaged_ones_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(DataLossError, match=f"{re.escape(str(path))}: not a distinput manifest.*; write it again"):
        load_manifest(str(path))


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "null", '{"distinput_manifest": 1}', "[" * 100_000, "\udcff"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataLossError, match="not a distinput manifest, or damaged"):
        load_manifest(str(path))


def test_another_version_says_so(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps({**GOOD, "distinput_manifest": 2}))
    with pytest.raises(InvalidArgumentError, match="a manifest of version 2, this distinput reads 1; write it again"):
        load_manifest(str(tmp_path / "m.json"))


TABLE: dict[str, Any] = {name: column for name, column in GOOD.items() if name != "distinput_manifest"}


@pytest.mark.parametrize(
    "change",
    [
        {"name": [1, 2]},
        {"name": ["a", None]},
        {"size": ["1", "2"]},
        {"size": [1, -2]},
        {"size": [1, None]},
        {"rows": [1.5, 2.5]},
        {"stamp": [1, 2]},
        {"stamp": [["x"], ["y"]]},
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "m.parquet"
    write_table(pa.table({**TABLE, **change}), path)
    with pytest.raises(DataLossError, match="not a distinput manifest, or damaged"):
        load_manifest(str(path))


def test_a_table_without_a_column_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    write_table(pa.table({"name": ["a"]}), path)
    with pytest.raises(DataLossError, match="not a distinput manifest, or damaged"):
        load_manifest(str(path))
    path.write_bytes(b"PAR1 no table PAR1")
    with pytest.raises(DataLossError, match="not a distinput manifest, or damaged"):
        load_manifest(str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_not_utf8_cannot_be_listed(folder: Path, kind: str) -> None:
    (folder / os.fsdecode(b"\xff.bin")).write_bytes(b"x")
    with pytest.raises(InvalidArgumentError, match=r"a manifest lists names in UTF-8, and this one is not"):
        save_manifest(str(folder / kind), str(folder / "*.bin"))
    assert not (folder / kind).exists()


def test_versions_that_were_listed_as_a_hash_of_the_url_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FileTable(Strings.of([b"https://h/a"]), np.array([1]), None, Strings.of([b"abc"]))
    monkeypatch.setattr(module, "version_of", lambda _: "abc 1 tag")
    table.check(0)
    monkeypatch.setattr(module, "version_of", lambda _: "xyz 1 tag")
    with pytest.raises(DataLossError, match="has changed since the manifest was written"):
        table.check(0)
