# SPDX-License-Identifier: Apache-2.0
"""Unfinished files have hidden names that no other writer takes, and those left behind are removed."""

import os
from pathlib import Path

import fsspec
import pytest

from distinput.files import sink
from distinput.files.paths import UNFINISHED, list_matching
from distinput.files.sink import Unfinished, Upload
from distinput.testing.left_behind import _open_files


def test_the_hidden_file_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    made = Unfinished(str(tmp_path / "a"))
    made.file.write(b"data")
    (hidden,) = os.listdir(tmp_path)
    assert hidden.startswith(".a.")
    assert hidden.endswith(UNFINISHED)
    (tmp_path / "ab").touch()
    assert list_matching(str(tmp_path / "*")) == [str(tmp_path / "ab")]
    made.publish()
    assert (tmp_path / "a").read_bytes() == b"data"
    assert sorted(os.listdir(tmp_path)) == ["a", "ab"]
    made.discard()
    assert (tmp_path / "a").exists()


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    one, other = Unfinished(str(tmp_path / "a")), Unfinished(str(tmp_path / "a"))
    one.file.write(b"one")
    other.file.write(b"other")
    assert len(os.listdir(tmp_path)) == 2
    other.publish()
    one.publish()
    assert (tmp_path / "a").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_what_dead_writers_left_is_removed(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f".a.{number}{UNFINISHED}").write_bytes(b"left behind")
    (tmp_path / f".b.0{UNFINISHED}").write_bytes(b"of another file")
    made = Unfinished(str(tmp_path / "a"))
    assert sorted(os.listdir(tmp_path)) == [f".a.0{UNFINISHED}", f".b.0{UNFINISHED}"]
    assert (tmp_path / f".a.0{UNFINISHED}").read_bytes() == b""
    made.discard()
    made.discard()
    assert os.listdir(tmp_path) == [f".b.0{UNFINISHED}"]


def test_a_fork_does_not_remove_the_file_of_its_parent(tmp_path: Path) -> None:
    made = Unfinished(str(tmp_path / "a"))
    process = made._process
    assert process is not None
    made._process = process + 1
    (hidden,) = os.listdir(tmp_path)
    made.discard()
    assert os.listdir(tmp_path) == [hidden]


def test_a_file_that_was_removed_meanwhile_is_not_published(tmp_path: Path) -> None:
    made = Unfinished(str(tmp_path / "a"))
    (hidden,) = os.listdir(tmp_path)
    (tmp_path / hidden).unlink()
    (tmp_path / hidden).write_bytes(b"of somebody else")
    with pytest.raises(FileNotFoundError, match="was removed while it was written"):
        made.publish()
    made.discard()
    assert (tmp_path / hidden).read_bytes() == b"of somebody else"
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["x" * 255, "é" * 120])
def test_long_names_are_shortened_and_told_apart(tmp_path: Path, name: str) -> None:
    one, other = Unfinished(str(tmp_path / name)), Unfinished(str(tmp_path / (name[:-1] + "y")))
    assert len(os.listdir(tmp_path)) == 2
    one.publish()
    other.publish()
    assert sorted(os.listdir(tmp_path)) == sorted([name, name[:-1] + "y"])


def test_without_locks_age_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "locked", lambda descriptor: None)
    old, new = tmp_path / f".a.0{UNFINISHED}", tmp_path / f".b.0{UNFINISHED}"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    first, second = Unfinished(str(tmp_path / "a")), Unfinished(str(tmp_path / "b"))
    assert sorted(os.listdir(tmp_path)) == [old.name, new.name, f".b.1{UNFINISHED}"]
    first.discard()
    second.discard()
    assert os.listdir(tmp_path) == [new.name]


def test_uploads_have_a_hidden_name_too() -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/uploads/a", b"old")
    try:
        made = Upload("memory://uploads/a")
        made.file.write(b"new")
        made.publish()
        assert system.cat("/uploads/a") == b"new"
        assert system.ls("/uploads", detail=False) == ["/uploads/a"]
        given_up = Upload("memory://uploads/a")
        given_up.file.write(b"newer")
        given_up.discard()
        given_up.discard()
        assert system.cat("/uploads/a") == b"new"
        assert system.ls("/uploads", detail=False) == ["/uploads/a"]
    finally:
        system.rm("/uploads", recursive=True)


def test_brackets_in_a_name_are_no_pattern() -> None:
    system = fsspec.filesystem("memory")
    try:
        made = Upload("memory://uploads/a[1]*")
        made.file.write(b"data")
        made.publish()
        assert system.ls("/uploads", detail=False) == ["/uploads/a[1]*"]
    finally:
        system.rm("/uploads", recursive=True)


def open_in(folder: Path) -> int:
    """How many descriptors there are of its files."""
    return sum(count for name, count in _open_files().items() if name.startswith(str(folder)))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_a_file_takes_one_descriptor(tmp_path: Path) -> None:
    made = [Unfinished(str(tmp_path / f"{number}")) for number in range(10)]
    assert open_in(tmp_path) == 10
    for number, file in enumerate(made):
        file.file.write(b"x")
        (file.publish if number % 2 else file.discard)()
    assert open_in(tmp_path) == 0
    assert sorted(os.listdir(tmp_path)) == ["1", "3", "5", "7", "9"]
