# SPDX-License-Identifier: Apache-2.0
"""How many records follow a position: counted or read, and up to damage."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.formats import format_named
from distinput.ops.reader import Follows
from tests.lineage.carried import corpus


@given(
    st.sampled_from(["parquet", "text", "tfrecord", "npz"]),
    st.integers(0, 11),
    st.lists(st.integers(1, 30), max_size=3),
)
def test_as_many_as_there_are(kind: str, row: int, asked: list[int]) -> None:
    format = format_named(kind)
    path = corpus(kind, (7, 3, 12)).files[2]
    position = None
    if row:
        position = format.seek(path, row) if format.counts_rows else None
        row = row if position else 0
    follows = Follows(format, path, position)
    for rows in asked:
        assert follows.at_least(rows) == (rows <= 12 - row)
        assert follows.rows <= 12 - row


def test_a_damaged_record_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    content = bytearray(Path(corpus("tfrecord", (7, 3, 12)).files[0]).read_bytes())
    content[-6] ^= 1  # the last of seven records
    path.write_bytes(content)
    follows = Follows(format_named("tfrecord"), str(path), None)
    assert [follows.at_least(rows) for rows in (6, 7, 8)] == [True, True, False]


def test_a_file_that_is_gone_has_none(tmp_path: Path) -> None:
    assert not Follows(format_named("text"), str(tmp_path / "gone"), None).at_least(2)
    with pytest.raises(TypeError):
        Follows(format_named("text"))  # type: ignore[call-arg]
