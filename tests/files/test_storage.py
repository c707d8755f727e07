# SPDX-License-Identifier: Apache-2.0
"""`storage_options=` and `filesystem=`: names become URLs, what opens them is mounted, and nothing tells a secret."""

import inspect
import pickle
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.fs
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.files import mounts
from distinput.files.mounts import Storage, stored

SECRET = "a word that nobody may see"


@pytest.fixture(autouse=True)
def _none_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", {})


@pytest.fixture
def url() -> str:
    fsspec.filesystem("memory").pipe({"/stored/a.txt": b"one\ntwo\nthree\n", "/stored/b.txt": b"four\n"})
    return "memory://stored/a.txt"


def prefixes(storage: Storage | None) -> list[str]:
    return [] if storage is None else [each.prefix for each in storage.mounts]


def test_without_either_names_stay_and_nothing_is_mounted() -> None:
    assert stored(["a", "s3://b/c"], None, None) == (["a", "s3://b/c"], None)


@pytest.mark.parametrize(
    "name, prefix",
    [
        ("s3://bucket/folder/a", "s3://bucket/"),
        ("https://host:1/a?b", "https://host:1/"),
        ("zip://a.txt::s3://bucket/a.zip", "zip://a.txt::s3://bucket/a.zip"),
        ("simplecache::s3://bucket/a-{0..3}", "simplecache::s3://bucket/a-"),
    ],
)
def test_options_are_for_the_bucket_that_a_url_names(name: str, prefix: str) -> None:
    names, storage = stored([name, name], {"key": "k"}, None)
    assert names == [name, name]
    assert prefixes(storage) == [prefix]


@pytest.mark.parametrize(
    "system, name, url, inside",
    [
        (MemoryFileSystem(), "/a/b", "memory://a/b", "/a/b"),
        (MemoryFileSystem(), "memory://a/b", "memory://a/b", "/a/b"),
        (pyarrow.fs.SubTreeFileSystem("/tmp", pyarrow.fs.LocalFileSystem()), "a/b", "subtree://a/b", "a/b"),
    ],
)
def test_names_inside_a_file_system_become_urls(system: Any, name: str, url: str, inside: str) -> None:
    names, storage = stored([name], None, system)
    assert names == [url]
    assert storage is not None
    assert mounts.mounted(url).opened(url)[1] == inside  # type: ignore[union-attr]


