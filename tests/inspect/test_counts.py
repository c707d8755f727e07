# SPDX-License-Identifier: Apache-2.0
"""Counts are right in every format, cut in any way."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError
from distinput.inspect.counts import count
from tests.depth import cases
from tests.inspect import kept


@settings(max_examples=cases(3, 100))
@given(rows=kept.rows, shard=st.integers(1, 20))
def test_counts_are_right_in_every_format(rows: list[Any], shard: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for format in kept.TABLES:
            paths = kept.write(Path(name, format), rows, format, shard_rows=shard)
            found = count(str(Path(name, format)))
            assert [each.file for each in found] == paths
            assert [each.records for each in found] == [
                min(shard, len(rows) - first) for first in range(0, len(rows), shard)
            ]
            assert [each.bytes for each in found] == [Path(path).stat().st_size for path in paths]


def test_whether_files_are_read_for_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(4), y=np.arange(4))
    (tmp_path / "a.txt").write_text("one\ntwo")
    (tmp_path / "empty.csv").write_text("")
    found = [count(str(tmp_path / name))[0] for name in ("a.npz", "a.txt", "empty.csv")]
    assert [(each.records, each.read) for each in found] == [(4, False), (2, True), (0, True)]


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with di.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"one")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataLossError, match=r"a\.tfrecord"):
        count(str(path))
