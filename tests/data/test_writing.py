# SPDX-License-Identifier: Apache-2.0
"""Writing: files are cut where was asked, appear together, and an interrupted writing goes on."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.files.paths import FileLock
from distinput.files.sink import Sink
from distinput.writers import open_file
from distinput.writers.manifest import MANIFEST, Journal, read_written
from distinput.writers.stage import Stage

Dataset = di.data.Dataset


def rows(made: Any) -> list[list[Any]]:
    return [di.data.FileDataset(path, made.format, **made.options).to_list() for path in made.paths]


def joined(made: Any) -> list[Any]:
    return [element for elements in rows(made) for element in elements]


def failing(fails: list[int], seen: list[int], size: int = 10) -> Any:
    """Elements of which some fail while they are in a list."""
    return passing(Dataset.range(size), fails, seen)


def passing(dataset: Any, fails: list[int], seen: list[int]) -> Any:
    """Numbers, each of which is put into a list, unless it is in the other, from which it is taken then."""

    def pass_on(x: int) -> int:
        if int(x) in fails:
            fails.remove(int(x))
            raise ValueError(f"element {x}")
        seen.append(int(x))
        return x

    return dataset.map(pass_on, output_signature=di.TensorSpec([], "int64"))


@pytest.mark.parametrize(
    "cut, wanted",
    [
        ({}, [[0, 1, 2, 3, 4]]),
        ({"shards": 1}, [[0, 1, 2, 3, 4]]),
        ({"shards": 2}, [[0, 1, 2], [3, 4]]),
        ({"shards": 7}, [[0], [1], [2], [3], [4], [], []]),
        ({"shard_rows": 2}, [[0, 1], [2, 3], [4]]),
        ({"shard_rows": 5}, [[0, 1, 2, 3, 4]]),
        ({"shard_bytes": 1 << 40}, [[0, 1, 2, 3, 4]]),
    ],
)
def test_where_files_end(tmp_path: Path, cut: Any, wanted: list[list[int]]) -> None:
    made = Dataset.range(5).write(tmp_path, "elements", **cut)
    assert rows(made) == wanted
    assert [file.rows for file in made.files] == list(map(len, wanted))
    assert made.order == "files"


def test_files_end_by_bytes(tmp_path: Path) -> None:
    made = Dataset.from_tensor_slices(np.zeros((12, 1 << 17))).write(tmp_path, "elements", shard_bytes=1 << 20)
    assert [file.rows for file in made.files] == [4, 4, 4]


def test_elements_that_nobody_counted_take_turns(tmp_path: Path) -> None:
    dataset = Dataset.range(10).filter(lambda x: x != 4)
    made = dataset.write(tmp_path, "elements", shards=2)
    assert (rows(made), made.order) == ([[0, 2, 5, 7, 9], [1, 3, 6, 8]], "turns")
    none = Dataset.range(10).filter(lambda x: x > 10).write(tmp_path / "b", "elements", shards=2)
    assert rows(none) == [[], []]


@pytest.mark.parametrize("format", ["elements", "parquet", "csv"])
def test_files_that_take_turns_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setattr(open_file, "SHARD_BYTES", 1)
    fails, seen = [7], []  # type: ignore[var-annotated]

    def dataset() -> Any:
        parts = Dataset.range(5).concatenate(Dataset.range(5, 7)).concatenate(Dataset.range(7, 10))
        return passing(parts, fails, seen).filter(lambda x: x != 4).map(lambda x: {"x": x})

    with pytest.raises(ValueError, match="element 7"):
        dataset().write(tmp_path / "again", format, shards=3)
    assert read_written(str(tmp_path / "again")) is None
    fails.clear()
    made = dataset().write(tmp_path / "again", format, shards=3)
    assert seen.count(0) == 1  # the first ones were not made again
    whole = dataset().write(tmp_path / "whole", format, shards=3)
    assert (rows(made), made.order) == (rows(whole), "turns")
    assert [file.name for file in made.files] == [file.name for file in whole.files]
    assert sorted(os.listdir(tmp_path / "again")) == sorted([MANIFEST, *[file.name for file in made.files]])
    di.io.verify_files(str(tmp_path / "again"))


def test_files_that_took_turns_are_not_gone_on_with_where_elements_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_file, "SHARD_BYTES", 1)
    fails, seen = [7], []  # type: ignore[var-annotated]
    with pytest.raises(ValueError, match="element 7"):
        failing(fails, seen).write(tmp_path, "elements", shards=3)
    (stage,) = tmp_path.iterdir()
    journal = Journal.of_json(json.loads((stage / "journal.json").read_text()))
    assert journal is not None
    (stage / "journal.json").write_text(json.dumps(replace(journal, order="turns").to_json()))
    fails.clear()
    seen.clear()
    made = failing(fails, seen).write(tmp_path, "elements", shards=3)
    assert rows(made) == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert seen == list(range(10))


def test_no_elements_are_one_file(tmp_path: Path) -> None:
    assert rows(Dataset.range(0).write(tmp_path, "elements")) == [[]]


def test_files_appear_when_all_are_complete(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    seen: list[set[str]] = []

    def look(x: int) -> int:
        seen.append({name for name in os.listdir(tmp_path) if not name.startswith(".")})
        return x

    Dataset.range(4).map(look, output_signature=di.TensorSpec([], "int64")).write(tmp_path, "elements", shard_rows=1)
    assert set().union(*seen) == {"mine.txt"}
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, "mine.txt", *[f"part-{i:05d}.arrow" for i in range(4)]])


def test_what_was_interrupted_goes_on(tmp_path: Path) -> None:
    fails, seen = [7], []  # type: ignore[var-annotated]
    with pytest.raises(ValueError, match="element 7"):
        failing(fails, seen).write(tmp_path, "elements", shard_rows=2)
    assert read_written(str(tmp_path)) is None
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []
    (stage,) = os.listdir(tmp_path)
    begun = (tmp_path / stage / "part-00000.arrow").stat().st_ino
    fails.clear()
    made = failing(fails, seen).write(tmp_path, "elements", shard_rows=2)
    assert rows(made) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert Path(made.paths[0]).stat().st_ino == begun  # it was not written again
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])
    di.io.verify_files(str(tmp_path))


def test_an_order_that_was_drawn_goes_on(tmp_path: Path) -> None:
    fails: list[int] = []

    def checked(x: int) -> int:
        if fails and fails.pop() == 0:
            raise ValueError("now")
        return x

    def dataset() -> Any:
        return Dataset.range(40).shuffle(40).map(checked, output_signature=di.TensorSpec([], "int64"))

    fails += [0, *[1] * 20]
    with pytest.raises(ValueError, match="now"):
        dataset().write(tmp_path, "elements", shard_rows=3)
    made = dataset().write(tmp_path, "elements", shard_rows=3)
    assert sorted(joined(made)) == list(range(40))


@pytest.mark.parametrize("change", ["pipeline", "options", "cut"])
def test_what_is_of_another_request_is_not_gone_on_with(tmp_path: Path, change: str) -> None:
    fails: list[int] = [7]
    seen: list[int] = []
    with pytest.raises(ValueError, match="element 7"):
        failing(fails, seen).write(tmp_path, "elements", shard_rows=2)
    fails.clear()
    seen.clear()
    dataset = failing(fails, seen, 9 if change == "pipeline" else 10)
    made = dataset.write(
        tmp_path, "elements", shard_rows=3 if change == "cut" else 2, compression="LZ4" if change == "options" else None
    )
    assert joined(made) == seen == list(range(9 if change == "pipeline" else 10))
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])


def test_a_complete_dataset_is_replaced_on_demand(tmp_path: Path) -> None:
    first = Dataset.range(5).write(tmp_path, "elements", shard_rows=2)
    with pytest.raises(
        FailedPreconditionError,
        match=r"write: .* holds a complete dataset of 5 elements \(distinput-manifest\.json\); overwrite=True replaces it",
    ):
        Dataset.range(3).write(tmp_path, "elements")
    fails = [2]
    with pytest.raises(ValueError, match="element 2"):
        failing(fails, []).write(tmp_path, "elements", overwrite=True, shard_rows=1)
    assert rows(read_written(str(tmp_path))) == [[0, 1], [2, 3], [4]]
    fails.clear()
    made = failing(fails, []).write(tmp_path, "elements", overwrite=True, shard_rows=4)
    assert rows(made) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert not {file.name for file in made.files} & {file.name for file in first.files}
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "part-00003.arrow").write_text("mine")
    with pytest.raises(FailedPreconditionError, match=r"part-00003\.arrow is there already, and no"):
        Dataset.range(3).write(tmp_path, "elements")
    assert os.listdir(tmp_path) == ["part-00003.arrow"]
    made = Dataset.range(3).write(tmp_path, "elements", prefix="train")
    assert sorted(os.listdir(tmp_path)) == [MANIFEST, "part-00003.arrow", made.files[0].name]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    def write_again(x: int) -> int:
        with pytest.raises(
            FailedPreconditionError, match=rf"is being written by process {os.getpid()} on .*; wait until"
        ):
            Dataset.range(1).write(tmp_path, "elements")
        return x

    made = Dataset.range(2).map(write_again, output_signature=di.TensorSpec([], "int64")).write(tmp_path, "elements")
    assert rows(made) == [[0, 1]]


def test_a_full_disk_is_an_error_and_what_is_complete_stays_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, full = Sink._put, True

    def until_full(sink: Sink, data: bytes) -> None:
        if full and "part-00002" in sink.path:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(sink, data)

    monkeypatch.setattr(Sink, "_put", until_full)
    with pytest.raises(OSError, match="No space left on device"):
        Dataset.range(8).write(tmp_path, "elements", shard_rows=2)
    (stage,) = os.listdir(tmp_path)
    assert sorted(os.listdir(tmp_path / stage)) == ["journal.json", "lock", "part-00000.arrow", "part-00001.arrow"]
    full = False
    assert rows(Dataset.range(8).write(tmp_path, "elements", shard_rows=2)) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_an_error_before_the_first_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="element 0"):
        failing([0], []).write(tmp_path, "elements")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["first rename", "second rename", "manifest", "tidying"])
@pytest.mark.parametrize("again", ["the same", "another"])
def test_publishing_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, again: str
) -> None:
    Dataset.range(3).write(tmp_path, "elements")
    with monkeypatch.context() as patched:
        _interrupt(patched, step)
        with pytest.raises(KeyboardInterrupt):
            Dataset.range(4).write(tmp_path, "elements", shard_rows=2, overwrite=True)
    found = read_written(str(tmp_path))
    assert found is not None
    assert joined(found) == list(range(4 if step == "tidying" else 3))
    dataset = Dataset.range(4) if again == "the same" else Dataset.range(5)
    made = dataset.write(tmp_path, "elements", shard_rows=2, overwrite=True)
    assert joined(made) == dataset.to_list()
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])


def _interrupt(patched: pytest.MonkeyPatch, step: str) -> None:
    """Have the next publication end at a step, as if the process had ended: nothing is tidied up."""
    from distinput.writers import stage as module
    from distinput.writers.manifest import WrittenFiles

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    patched.setattr(Stage, "discard", lambda _: None)
    if step == "manifest":
        patched.setattr(WrittenFiles, "save", interrupted)
    elif step == "tidying":
        patched.setattr(module, "remove_old", interrupted)
    else:
        left = [step == "second rename", False]
        replace = os.replace

        def rename(source: str, target: str) -> None:
            if source.endswith(".arrow") and not left.pop(0):
                raise KeyboardInterrupt
            replace(source, target)

        patched.setattr(module.os, "replace", rename)


def test_a_lock_that_another_process_has_just_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, gone = FileLock.take, [True]

    def taken(lock: FileLock) -> Any:
        if gone:
            gone.pop()
            os.rmdir(os.path.dirname(lock.path))
        return take(lock)

    monkeypatch.setattr(FileLock, "take", taken)
    assert rows(Dataset.range(2).write(tmp_path, "elements")) == [[0, 1]]


@pytest.mark.parametrize("format", ["text", "tfrecord", "csv", "jsonl"])
def test_indices_of_files_that_are_replaced_go_with_them(tmp_path: Path, format: str) -> None:
    def dataset(size: int) -> Any:
        lines = Dataset.from_tensor_slices([b"line"] * size)
        return lines if format in ("text", "tfrecord") else lines.map(lambda line: {"line": line})

    (tmp_path / ".mine.txt.text.index").write_text("mine")
    for size in (3, 4):
        made = dataset(size).write(tmp_path, format, shards=2, overwrite=True)
        assert len(di.data.FileDataset(tmp_path, index=True)) == size
        found = {name for name in os.listdir(tmp_path) if name.startswith(".")}
        assert found == {".mine.txt.text.index", *[f".{file.name}.{format}.index" for file in made.files]}
    dataset(1).write(tmp_path, "elements", overwrite=True)
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == [".mine.txt.text.index"]


def test_a_full_disk_names_the_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(sink: Sink, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Sink, "_put", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        Dataset.range(5).filter(lambda x: True).write(tmp_path, "parquet", shards=2)
    assert any("experimental.assert_cardinality(n), shard_rows= or" in note for note in caught.value.__notes__)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "put",
    [
        lambda folder: Dataset.range(3).write(folder, "parquet", prefix="test", overwrite=True),
        lambda folder: Dataset.range(3).write(folder, "parquet", prefix="test"),
        lambda folder: Dataset.range(3).write(folder, "parquet", prefix="tra", overwrite=True),
        lambda folder: Dataset.range(3).save(folder),
        lambda folder: Dataset.range(3).cache(str(folder)).to_list(),
    ],
)
def test_another_dataset_is_never_replaced(put: Any, tmp_path: Path) -> None:
    for prefix in "train", "train-more":
        folder = tmp_path / prefix
        Dataset.range(5).write(folder, "parquet", prefix=prefix)
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        with pytest.raises(FailedPreconditionError, match="holds a") as error:
            put(folder)
        assert "overwrite" not in str(error.value)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_dataset_of_the_same_prefix_is_replaced_again_and_again(tmp_path: Path) -> None:
    for size, options in enumerate([{}, {"shards": 2}, {"job": "a"}, {"shard_rows": 1}, {}]):
        made = Dataset.range(size).write(tmp_path, "parquet", prefix="train-x", overwrite=True, **options)
        assert made.rows == size
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            ["distinput-manifest.json", *(file.name for file in made.files)]
        )
    with pytest.raises(FailedPreconditionError, match=r"another one \(train-x-.*parquet is not named train-\.\.\.\)"):
        Dataset.range(1).write(tmp_path, "parquet", prefix="train", overwrite=True)


def test_a_cache_is_not_replaced(tmp_path: Path) -> None:
    Dataset.range(5).cache(str(tmp_path)).to_list()
    with pytest.raises(FailedPreconditionError, match=r"another one \(a cache\)"):
        Dataset.range(3).save(tmp_path)


def test_more_than_a_million_files_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"shards must be at most 1,048,576, got 1,099,511,627,776: .* shard_rows="
    ):
        Dataset.range(10).write(tmp_path / "a", "parquet", shards=2**40)
    assert not (tmp_path / "a").exists()
    assert Dataset.range(10).write(tmp_path / "b", "parquet", shard_rows=2**40).rows == 10
