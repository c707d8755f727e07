# SPDX-License-Identifier: Apache-2.0
"""A stage hides files until all of them are complete."""

import os
from pathlib import Path

import fsspec
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError
from distinput.files.lock import FileLock
from distinput.files.paths import list_matching
from distinput.writers.manifest import MANIFEST, WrittenFile, WrittenFiles, read_written
from distinput.writers.stage import Stage, publish

A = WrittenFile("a.bin", 1, 3, 0)


def staged(folder: Path) -> Stage:
    stage = Stage(str(folder), "writing")
    assert stage.take()
    Path(stage.path(A.name)).write_bytes(b"abc")
    return stage


def dataset(folder: Path, *files: WrittenFile) -> WrittenFiles:
    return WrittenFiles(str(folder), "fixed_length", {"record_bytes": 3}, files)


def test_files_appear_together(tmp_path: Path) -> None:
    stage = staged(tmp_path / "a")
    assert stage.has(A)
    assert [path for path in list_matching([str(tmp_path / "**")]) if os.path.isfile(path)] == []
    publish([(stage, [A])], dataset(tmp_path / "a", A), None)
    assert sorted(os.listdir(tmp_path / "a")) == ["a.bin", MANIFEST]


def test_an_older_dataset_is_removed_when_the_new_one_is_there(tmp_path: Path) -> None:
    old = publish([(staged(tmp_path), [A])], dataset(tmp_path, A), None)
    stage = Stage(str(tmp_path), "writing")
    assert stage.take()
    b = WrittenFile("b.bin", 1, 3, 0)
    Path(stage.path("b.bin")).write_bytes(b"xyz")
    publish([(stage, [b])], dataset(tmp_path, b), old)
    assert sorted(os.listdir(tmp_path)) == ["b.bin", MANIFEST]


def test_publishing_twice_does_nothing_more(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    stage.publish([A])
    stage.publish([A])
    assert stage.has(A)
    (tmp_path / "a.bin").unlink()
    assert not stage.has(A)
    with pytest.raises(
        FailedPreconditionError, match=r"a\.bin was removed from .* before it was complete; write again"
    ):
        stage.publish([A])


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    first, second = staged(tmp_path), Stage(str(tmp_path), "writing")
    assert not second.take()
    assert second.taken_by().startswith(f"process {os.getpid()} on ")
    first.release()
    assert second.take()
    second.discard()
    second.discard()
    assert os.listdir(tmp_path) == []


def test_a_journal_that_is_damaged_is_none(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    assert stage.journal() is None
    stage.record({"a": 1})
    assert stage.journal() == {"a": 1}
    for damage in ("{", "[]", "\xff"):
        Path(stage.folder, "journal.json").write_text(damage, encoding="latin-1")
        assert stage.journal() is None
    stage.clear()
    assert os.listdir(stage.folder) == ["lock"]
    stage.remove()


def test_file_systems_without_locks_get_a_folder_for_each_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileLock, "take", lambda _: None)
    first, second = staged(tmp_path), staged(tmp_path)
    assert first.folder != second.folder


def test_stores_of_objects_have_no_stage() -> None:
    folder = "memory://stage/a"
    system = fsspec.filesystem("memory")
    try:
        made = di.data.Dataset.range(5).write(folder, "parquet", shard_rows=3)
        assert sorted(path.rpartition("/")[2] for path in system.ls("/stage/a", detail=False)) == sorted(
            [MANIFEST, *[file.name for file in made.files]]
        )
        assert read_written(folder) == made
        assert [row["value"] for row in di.data.ParquetDataset(made.paths).to_list()] == [0, 1, 2, 3, 4]
        again = di.data.Dataset.range(2).write(folder, "parquet", overwrite=True)
        assert len(system.ls("/stage/a")) == 2
        assert again.rows == 2
        with pytest.raises(di.errors.InvalidArgumentError, match="column"):
            di.data.Dataset.from_tensors(b"\xff").write("memory://stage/b", "csv")
        assert not system.exists("/stage/b") or system.ls("/stage/b") == []
    finally:
        system.rm("/stage", recursive=True)
