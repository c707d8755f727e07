# SPDX-License-Identifier: Apache-2.0
"""Ranges of files as arrays."""

from pathlib import Path

import numpy as np
import pytest

from distinput.files.manifest import FileTable
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import END, Fragments


@pytest.fixture
def files(tmp_path: Path) -> FileTable:
    for name in "ab":
        (tmp_path / name).write_bytes(bytes(range(20)))
    return FileTable.of([str(tmp_path / name) for name in "ab"])


def some(files: FileTable, rows: list[int], start: int = 0) -> Fragments:
    return Fragments(
        files, np.array([0, 1]), np.array([start, 2]), np.array([3, END]), np.array(rows), np.array([12, 12])
    )


def test_a_total_needs_every_part(files: FileTable) -> None:
    assert some(files, [3, 3]).total_rows == 6
    assert some(files, [3, -1]).total_rows is None


def test_parts_as_plain_values(files: FileTable) -> None:
    first, second = some(files, [3, -1]).table()
    assert first == {"file": files.path(0), "start": 0, "stop": 3, "rows": 3, "bytes": 12}
    assert second == {"file": files.path(1), "start": 2, "stop": None, "rows": None, "bytes": 12}


def test_a_digest_tells_other_parts_apart(files: FileTable) -> None:
    assert some(files, [3, 3]).digest == some(files, [3, 3]).digest != some(files, [2, 3], start=1).digest
    assert str(some(files, [3, 3])).startswith("2 parts of 2 files #")


def test_a_part_is_read_by_its_format(files: FileTable) -> None:
    part = some(files, [3, 3]).fragment(0, FixedLengthRecords(4))
    assert part.path == files.path(0)
