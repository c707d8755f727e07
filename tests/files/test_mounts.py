# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.fs
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.files import mounts
from distinput.files.mounts import mount, mounted, unmount


@pytest.fixture(autouse=True)
def _none_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", {})


@pytest.fixture(params=["pyarrow", "pyarrow subtree", "fsspec local", "fsspec memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder in a file system that is mounted."""
    local = pyarrow.fs.LocalFileSystem()
    systems: dict[str, Any] = {
        "pyarrow": local,
        "pyarrow subtree": pyarrow.fs.SubTreeFileSystem(str(tmp_path), local),
        "fsspec local": fsspec.filesystem("file"),
        "fsspec memory": fsspec.filesystem("memory"),
    }
    mount("lake://", systems[request.param])
    (tmp_path / "made").mkdir()
    inside = f"{tmp_path}/made" if request.param in ("pyarrow", "fsspec local") else f"made-{tmp_path.name}"
    if request.param == "pyarrow subtree":
        inside = "made"
    return f"lake://{inside}"


def test_every_kind_of_file_is_written_listed_read_and_restored(folder: str) -> None:
    for n in range(3):
        di.io.write_parquet(f"{folder}/{n}.parquet", {"x": np.arange(10 * n, 10 * n + 10)})
        with di.io.TFRecordWriter(f"{folder}/{n}.tfrecord") as writer:
            writer.write(b"%d" % n)
    tables = di.data.Dataset.list_files(f"{folder}/*.parquet", shuffle=False)
    assert tables.to_list() == [f"{folder}/{n}.parquet".encode() for n in range(3)]
    assert di.data.Dataset.list_files(f"{folder}/{{0..2}}.parquet", shuffle=False).to_list() == tables.to_list()
    rows = di.data.ParquetDataset(tables)
    assert [row["x"] for row in rows] == list(range(30))
    assert rows.cardinality() == 30
    iterator = iter(rows)
    for _ in range(13):
        next(iterator)
    assert next(iter(rows.restore(iterator.state())))["x"] == 13
    records = di.data.TFRecordDataset([f"{folder}/{n}.tfrecord" for n in range(3)])
    assert records.to_list() == [b"0", b"1", b"2"]


def test_the_longest_prefix_counts() -> None:
    memory = fsspec.filesystem("memory")
    mount("lake://", memory)
    mount("lake://secret/", storage_options={"key": "k"})
    assert mounted("lake://a").system is memory  # type: ignore[union-attr]
    assert mounted("lake://secret/a").options == (("key", "k"),)  # type: ignore[union-attr]
    assert mounted("pond://a") is None
    unmount("lake://secret/")
    assert mounted("lake://secret/a").system is memory  # type: ignore[union-attr]


def test_storage_options_reach_the_file_system_that_the_url_names(tmp_path: Path) -> None:
    with di.io.TFRecordWriter("memory://mounts/a.tfrecord") as writer:
        writer.write(b"a")
    mount("simplecache::memory://mounts", storage_options={"simplecache": {"cache_storage": str(tmp_path / "cache")}})
    assert di.data.TFRecordDataset("simplecache::memory://mounts/a.tfrecord").to_list() == [b"a"]
    assert os.listdir(tmp_path / "cache")


def test_a_state_has_names_and_no_credentials() -> None:
    mount("lake://", fsspec.filesystem("memory"))
    mount("memory://", storage_options={"skip_instance_cache": True})
    with di.io.TFRecordWriter("lake://state/a.tfrecord") as writer:
        writer.write(b"a")
        writer.write(b"b")
    iterator = iter(di.data.TFRecordDataset("lake://state/a.tfrecord"))
    next(iterator)
    assert "skip_instance_cache" not in str(iterator.state())


def test_what_cannot_be_mounted_is_refused() -> None:
    memory = fsspec.filesystem("memory")
    for prefix in ("data/", "file://", "local://x", "://"):
        with pytest.raises(ValueError, match="must begin with a protocol that is not file"):
            mount(prefix, memory)
    with pytest.raises(ValueError, match="either file_system or storage_options"):
        mount("lake://")
    with pytest.raises(ValueError, match="either file_system or storage_options"):
        mount("lake://", memory, storage_options={})
    with pytest.raises(TypeError, match=r"of fsspec or of pyarrow\.fs, or a store of obstore, got a dict"):
        mount("lake://", {})
    with pytest.raises(ValueError, match="nothing is mounted at 'lake://'; there is nothing at all"):
        unmount("lake://")


def test_what_is_not_mounted_names_the_cure() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Protocol not known: lake; distinput\.io\.mount opens such URLs"):
        di.data.TextLineDataset("lake://a.txt").to_list()
