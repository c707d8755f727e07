# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import pytest

from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.files import mounts
from distinput.files.mounts import stored
from distinput.files.whole_files import matching_files, read_file, write_file
from distinput.testing.range_server import RangeServer


def test_a_file_is_written_whole_and_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "a.txt"
    write_file(str(path), "hello")
    assert read_file(str(path).encode()) == read_file(np.array(str(path).encode(), object)) == b"hello"
    write_file(path, b"")
    assert read_file(path) == b""
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


def test_names_are_sorted_and_none_is_no_error(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.csv"):
        write_file(tmp_path / name, name)
    found = matching_files([str(tmp_path / "*.txt"), str(tmp_path / "b*"), str(tmp_path / "q*")])
    assert found.tolist() == [str(tmp_path / name).encode() for name in ("a.txt", "b.txt", "b.txt")]


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.txt"):
        read_file(str(tmp_path / "none.txt"))
    with pytest.raises(InvalidArgumentError, match="read_file: filename must be one path, got"):
        read_file(["a", "b"])
    with pytest.raises(InvalidArgumentError, match="write_file: contents must be bytes or text, got int"):
        write_file(str(tmp_path / "a.txt"), 3)


@pytest.mark.parametrize(
    "file_system, package", [pytest.param(None, "aiohttp", marks=pytest.mark.needs("aiohttp")), ("obstore", "obstore")]
)
def test_a_small_remote_file_takes_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: str | None, package: str
) -> None:
    pytest.importorskip(package)
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    sizes = {"empty": 0, "small": 50_000, "large": (5 << 20) + 7}
    data = {name: np.random.default_rng(size).bytes(size) for name, size in sizes.items()}
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
    with RangeServer(tmp_path) as server:
        if file_system is not None:
            stored([f"{server.url}/small"], {"client_options": {"allow_http": True}}, file_system)
        for name, content in data.items():
            server.reset()
            assert read_file(f"{server.url}/{name}") == content
            if name == "small":
                assert server.requests == [("small", 0, 50_000)]
            assert server.sent == len(content)
        with pytest.raises(NotFoundError, match="none"):
            read_file(f"{server.url}/none")


def test_a_folder_of_a_store_is_no_empty_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = pytest.importorskip("obstore.store")
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    mounts.mount("lake://", stores.MemoryStore())
    write_file("lake://folder/a", "hello")
    write_file("lake://folder/empty", "")
    assert (read_file("lake://folder/a"), read_file("lake://folder/empty")) == (b"hello", b"")
    with pytest.raises(InvalidArgumentError, match="lake://folder: is a folder; name it 'lake://folder/' to read"):
        read_file("lake://folder")
