# SPDX-License-Identifier: Apache-2.0
"""Manifests as datasets; what is in them is tested in tests/files/test_manifest.py."""

from pathlib import Path

import pytest

import distinput as di
from distinput.errors import DataLossError, NotFoundError

X = di.data.experimental


def test_a_manifest_is_read_as_the_names_that_were_listed(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    path = str(tmp_path / "files.json")
    made = X.write_manifest(path, str(tmp_path / "*.txt"), di.data.TextLineDataset)
    assert made.to_list() == X.read_manifest(path).to_list() == [str(tmp_path / n).encode() for n in ("a.txt", "b.txt")]
    assert di.data.TextLineDataset(X.read_manifest(path)).to_list() == [b"a.txt", b"b.txt"]


def test_a_file_that_changed_since_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    path = str(tmp_path / "files.json")
    X.write_manifest(path, str(tmp_path / "*.txt"))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(DataLossError):
        di.data.TextLineDataset(X.read_manifest(path)).to_list()


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        X.read_manifest(str(tmp_path / "none.json"))
