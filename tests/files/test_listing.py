# SPDX-License-Identifier: Apache-2.0
"""A folder of a store that cannot be listed is an error: its files are not silently left out."""

from typing import Any

import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import distinput as di
from distinput.files import mounts
from distinput.files.paths import below, globbed

NAMES = ["a.txt", "b/c.txt", "b/d.txt", "b/e/f.txt", "g/[h].txt", "b/c.csv"]
PATTERNS = [
    "*.txt",
    "*/*.txt",
    "**/*.txt",
    "**",
    "b/*",
    "b/?.txt",
    "b/[cd].txt",
    "x/*.txt",
    "b/**/f.txt",
    "*",
    "b/e/f*",
]


class Failing(MemoryFileSystem):  # type: ignore[misc]
    """Lists all folders but one."""

    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012 - fsspec's own is shared by all, too
    pseudo_dirs = [""]  # noqa: RUF012
    fails = "/lake/b"
    find = AbstractFileSystem.find  # that of most file systems; the one of MemoryFileSystem lists no folder

    def ls(self, path: str, detail: bool = True, **named: Any) -> Any:
        if self.fails and self._strip_protocol(path) == self.fails:
            raise OSError("the server answers 503 Slow Down")
        return super().ls(path, detail, **named)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Failing:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    made = Failing()
    for name in NAMES:
        made.pipe(f"/lake/{name}", b"line\n")
    return made


def test_what_is_found_is_what_fsspec_finds(store: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failing, "fails", None)
    for pattern in PATTERNS:
        assert globbed(store, f"/lake/{pattern}") == sorted(store.glob(f"/lake/{pattern}")), pattern
    for folder in ("/lake", "/lake/b", "/lake/none", "/lake/a.txt", ""):
        assert below(store, folder) == sorted(store.find(folder)), folder


@pytest.mark.parametrize("name", ["lake/**/*.txt", "lake/b/*.txt", "lake/*/*.txt", "lake/"])
def test_a_folder_that_cannot_be_listed_is_an_error(store: Failing, name: str) -> None:
    di.io.mount("flaky://", store)
    with pytest.raises(OSError, match="503 Slow Down"):
        di.data.TextLineDataset(f"flaky://{name}")


def test_folders_that_are_not_asked_for_do_not_matter(store: Failing) -> None:
    di.io.mount("flaky://", store)
    assert di.data.TextLineDataset("flaky://lake/g/*.txt").to_list() == [b"line"]
