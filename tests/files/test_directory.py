# SPDX-License-Identifier: Apache-2.0
"""Constructors take patterns and directories."""

import errno
import json
import os
import warnings
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest

import distinput as di
from distinput.errors import DataLossError, NoMatchError
from distinput.files.folder import MANIFEST, list_files, named_files

FILES = ["b.txt", "a.txt", "sub/c.txt", ".hidden", "_SUCCESS", "_tmp/d.txt", "sub/.e.txt"]
SHOWN = ["a.txt", "b.txt", "sub/c.txt"]


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        root = f"memory://{tmp_path.name}"
        fsspec.filesystem("memory").pipe({f"/{tmp_path.name}/{name}": name.encode() for name in FILES})
        return root
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return str(tmp_path)


def test_a_directory_stands_for_the_files_below_it(folder: str) -> None:
    assert named_files([f"{folder}/"]) == [f"{folder}/{name}" for name in SHOWN]
    assert list_files([f"{folder}/sub/", f"{folder}/a.*"]) == [f"{folder}/a.txt", f"{folder}/sub/c.txt"]
    assert di.data.TextLineDataset(f"{folder}/").to_list() == [name.encode() for name in SHOWN]
    assert len(di.data.Dataset.list_files(f"{folder}/").to_list()) == 3


def test_a_local_directory_needs_no_slash(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    assert named_files([str(tmp_path)]) == [str(tmp_path / "a")]


@pytest.mark.parametrize(
    "patterns, found",
    [
        (["*.txt"], ["a.txt", "b.txt"]),
        (["**/c.*"], ["sub/c.txt"]),
        (["{b,a}.txt"], ["a.txt", "b.txt"]),
        (["b.txt", "sub/*", "a.txt"], ["b.txt", "sub/.e.txt", "sub/c.txt", "a.txt"]),
        (["b.txt", "b.txt", "missing"], ["b.txt", "b.txt", "missing"]),
    ],
)
def test_patterns_stand_for_their_files_and_other_names_for_themselves(
    folder: str, patterns: list[str], found: list[str]
) -> None:
    assert named_files([f"{folder}/{each}" for each in patterns]) == [f"{folder}/{each}" for each in found]


def test_a_local_file_may_be_named_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("one")
    assert di.data.TextLineDataset(str(tmp_path / "a[1].txt")).to_list() == [b"one"]


def test_a_manifest_says_which_files_and_in_which_order(folder: str) -> None:
    with fsspec.open(f"{folder}/{MANIFEST}", "w") as file:
        json.dump({"files": [{"name": "b.txt"}, {"name": "a.txt"}]}, file)
    assert named_files([f"{folder}/"]) == [f"{folder}/b.txt", f"{folder}/a.txt"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"files": [{"name": "a\\u0000"}]}',
        '{"files": [{"name": "../x"}]}',
        '{"files": [{"name": 1}]}',
        '{"files": 3}',
    ],
)
def test_a_damaged_manifest_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    (tmp_path / "a").write_text("a")
    with pytest.raises(DataLossError, match=f"{MANIFEST}: not a manifest of written files, or damaged"):
        named_files([str(tmp_path)])


def test_nothing_that_matches_is_an_error(folder: str) -> None:
    with pytest.raises(NoMatchError, match=r"No files matched pattern: .*\*\.csv"):
        di.data.TextLineDataset(f"{folder}/*.csv")
    with pytest.raises(NoMatchError, match="this directory has no files"):
        di.data.TextLineDataset(f"{folder}/_tmp/no/")


def test_names_in_an_interleave_are_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    names: Any = di.data.Dataset.list_files(str(tmp_path / "*"))
    assert names.interleave(di.data.TextLineDataset).to_list() == [b"one"]


