# SPDX-License-Identifier: Apache-2.0
"""What a folder says of itself is about files in it: no names, and no links, that lead out of it."""

import os
from pathlib import Path

import pytest

from distinput.errors import DataLossError, FailedPreconditionError, NotFoundError
from distinput.files.folder import check_inside, leads_out, open_inside, plain_name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    (made / "a").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "made too").write_text("outside")
    return made


@pytest.mark.parametrize("name", ["a", "a b", ".hidden", "...", "a.b", "ä", "a::b", "-", "~"])
def test_names_in_the_folder(name: str) -> None:
    assert plain_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "/a", "a/b", "a\\b", "a\0", "\ud800", None, 3, ["a"], b"a"], ids=repr
)
def test_what_is_no_name_in_the_folder(name: object) -> None:
    with pytest.raises(ValueError, match="is not the name of a file in this folder"):
        plain_name(name)


@pytest.mark.parametrize("to", ["../secret", "..", "../made too", "../made/../secret", "/etc/hostname", "../nothing"])
def test_links_that_lead_out(folder: Path, to: str) -> None:
    os.symlink(to, folder / "link")
    assert leads_out(str(folder / "link"))
    check_inside(str(folder), ["a"])
    with pytest.raises(FailedPreconditionError, match=r"link: is a symbolic link out of its folder, to .*put a copy"):
        check_inside(str(folder), ["a", "link"])
    with pytest.raises(FailedPreconditionError, match="link: is a symbolic link out of its folder"):
        open_inside(str(folder), "link")


def test_links_that_stay(folder: Path, tmp_path: Path) -> None:
    os.symlink("a", folder / "link")
    os.symlink(folder, tmp_path / "same")
    for path in (folder, tmp_path / "same", f"file://{folder}"):
        check_inside(str(path), ["a", "link"])
        with open_inside(str(path), "link") as file:
            assert file.read() == b"inside"
    assert not leads_out(str(folder / "a"))
    assert not leads_out("s3://bucket/a")


def test_in_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    os.symlink("../secret", "link")
    os.symlink("a", "stays")
    assert leads_out("link")
    assert not leads_out("stays")
    check_inside("", ["a", "stays"])


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(DataLossError, match="pipe: is a pipe or a device, and must be a file"):
        open_inside(str(folder), "pipe")
    with pytest.raises(NotFoundError, match="nothing"):
        open_inside(str(folder), "nothing")
