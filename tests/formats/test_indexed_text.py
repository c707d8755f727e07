# SPDX-License-Identifier: Apache-2.0
"""Text files with an index."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError
from distinput.formats.text import IndexedTextLines, TextLines
from tests.formats.reading import check_positions, records, small_pieces

FORMAT = IndexedTextLines()


def written(path: str, content: bytes) -> str:
    with di.files.sink.Sink(path) as sink:
        sink.write(content)
    return path


@given(st.text("ab\n\r", max_size=60), st.integers(1, 40), st.data())
def test_any_lines_are_counted_and_fetched(text: str, chunk: int, data: st.DataObject) -> None:
    path = written("memory://indexed/any.txt", text.encode())
    want = records(TextLines(), path)
    with small_pieces(chunk):
        check_positions(FORMAT, path, want)
    assert FORMAT.rows(path) == len(want)
    wanted = data.draw(st.lists(st.integers(0, len(want) - 1), max_size=20)) if want else []
    assert list(FORMAT.fetch(path, np.array(wanted, np.int64)).elements()) == [want[row] for row in wanted]
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(want))] * 2)))
    assert [e for block, _ in FORMAT.read_fragment(FORMAT.part(path, low, high)) for e in block.elements()] == want[
        low:high
    ]


def test_a_file_that_changed_has_another_index(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for lines in (["one", "two"], ["one", "2", "3"], []):
        path.write_text("\n".join(lines))
        assert FORMAT.rows(str(path)) == len(lines)
        assert di.data.TextLineDataset(str(path), index=True).to_list() == [line.encode() for line in lines]


@pytest.mark.parametrize("content", [b"a\nbc\n", b"ab\n\n\n", b"abcde", b"abcd\n"])
def test_a_file_that_changes_behind_its_index_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\nd\n"[: len(content)])
    offsets = FORMAT.index(str(path))
    path.write_bytes(content)
    monkeypatch.setattr(IndexedTextLines, "index", lambda self, path: offsets)
    with suppress(DataLossError):  # what is read from the beginning is right, whatever the index says
        assert records(FORMAT, path) == content.splitlines()
    with pytest.raises(DataLossError, match=r"a\.txt: record . is not where the index says"):
        FORMAT.fetch(str(path), np.array([0]))
