# SPDX-License-Identifier: Apache-2.0
"""Indices that are built when they are first needed."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.columns.column import Ints
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.source import version_of
from distinput.formats import format_named, indexed
from distinput.formats.indexed import built_index, index_path


class Scan:
    """Counts how often a file is read for its index."""

    def __init__(self, path: Path) -> None:
        self.path, self.times = path, 0

    def __call__(self) -> Iterator[Ints]:
        self.times += 1
        yield np.arange(self.path.stat().st_size)
        yield np.array([self.path.stat().st_size])


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    return Scan(path)


def built(scan: Scan, options: str = "") -> list[int]:
    return built_index(str(scan.path), index_path(str(scan.path), "bytes", None), options, scan).tolist()


def test_an_index_is_built_once(scan: Scan) -> None:
    assert [built(scan), built(scan)] == [[0, 1, 2, 3]] * 2
    assert scan.times == 1
    assert os.listdir(scan.path.parent).count(".a.bytes.index") == 1


def test_threads_build_an_index_once(scan: Scan) -> None:
    threads = [threading.Thread(target=built, args=(scan,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scan.times == 1


def test_another_version_or_other_options_need_another_index(scan: Scan) -> None:
    built(scan)
    scan.path.write_bytes(b"abcd")
    assert built(scan) == [0, 1, 2, 3, 4]
    status = scan.path.stat()
    os.utime(scan.path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))  # the same size at another time
    built(scan)
    built(scan, "other options")
    assert scan.times == 4


@pytest.mark.parametrize("size", [0, 1, 60, 130, 150, -1])
def test_a_damaged_index_is_built_again(scan: Scan, size: int) -> None:
    built(scan)
    index = Path(index_path(str(scan.path), "bytes", None))
    whole = index.read_bytes()
    index.write_bytes(whole[:size])
    assert built(scan) == [0, 1, 2, 3]
    flipped = bytearray(index.read_bytes())
    flipped[130] ^= 1  # an offset
    index.write_bytes(flipped)
    assert built(scan) == [0, 1, 2, 3]
    assert index.read_bytes() == whole


def test_an_index_that_cannot_be_written_says_what_to_do(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_sink(path: str, own: bool) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("distinput.formats.indexed.Sink", no_sink)
    with pytest.raises(PermissionError) as caught:
        built(scan)
    where = f"the index of {scan.path} cannot be written to {scan.path.parent}/.a.bytes.index"
    assert caught.value.__notes__ == [f"{where}: name a folder for it with index='...'"]


def test_a_file_that_changes_while_it_is_read_is_an_error(scan: Scan) -> None:
    def changing() -> Iterator[Ints]:
        yield from scan()
        scan.path.write_bytes(b"changed")

    with pytest.raises(DataLossError, match="a: changed while its index was built"):
        built_index(str(scan.path), index_path(str(scan.path), "bytes", None), "", changing)
    assert os.listdir(scan.path.parent) == ["a"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        built(Scan(tmp_path / "none"))


def test_indices_in_one_folder_have_names_of_their_own() -> None:
    paths = [index_path(path, "text", "indices") for path in ("a/x.txt", "b/x.txt", "memory://b/x.txt")]
    assert len(set(paths)) == 3
    assert all(path.startswith("indices/x.txt.") and path.endswith(".text.index") for path in paths)
    assert index_path("memory://b/x.txt", "text", None) == "memory://b/.x.txt.text.index"


def test_a_folder_that_others_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    folder = tmp_path / "indices"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InvalidArgumentError, match=r"index='.*indices': others could change what records are read"):
        di.data.TextLineDataset(str(tmp_path / "a.txt"), index=str(folder)).to_list()
    folder.chmod(0o755)
    assert di.data.TextLineDataset(str(tmp_path / "a.txt"), index=str(folder)).to_list() == [b"1", b"2"]


def test_parts_of_a_file_are_listed_with_one_look_at_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look asks for the versions of both: of a remote file, that is a request."""
    path = tmp_path / "a.txt"
    asked: list[str] = []

    def looked(name: str) -> str:
        asked.append(name)
        return version_of(name)

    monkeypatch.setattr(indexed, "_FRAGMENT_BYTES", 100)
    path.write_bytes(b"some text\n" * 100)
    lines = format_named("text", True)
    assert len(lines.fragments(str(path))) == 10
    monkeypatch.setattr(indexed, "version_of", looked)
    parts = lines.fragments(str(path))
    assert [(part.rows, part.nbytes) for part in parts] == [(10, 100)] * 10
    assert len(asked) == 2
