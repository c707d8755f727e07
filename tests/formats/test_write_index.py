# SPDX-License-Identifier: Apache-2.0
"""Writing indices ahead."""

from pathlib import Path

import pytest

import distinput as di
from distinput.errors import NotFoundError
from distinput.formats.text import TextLines


def test_indices_that_were_written_ahead_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_text("line\n" * number)
    assert di.io.write_index(paths, "text", folder=str(tmp_path / "indices")) == 10
    monkeypatch.setattr(TextLines, "find", lambda *_: pytest.fail("a file was read"))
    assert len(di.data.TextLineDataset(paths, index=str(tmp_path / "indices"))) == 10


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.txt"):
        di.io.write_index([tmp_path / "none.txt"], "text")