@pytest.mark.parametrize("system", [fsspec.filesystem("file"), pyarrow.fs.LocalFileSystem()])
def test_names_in_the_local_file_system_are_paths(system: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    assert di.data.TextLineDataset(str(tmp_path / "a.txt"), filesystem=system).to_list() == [b"one"]
    with pytest.raises(
        InvalidArgumentError, match="'s3://a/b' is not in the file system that is given, which is the local"
    ):
        di.data.TextLineDataset("s3://a/b", filesystem=system)


def test_every_constructor_takes_them(url: str) -> None:
    options = {"storage_options": {"skip_instance_cache": True}}
    lines = [b"one", b"two", b"three"]
    assert di.data.TextLineDataset(url, **options).to_list() == lines  # type: ignore[arg-type]
    assert di.data.FileDataset(url, "text", **options).to_list() == lines
    assert di.data.FixedLengthRecordDataset(url, 7, **options).to_list() == [b"one\ntwo", b"\nthree\n"]  # type: ignore[arg-type]
    names = di.data.Dataset.list_files("memory://stored/*", shuffle=False, **options)  # type: ignore[arg-type]
    assert names.to_list() == [url.encode(), b"memory://stored/b.txt"]
    assert (
        di.data.TextLineDataset("stored/a.txt", num_parallel_reads=2, filesystem=MemoryFileSystem()).to_list() == lines
    )
    for kind in ("TFRecordDataset", "ParquetDataset", "ArrowDataset", "NpyDataset"):
        assert getattr(di.data, kind)(url, **options)


def test_no_plan_state_or_message_has_a_secret(url: str) -> None:
    lines = di.data.TextLineDataset(url, storage_options={"skip_instance_cache": True, "token": SECRET})
    iterator = iter(lines)
    next(iterator)
    with pytest.raises(InvalidArgumentError) as error:
        di.data.TextLineDataset(url, storage_options={"token": SECRET + "!"})
    found = [lines.explain(), iterator.state(), lines.node, lines.node.input, error.value, mounts._MOUNTS]
    assert SECRET not in "".join([str(each) + repr(each) for each in found])


def test_the_state_is_that_without_options(url: str) -> None:
    plain, given = (
        di.data.TextLineDataset(url),
        di.data.TextLineDataset(url, storage_options={"skip_instance_cache": True}),
    )
    iterator = iter(given)
    next(iterator)
    assert list(plain.restore(iterator.state())) == [b"two", b"three"]


def test_what_opens_files_goes_where_the_dataset_goes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = pickle.dumps(di.data.TextLineDataset("stored/a.txt", filesystem=MemoryFileSystem()))
    files = pickle.dumps(di.data.Dataset.list_files("stored/*", filesystem=MemoryFileSystem()))
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    assert pickle.loads(sent).to_list() == [b"one", b"two", b"three"]
    assert list(mounts._MOUNTS) == ["memory://"]
    assert sorted(pickle.loads(files).to_list()) == [url.encode(), b"memory://stored/b.txt"]


def test_a_bucket_is_opened_in_one_way(url: str) -> None:
    for _ in range(2):
        di.data.TextLineDataset(url, storage_options={"skip_instance_cache": True})
    with pytest.raises(InvalidArgumentError, match="memory://stored/ is opened with another file system or"):
        di.data.TextLineDataset(url, storage_options={"other": True})
    di.io.unmount("memory://stored/")
    di.data.TextLineDataset(url, storage_options={"skip_instance_cache": False})


def test_what_contradicts_itself_is_refused(url: str) -> None:
    names = di.data.Dataset.list_files(url)
    with pytest.raises(InvalidArgumentError, match=r"filenames is a dataset, .* give them to list_files"):
        di.data.TextLineDataset(names, storage_options={})
    with pytest.raises(InvalidArgumentError, match="give either filesystem or storage_options"):
        di.data.TextLineDataset(url, storage_options={"a": 1}, filesystem=MemoryFileSystem())
    with pytest.raises(InvalidArgumentError, match=r"storage_options need URLs, got the local path 'a\.txt'"):
        di.data.TextLineDataset("a.txt", storage_options={"a": 1})
    with pytest.raises(InvalidArgumentError, match="is a pattern in a chain; mount"):
        di.data.TextLineDataset("zip://*.txt::memory://a.zip", storage_options={"a": 1})
    with pytest.raises(InvalidArgumentError, match=r"'s3://b/c' is not in the file system .* begin with 'memory://'"):
        di.data.TextLineDataset("s3://b/c", filesystem=MemoryFileSystem())
    with pytest.raises(InvalidArgumentError, match="must be a file system or 'obstore', got 's3'"):
        di.data.TextLineDataset(url, filesystem="s3")
    with pytest.raises(TypeError, match="storage_options must be a dict, got a list"):
        di.data.TextLineDataset(url, storage_options=[1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"one of fsspec or pyarrow\.fs, or a store of obstore, got a int"):
        di.data.TextLineDataset(url, filesystem=3)


def test_no_constructor_of_files_is_without_them() -> None:
    named = [getattr(di.data, name) for name in di.data.__all__]
    makers = [each for each in named if inspect.isclass(each) and issubclass(each, di.data.Dataset)]
    taken = {each.__name__: set(inspect.signature(each.__init__).parameters) for each in makers}
    lacking = [
        name
        for name, found in taken.items()
        if found & {"filenames", "directory"} and not {"storage_options", "filesystem"} <= found
    ]
    assert lacking == []
