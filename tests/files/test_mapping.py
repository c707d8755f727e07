# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from distinput.errors import NotFoundError
from distinput.files.whole_files import mapped


def test_the_bytes_of_a_file_without_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"hello")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    whole = mapped(str(path))
    assert whole.tobytes() == b"hello"
    assert not whole.flags.writeable
    assert mapped(str(path)) is whole
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before  # what other tests left may be closed meanwhile


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert mapped(str(tmp_path / "a")).tobytes() == b""


def test_another_file_in_its_place_is_mapped_anew_and_the_old_one_stays(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"old")
    old = mapped(str(path))
    other.write_bytes(b"new")
    other.replace(path)
    assert mapped(str(path)).tobytes() == b"new"
    assert old.tobytes() == b"old"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="none; No such file or directory"):
        mapped(str(tmp_path / "none"))
