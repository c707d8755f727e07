# SPDX-License-Identifier: Apache-2.0
"""A folder is one's own if nobody else can write to it, or put another one in its place."""

import os
from pathlib import Path

import pytest

from distinput.kernels import cache as module
from distinput.kernels.cache import is_own, is_own_file

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other rules")

STRANGER = 12345


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "cache"
    made.mkdir(parents=True)
    made.chmod(0o700)
    made.parent.chmod(0o755)
    return made


def test_ones_own(folder: Path) -> None:
    assert is_own(str(folder))
    assert is_own(str(folder / "not" / "there yet"))
    folder.chmod(0o755)
    assert is_own(str(folder))


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757, 0o702])
def test_open_to_others(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert not is_own(str(folder))
    folder.chmod(0o755)
    assert is_own(str(folder))


@pytest.mark.parametrize("mode, own", [(0o777, False), (0o1777, True), (0o755, True)])
def test_in_a_folder_where_others_may_rename_it(folder: Path, mode: int, own: bool) -> None:
    folder.parent.chmod(mode)
    assert is_own(str(folder)) is own
    assert is_own(str(folder / "not there yet")) is own


def test_through_a_link(folder: Path, tmp_path: Path) -> None:
    os.symlink(folder, tmp_path / "link")
    assert is_own(str(tmp_path / "link"))
    folder.parent.chmod(0o777)
    assert not is_own(str(tmp_path / "link"))


def test_a_link_in_a_folder_that_is_open(folder: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    os.symlink(folder, shared / "link")
    shared.chmod(0o777)
    assert not is_own(str(shared / "link"))


def test_open_to_a_group(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o775)
    monkeypatch.setattr(module, "_is_private", lambda _: False)
    assert not is_own(str(folder))
    monkeypatch.setattr(module, "_is_private", lambda _: True)
    assert is_own(str(folder))


@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give files away")
def test_somebody_elses(folder: Path) -> None:
    file = folder / "file"
    file.write_text("x")
    file.chmod(0o644)
    assert is_own_file(str(file))
    os.chown(file, STRANGER, -1)
    assert not is_own_file(str(file))
    assert is_own_file(str(file), {STRANGER})
    os.chown(folder, STRANGER, -1)
    assert not is_own(str(folder))
    assert is_own(str(folder), {STRANGER})


def test_files_that_others_write(folder: Path) -> None:
    file = folder / "file"
    file.write_text("x")
    os.symlink(file, folder / "link")
    assert is_own_file(str(file))
    assert not is_own_file(str(folder / "link"))
    assert not is_own_file(str(folder / "not there"))
    file.chmod(0o666)
    assert not is_own_file(str(file))
