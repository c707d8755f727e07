# SPDX-License-Identifier: Apache-2.0
"""A manifest makes files a dataset, and says when they are not those that were written."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from distinput.values.spec import Spec, TensorSpec
from distinput.writers import WRITERS
from distinput.writers.manifest import MANIFEST, OPTIONS_GIVEN, WrittenFiles, read_written, verify_files


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


@pytest.mark.parametrize(
    "format, option",
    [
        ("arrow", "memory_map"),
        ("arrow", "trusted"),
        ("csv", "on_error"),
        ("npz", "memory_map"),
        ("parquet", "columns"),
        ("text", "index_folder"),
    ],
)
def test_options_that_no_writer_gives_never_come_from_a_file(tmp_path: Path, format: str, option: str) -> None:
    di.data.Dataset.range(2).map(lambda x: {"x": x}).write(str(tmp_path), "arrow")
    path = tmp_path / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": format, "options": {option: True}}))
    with pytest.raises(
        DataLossError, match=f"gives the format '{format}' the option '{option}', which no writer gives"
    ):
        di.data.FileDataset(str(tmp_path))


def test_all_options_of_the_writers_of_this_library_are_known() -> None:
    spec = Spec.of({"x": TensorSpec([], "int64"), "y": TensorSpec([], "S")})
    asked = {
        "csv": {"compression": "GZIP"},
        "jsonl": {"compression": "GZIP"},
        "tar": {"compression": "GZIP"},
    }
    asked |= {"text": {"compression": "GZIP"}, "tfrecord": {"compression": "GZIP"}}
    builtin = [name for name in WRITERS if WRITERS.find(name).__module__.startswith("distinput.writers.")]
    assert set(OPTIONS_GIVEN) == set(builtin)
    for name in builtin:
        writer = WRITERS.find(name)(**asked.get(name, {}))
        given = {*writer.reading(spec)}
        if "valid" in OPTIONS_GIVEN[name]:
            given |= {*writer.reading(di.data.Dataset.from_arrow(pa.table({"x": [1, None]})).node.spec)}
        assert given == OPTIONS_GIVEN[name]


def test_a_file_that_is_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = di.data.Dataset.range(2).map(lambda x: b"%d" % int(x)).write(str(data), "text")
    (tmp_path / "secret").write_text("0\n1\n")
    os.unlink(made.paths[0])
    os.symlink("../secret", made.paths[0])
    for read in (di.data.FileDataset, di.data.TextLineDataset, di.io.verify_files, read_written):
        with pytest.raises(FailedPreconditionError, match=r"is a symbolic link out of its folder, to .*secret"):
            read(str(data))
    os.unlink(made.paths[0])
    (data / "kept").write_text("0\n1\n")
    os.symlink("kept", made.paths[0])
    assert di.data.FileDataset(str(data)).to_list() == [b"0", b"1"]


def test_a_manifest_that_is_a_link_or_a_pipe(tmp_path: Path, made: WrittenFiles) -> None:
    other = tmp_path / "other"
    other.mkdir()
    os.symlink(tmp_path / MANIFEST, other / MANIFEST)
    with pytest.raises(FailedPreconditionError, match="is a symbolic link out of its folder"):
        read_written(str(other))
    os.unlink(other / MANIFEST)
    os.mkfifo(other / MANIFEST)
    with pytest.raises(DataLossError, match="is a pipe or a device"):
        read_written(str(other))
