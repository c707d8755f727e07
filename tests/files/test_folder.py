# SPDX-License-Identifier: Apache-2.0
"""Folders, local and behind URLs."""

from pathlib import Path

import pytest

from distinput.files.folder import join_path, make_folder, names_in, remove_file, split_path
from distinput.files.sink import Sink


@pytest.mark.parametrize("url", [False, True])
def test_a_folder_is_made_listed_and_emptied(tmp_path: Path, url: bool) -> None:
    folder = "memory://folder/of/tests" if url else str(tmp_path / "a" / "b")
    assert names_in(folder) == []
    make_folder(folder)
    make_folder(folder)
    for name in ("b.txt", "a.txt"):
        with Sink(join_path(folder, name), durable=True) as sink:
            sink.write(b"x")
    with Sink(join_path(folder, "c.txt")):
        assert names_in(folder) == ["a.txt", "b.txt"], "an unfinished file is no file"
    for name in ("a.txt", "b.txt", "c.txt", "nothing"):
        remove_file(join_path(folder, name))
    assert names_in(folder) == []


def test_split_is_the_inverse_of_join() -> None:
    for path in ("a", "a/b", "/a", "memory://a/b", "s3://bucket/x/y"):
        assert join_path(*split_path(path)) == path