def test_a_file_that_is_named_twice_is_read_twice(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"x\n{ord(name)}\n")
    first, all_of_them = str(tmp_path / "a.csv"), str(tmp_path / "*.csv")
    assert [Path(name).name for name in list_files([first, all_of_them])] == ["a.csv", "a.csv", "b.csv"]
    assert [Path(name).name for name in list_files([f"{tmp_path}/", first])] == ["a.csv", "a.csv", "b.csv"]
    read = di.data.experimental.make_csv_dataset([first, all_of_them], 1, num_epochs=1, shuffle=False)
    assert [int(row["x"][0]) for row in read] == [97, 97, 98]


@pytest.mark.parametrize("name", ["a[1]b", "a*b", "a?b", "{a,b}"])
def test_a_local_directory_may_be_named_like_a_pattern(tmp_path: Path, name: str) -> None:
    folder = str(tmp_path / name)
    made = di.data.Dataset.range(3).write(folder, "parquet")
    assert named_files([folder]) == made.paths
    assert len(di.data.FileDataset(folder).to_list()) == 3


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "closed").mkdir(parents=True)
    (tmp_path / "a" / "1.txt").write_text("one\n")
    (tmp_path / "a" / "closed" / "2.txt").write_text("two\n")

    def refusing(call: Any) -> Any:
        def listed(path: Any = ".") -> Any:
            if str(path).endswith("closed"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return call(path)

        return listed

    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(os, "listdir", refusing(os.listdir))
    for name in ("a", "a/", "a/**/*.txt"):
        with pytest.raises(PermissionError, match="closed"):
            di.data.TextLineDataset(f"{tmp_path}/{name}")
    with pytest.raises(PermissionError, match="closed"):
        di.data.ImageFolderDataset(tmp_path)


@pytest.mark.parametrize("name", ["a[1]b", "a*b", "a?b", "[1]*?", "{a,b}", "plain"])
def test_files_and_folders_of_a_store_may_be_named_like_a_pattern(name: str) -> None:
    root = f"memory://{uuid4()}"
    for folder in (name, "axb", "a1b"):  # the pattern matches these too
        made = di.data.Dataset.range(3).map(lambda x: {"x": x}).write(f"{root}/{folder}", "csv")
        if folder == name:
            paths = made.paths
    assert named_files(paths) == list_files(paths) == paths
    for names in (paths, paths[0], f"{root}/{name}/", f"{root}/{name}"):
        assert [row["x"] for row in di.data.FileDataset(names)] == [0, 1, 2]


@pytest.mark.parametrize("root", ["memory://", "memory:///"])
def test_what_was_written_into_the_root_of_a_store_is_read(root: str) -> None:
    written = di.data.Dataset.range(3).map(lambda x: {"x": x}).write(root, "csv")
    try:
        assert [row["x"] for row in di.data.FileDataset(root)] == [0, 1, 2]
    finally:
        fsspec.filesystem("memory").rm([*written.paths, f"/{MANIFEST}"])


def test_a_pattern_of_a_store_still_matches_others() -> None:
    root = f"memory://{uuid4()}"
    for name in ("a1.txt", "a2.txt", "ab.txt"):
        with fsspec.open(f"{root}/{name}", "w") as file:
            file.write(f"{name}\n")
    for pattern, count in (("a?.txt", 3), ("a[12].txt", 2), ("{a1,ab}.txt", 2), ("a*", 3)):
        assert len(di.data.TextLineDataset(f"{root}/{pattern}").to_list()) == count


def test_a_pattern_of_folders_lists_what_readers_open_one_by_one(tmp_path: Path) -> None:
    for name in ("x=1", "x=2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = di.data.Dataset.list_files(f"{tmp_path}/*", shuffle=False)
        assert found.interleave(di.data.TextLineDataset).to_list() == [b"x=1", b"x=2"]
        inner = found.flat_map(lambda folder: di.data.Dataset.list_files(folder + b"/*.txt"))
        assert len(inner.to_list()) == 2
    with pytest.raises(IsADirectoryError) as failed:
        di.data.TextLineDataset(found).to_list()
    assert "x=1/' stands for the files below a directory" in str(failed.value.__notes__)
