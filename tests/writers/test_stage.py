# SPDX-License-Identifier: Apache-2.0
"""A stage hides files until all of them are complete."""

import os
from pathlib import Path
from typing import Any

import fsspec
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError
from distinput.files.paths import FileLock, list_matching
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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of the user's that a stranger's dataset has links to."""
    made = tmp_path / "home"
    made.mkdir()
    (made / "thesis.tex").write_text("precious")
    (tmp_path / "data").mkdir()
    return made


def test_a_stage_that_is_a_link_is_refused(tmp_path: Path, home: Path) -> None:
    data = tmp_path / "data"
    os.symlink("../home", data / ".writing.distinput-unfinished")
    with pytest.raises(
        FailedPreconditionError,
        match=r"\.writing\.distinput-unfinished: is a symbolic link, to .*home; .*: remove the link",
    ):
        di.data.Dataset.range(3).write(str(data), "parquet")
    assert os.listdir(home) == ["thesis.tex"]
    stage = Stage(str(data), "writing")
    assert stage.journal() is None
    stage.tidy()
    assert os.listdir(home) == ["thesis.tex"]


@pytest.mark.parametrize("kind", ["cache", "snapshot"])
def test_reading_a_cache_empties_no_other_folder(tmp_path: Path, home: Path, kind: str) -> None:
    data = tmp_path / "data"
    dataset = getattr(di.data.Dataset.range(3), kind)(str(data))
    assert dataset.to_list() == [0, 1, 2]
    folder = next(data.rglob(MANIFEST)).parent
    os.symlink(home, folder / f".{kind}.distinput-unfinished")
    assert getattr(di.data.Dataset.range(3), kind)(str(data)).to_list() == [0, 1, 2]
    assert os.listdir(home) == ["thesis.tex"]


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_is_a_link_is_refused_and_its_target_kept(tmp_path: Path, home: Path, link: Any) -> None:
    for word, use in {
        "writing": lambda folder: di.data.Dataset.range(3).write(folder, "parquet"),
        "cache": lambda folder: di.data.Dataset.range(3).cache(folder).to_list(),
    }.items():
        folder = tmp_path / word
        stage = folder / f".{word}.distinput-unfinished"
        stage.mkdir(parents=True)
        link(home / "thesis.tex", stage / "lock")
        with pytest.raises(FailedPreconditionError, match="lock: is a link, a pipe or a device"):
            use(str(folder))
        assert (home / "thesis.tex").read_text() == "precious"


def test_what_a_link_in_a_stage_leads_to_is_not_published(tmp_path: Path, home: Path) -> None:
    stage = Stage(str(tmp_path / "data"), "writing")
    assert stage.take()
    (home / "three").write_bytes(b"abc")
    os.symlink(home / "three", stage.path(A.name))
    assert not stage.has(A)
    stage.remove()
    assert (home / "three").exists()
