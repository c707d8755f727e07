# SPDX-License-Identifier: Apache-2.0
"""The facts of a list of files change with names, order, sizes and times, and with nothing else."""

import os
from pathlib import Path

import fsspec
import pytest

from distinput.columns.column import Strings
from distinput.files import manifest
from distinput.files.manifest import NamesFingerprint, save_manifest


def names(*paths: Path | str) -> NamesFingerprint:
    return NamesFingerprint(Strings.of([os.fsencode(path) for path in paths]))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("a", "b", "c")]
    for number, path in enumerate(made):
        path.write_bytes(b"x" * number)
        os.utime(path, ns=(10**18, 10**18))
    return made


def test_words_do_not_depend_on_the_order_of_names_nor_sets_on_their_folder() -> None:
    one, other = names("/data/x/1", "/data/x/2"), names("/data/x/2", "/data/x/1")
    assert one.words == other.words
    moved = names("/elsewhere/1", "/elsewhere/2")
    assert moved.root == "/elsewhere/"
    assert one.words["set"] == moved.words["set"]
    assert one.words["root"] != moved.words["root"]
    assert one.words["set"] != names("/data/x/1", "/data/x/3").words["set"]
    assert names("a", "b").words == {"files": 2, "set": names("b", "a").words["set"]}


def test_stamps_tell_sizes_and_times_apart(files: list[Path]) -> None:
    before = names(*files).stamps()
    assert names(*files).stamps() == before
    os.utime(files[1], ns=(10**18, 10**18 + 1))
    touched = names(*files).stamps()
    assert touched["sizes"] == before["sizes"]
    assert touched["times"] != before["times"]
    assert [one == other for one, other in zip(before["each"], touched["each"], strict=True)] == [True, False, True]
    files[1].write_bytes(b"longer")
    assert names(*files).stamps()["sizes"] != before["sizes"]


def test_stamps_depend_on_the_order_of_files(files: list[Path]) -> None:
    assert names(*files).stamps()["sizes"] != names(*files[::-1]).stamps()["sizes"]


def test_a_file_that_is_gone_is_another_one_and_hides_no_other(files: list[Path]) -> None:
    whole = names(*files).stamps()
    files[2].unlink()
    gone = names(*files).stamps()
    assert set(gone) == set(whole)
    assert all(gone[fact] != whole[fact] for fact in ("sizes", "times"))
    assert gone["each"][:2] == whole["each"][:2]
    assert whole["each"][2][:4] == gone["each"][2][:4]
    files[1].write_bytes(b"longer")
    assert names(*files).stamps()["sizes"] != gone["sizes"]


def test_many_files_have_no_words_of_their_own(tmp_path: Path) -> None:
    paths = [tmp_path / str(i) for i in range(9)]
    for path in paths:
        path.touch()
    assert "each" not in names(*paths).stamps()
    assert len(names(*paths[:8]).stamps()["each"]) == 8


def test_of_a_long_list_some_files_are_looked_up_the_last_included(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MOST_STAMPS", 2)
    monkeypatch.setattr(manifest, "_MOST_EACH", 0)
    before = names(*files).stamps()
    files[1].write_bytes(b"not looked at")
    assert names(*files).stamps() == before
    files[2].write_bytes(b"looked at")
    assert names(*files).stamps()["sizes"] != before["sizes"]


def test_a_manifest_is_believed_and_nothing_is_looked_up(files: list[Path], tmp_path: Path) -> None:
    table = save_manifest(str(tmp_path / "manifest.json"), [str(path) for path in files])
    texts = Strings.of([os.fsencode(path) for path in files])
    before = NamesFingerprint(texts, table).stamps()
    files[0].write_bytes(b"changed")
    assert NamesFingerprint(texts, table).stamps() == before
    assert names(*files).stamps()["sizes"] != before["sizes"]


def test_where_files_are(files: list[Path], tmp_path: Path) -> None:
    assert names(*files).local
    assert not names(*files).remote
    assert not names(tmp_path).local
    assert not names(tmp_path / "gone").local
    assert not names().local
    assert not names("memory://a", *files).local
    assert names(*files, "memory://a").remote


def test_remote_files_are_asked_unless_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    system = fsspec.filesystem("memory")
    for name in ("/facts/a", "/facts/b"):
        system.pipe(name, b"abc")
    try:
        before = names("memory://facts/a", "memory://facts/b").stamps()
        assert "sizes" in before
        system.pipe("/facts/b", b"abcd")
        assert names("memory://facts/a", "memory://facts/b").stamps()["sizes"] != before["sizes"]
        monkeypatch.setattr(manifest, "MOST_REMOTE", 1)
        assert set(names("memory://facts/a", "memory://facts/b").stamps()) == {"each"}
        assert set(names("memory://facts/gone").stamps()) == {"each", "sizes", "times"}
    finally:
        system.rm("/facts", recursive=True)
