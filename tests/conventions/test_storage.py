# SPDX-License-Identifier: Apache-2.0
"""How files of any store are named and opened; docs/conventions.md lists the lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.fs
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import distinput as di

Dataset = di.data.Dataset


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Six files of two lines, in a folder of a store that has nothing but URLs."""
    name = f"memory://{tmp_path.name}"
    for n in range(6):
        fsspec.filesystem("memory").pipe(f"/{tmp_path.name}/{'deep/' if n > 3 else ''}{n:02d}.txt", b"%d\n-\n" % n)
    return name


def lines(names: Any) -> list[bytes]:
    return [line for line in di.data.TextLineDataset(names) if line != b"-"]


def test_urls_globs_braces_lists_and_manifests(folder: str, tmp_path: Path) -> None:
    def listed(pattern: Any) -> list[bytes]:
        return lines(Dataset.list_files(pattern, shuffle=False))

    assert lines(f"{folder}/00.txt") == [b"0"]
    assert lines([f"{folder}/01.txt", f"{folder}/00.txt"]) == [b"1", b"0"]
    assert listed(f"{folder}/*.txt") == [b"0", b"1", b"2", b"3"]
    assert listed(f"{folder}/0[12].txt") == [b"1", b"2"]
    assert sorted(listed(f"{folder}/**/*.txt")) == [b"%d" % n for n in range(6)]
    assert listed(f"{folder}/{{00..02}}.txt") == [b"0", b"1", b"2"]
    assert listed(f"{folder}/{{00,deep/05}}.txt") == [b"0", b"5"]
    manifest = str(tmp_path / "files.json")
    di.data.experimental.write_manifest(manifest, f"{folder}/*.txt")
    assert lines(di.data.experimental.read_manifest(manifest)) == [b"0", b"1", b"2", b"3"]


def test_options_and_file_systems_are_mounted_not_passed(folder: str) -> None:
    """An argument `fs=` cannot be part of a plan that is printed, compared between workers and saved; a prefix can."""
    own = MemoryFileSystem()
    di.io.mount("store://", own)
    di.io.mount("memory://", storage_options={"skip_instance_cache": True})
    try:
        assert lines(folder.replace("memory://", "store://") + "/00.txt") == lines(f"{folder}/00.txt") == [b"0"]
    finally:
        di.io.unmount("store://")
        di.io.unmount("memory://")
    passed = di.data.TextLineDataset(f"{folder}/00.txt", filesystem=own)
    try:
        assert passed.to_list() == [b"0", b"-"]
        assert repr(own) not in str(passed.explain())
    finally:
        di.io.unmount("memory://")
    with pytest.raises(TypeError, match="fs"):
        di.data.TextLineDataset(f"{folder}/00.txt", fs=own)  # type: ignore[call-arg]


def test_ranges_are_asked_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of a table in a store are fetched by one `cat_ranges`, of the file system that `url_to_fs` finds."""
    asked: list[int] = []

    class Store(MemoryFileSystem):  # type: ignore[misc]
        protocol = "ranged"
        store = MemoryFileSystem.store

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(MemoryFileSystem._strip_protocol(path.replace("ranged://", "memory://")))

        def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
            return bytes(super().cat_file(path, start, end))

        def cat_ranges(self, paths: Any, starts: Any, ends: Any, *rest: Any, **named: Any) -> Any:
            asked.append(len(paths))
            return [self.cat_file(*each) for each in zip(paths, starts, ends, strict=True)]

    fsspec.register_implementation("ranged", Store, clobber=True)
    name = f"{tmp_path.name}/a.parquet"
    di.io.write_parquet(f"memory://{name}", {c: np.arange(50_000.0) for c in "abc"})
    rows = di.data.ParquetDataset(f"ranged://{name}", columns=["a", "c"])
    assert sum(row["c"] for row in rows) == sum(range(50_000))
    assert asked


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[str]:
    di.io.mount("lake://", pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem()))
    yield "lake://"
    di.io.unmount("lake://")


def test_file_systems_of_pyarrow_and_chained_urls(lake: str, folder: str, tmp_path: Path) -> None:
    di.io.write_parquet(f"{lake}a.parquet", {"x": np.arange(4)})
    assert (tmp_path / "a.parquet").exists()
    assert [row["x"] for row in di.data.ParquetDataset(Dataset.list_files(f"{lake}*.parquet"))] == [0, 1, 2, 3]
    assert lines(f"simplecache::{folder}/00.txt") == [b"0"]
    assert lines(Dataset.list_files(f"simplecache::{folder}/0[01].txt", shuffle=False)) == [b"0", b"1"]
