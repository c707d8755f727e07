# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels are kept under names that tell their source, in folders that are the user's own."""

import sys
from pathlib import Path

import pytest

from distinput.kernels import cache
from distinput.kernels.checksums import scan_records
from distinput.kernels.kernel import INLINED, KERNELS


def test_a_name_tells_the_kernel_the_python_and_the_source() -> None:
    name, folders = cache.place("scan_records", scan_records.source, INLINED)
    assert name.startswith(f"scan_records.py{sys.version_info.major}{sys.version_info.minor}-")
    assert len(name.rpartition("-")[2]) == 16
    assert folders
    assert name == cache.place("scan_records", scan_records.source, INLINED)[0]


def test_all_kernels_have_names_of_their_own() -> None:
    assert len({cache.place(name, each.source, INLINED)[0] for name, each in KERNELS.items()}) == len(KERNELS)


def test_the_folder_that_is_named_is_the_only_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache.place("scan_records", scan_records.source, INLINED)[1] == [str(tmp_path / "distinput")]


@pytest.mark.parametrize(
    "platform, variable, chosen, expected",
    [
        ("linux", "XDG_CACHE_HOME", None, "home/.cache/distinput/kernels"),
        ("linux", "XDG_CACHE_HOME", "elsewhere", "elsewhere/distinput/kernels"),
        ("darwin", "XDG_CACHE_HOME", "elsewhere", "home/Library/Caches/distinput/kernels"),
        ("win32", "LOCALAPPDATA", None, "home/AppData/Local/distinput/kernels"),
        ("win32", "LOCALAPPDATA", "elsewhere", "elsewhere/distinput/kernels"),
    ],
)
def test_else_it_is_beside_the_source_or_the_users(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, chosen: str | None, expected: str
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", "home")
    monkeypatch.delenv(variable, raising=False)
    if chosen is not None:
        monkeypatch.setenv(variable, chosen)
    beside, users = cache.place("scan_records", scan_records.source, INLINED)[1]
    assert Path(beside) == Path(cache.__file__).parent / "__pycache__"
    assert Path(users) == Path(expected)


def test_a_user_without_a_home_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert len(cache.place("scan_records", scan_records.source, INLINED)[1]) == 1


def test_a_source_that_cannot_be_read_is_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(file: str) -> str:
        raise OSError(file)

    monkeypatch.setattr(cache, "_digest", unreadable)
    assert cache.place("scan_records", scan_records.source, INLINED)[1] == []


def test_a_kernel_is_held_by_the_first_folder_that_has_it(tmp_path: Path) -> None:
    folders = [str(tmp_path / "gone"), str(tmp_path / "a"), str(tmp_path / "b")]
    for folder in folders[1:]:
        Path(folder).mkdir()
    (tmp_path / "a" / "kernel.py311-0.nbc").touch()
    assert not cache.holds("kernel.py311-1", folders)
    (tmp_path / "b" / "kernel.py311-1-x86.nbc.1234").touch()  # in the making
    assert not cache.holds("kernel.py311-1", folders)
    (tmp_path / "b" / "kernel.py311-1-x86.nbc").touch()
    assert cache.holds("kernel.py311-1", folders)
