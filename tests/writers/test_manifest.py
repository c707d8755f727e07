# SPDX-License-Identifier: Apache-2.0
"""A manifest makes files a dataset, and says when they are not those that were written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.writers.manifest import MANIFEST, WrittenFiles, read_written, verify_files


@pytest.fixture
def made(tmp_path: Path) -> WrittenFiles:
    return di.data.Dataset.range(5).write(str(tmp_path), "parquet", shards=2)


def test_it_says_all_that_a_reader_needs(tmp_path: Path, made: WrittenFiles) -> None:
    found = read_written(str(tmp_path))
    assert found == made
    assert di.io.verify_files(str(tmp_path)) == made
    assert [(file.name, file.rows) for file in made.files] == [
        ("part-00000-of-00002.parquet", 3),
        ("part-00001-of-00002.parquet", 2),
    ]
    assert [made.table().path(i) for i in range(2)] == made.paths
    assert made.table().rows.tolist() == [3, 2]  # type: ignore[union-attr]
    assert made.bytes == sum(Path(path).stat().st_size for path in made.paths)
    kept = json.loads((tmp_path / MANIFEST).read_text())
    assert (kept["rows"], kept["format"], kept["spec"]) == (5, "parquet", {"dtype": "<i8", "shape": []})


def test_without_it_there_is_no_dataset(tmp_path: Path) -> None:
    assert read_written(str(tmp_path)) is None
    assert read_written(str(tmp_path / "none")) is None
    with pytest.raises(NotFoundError, match="there is no complete dataset in this folder"):
        di.io.verify_files(str(tmp_path))


def test_a_file_that_changed_is_named(tmp_path: Path, made: WrittenFiles) -> None:
    path = Path(made.paths[1])
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"x")
    with pytest.raises(DataLossError, match=r"part-00001-of-00002\.parquet: its checksum is 0x"):
        di.io.verify_files(str(tmp_path))
    path.write_bytes(data[:-1])
    with pytest.raises(
        DataLossError, match=r"part-00001-of-00002\.parquet: has \d+ bytes, and distinput-manifest\.json says"
    ):
        di.io.verify_files(str(tmp_path))
    path.unlink()
    with pytest.raises(NotFoundError, match=r"part-00001-of-00002\.parquet"):
        di.io.verify_files(str(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 6},
        {"files": [{"name": "../a", "rows": 1, "bytes": 1, "crc32": 0}]},
        {"files": [{"name": "a", "rows": -1, "bytes": 1, "crc32": 0}]},
        {"files": [{"name": "a"}]},
        {"files": [{"name": "a\0", "rows": 1, "bytes": 1, "crc32": 0}]},
        {"files": [{"name": "a", "rows": 1 << 63, "bytes": 1, "crc32": 0}], "rows": 1 << 63},
        {"files": 3},
        {"format": 3},
        {"unknown": 1},
    ],
    ids=str,
)
def test_a_damaged_manifest_is_named(tmp_path: Path, made: WrittenFiles, change: dict[str, Any]) -> None:
    path = tmp_path / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataLossError, match=r"distinput-manifest\.json: not a manifest of written files, or damaged"):
        read_written(str(tmp_path))
    path.write_text(path.read_text()[:20])
    with pytest.raises(DataLossError, match="or damaged"):
        read_written(str(tmp_path))


def test_a_manifest_of_another_version_says_so(tmp_path: Path, made: WrittenFiles) -> None:
    path = tmp_path / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "distinput_written": 99}))
    with pytest.raises(InvalidArgumentError, match="a manifest of version 99, this distinput reads 1"):
        read_written(str(tmp_path))


@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_a_folder_may_be_any_kind_of_path(made: WrittenFiles, kind: Any) -> None:
    assert verify_files(kind(made.directory)) == made
