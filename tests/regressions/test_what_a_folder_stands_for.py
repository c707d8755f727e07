# SPDX-License-Identifier: Apache-2.0
"""A folder of a store stands for the files below it, by their whole names; it is never read as an empty file."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

FILES = {"data/x.txt": b"1\n", "data/train/data/x.txt": b"2\n", "data/train/y.txt": b"3\n"}


@pytest.fixture(autouse=True)
def _unmounted() -> Iterator[None]:
    yield
    for prefix in ("dir://", "obstore-memory://", "subtree://"):
        with suppress(ValueError):
            di.io.unmount(prefix)


@pytest.fixture(params=["arrow", "dir", "memory", "obstore"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "obstore":
        obstore = pytest.importorskip("obstore")
        made = obstore.store.MemoryStore()
        for name, content in FILES.items():
            obstore.put(made, name, content)
        return made
    if request.param == "memory":
        fsspec.filesystem("memory").pipe({f"/{tmp_path.name}/{name}": content for name, content in FILES.items()})
        return fsspec.filesystem("dir", path=f"/{tmp_path.name}", fs=fsspec.filesystem("memory"))
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    if request.param == "dir":
        return fsspec.filesystem("dir", path=str(tmp_path), fs=fsspec.filesystem("file"))
    fs = pytest.importorskip("pyarrow.fs")
    return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())


@pytest.mark.parametrize("name", ["data/", "/", ""])
def test_folders_may_have_the_same_name_as_one_above_them(store: Any, name: str) -> None:
    found = di.data.TextLineDataset(name or "/", filesystem=store).to_list()
    assert sorted(found) == [b"1", b"2", b"3"]


def test_a_pattern_of_all_files_does_not_match_folders(store: Any) -> None:
    assert sorted(di.data.TextLineDataset("**", filesystem=store).to_list()) == [b"1", b"2", b"3"]
    assert sorted(di.data.TextLineDataset("data/*", filesystem=store).to_list()) == [b"1"]


def test_a_folder_is_no_empty_file(store: Any) -> None:
    with pytest.raises((InvalidArgumentError, OSError)):
        di.data.TextLineDataset("data", filesystem=store).to_list()


def test_a_folder_of_objects_is_told_from_an_empty_file() -> None:
    obstore = pytest.importorskip("obstore")
    store = obstore.store.MemoryStore()
    obstore.put(store, "a/b.txt", b"1\n")
    obstore.put(store, "empty.txt", b"")
    assert di.data.TextLineDataset("empty.txt", filesystem=store).to_list() == []
    for make in (di.data.TextLineDataset, di.data.TFRecordDataset):
        with pytest.raises(
            InvalidArgumentError, match=r"obstore-memory://a: is a folder; name it 'obstore-memory://a/'"
        ):
            make("a", filesystem=store).to_list()
