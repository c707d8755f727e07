# SPDX-License-Identifier: Apache-2.0
"""Many files as arrays are what a list of their paths is."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.column import Strings
from distinput.errors import DataLossError, NotFoundError
from distinput.files.manifest import FileTable
from distinput.files.source import version_of

NAMES = st.lists(st.text(min_size=1, max_size=5).filter(lambda name: name.isprintable()), min_size=1, max_size=8)


@given(NAMES, st.data())
def test_files_are_taken_by_their_numbers(names: list[str], data: st.DataObject) -> None:
    table = FileTable.of(names, range(len(names)))
    numbers = np.array(data.draw(st.lists(st.integers(0, len(names) - 1), max_size=8)), np.int64)
    taken = table.take(numbers)
    assert [taken.path(index) for index in range(len(taken))] == [names[number] for number in numbers]
    assert taken.sizes.tolist() == numbers.tolist()
    assert len(taken.names.data) == sum(len(names[number].encode()) for number in numbers)
    assert taken.rows is taken.stamps is None


@given(
    st.sets(st.binary(min_size=1, max_size=3).filter(lambda b: b.isascii()), max_size=9),
    st.binary(max_size=3).filter(bytes.isascii),
)
def test_a_path_is_found_among_names_in_order(names: set[bytes], wanted: bytes) -> None:
    in_order = [name.decode() for name in sorted(names)]
    table = FileTable.of(in_order, [0] * len(in_order))
    expected = in_order.index(wanted.decode()) if wanted in names else -1
    assert table.index(wanted.decode()) == expected


def test_sizes_are_looked_up(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).write_bytes(b"x" * number)
    assert FileTable.of([str(tmp_path / str(number)) for number in range(3)]).sizes.tolist() == [0, 1, 2]
    with pytest.raises(NotFoundError):
        FileTable.of([str(tmp_path / "gone")])


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    Path(path).write_bytes(b"abc")
    table = FileTable(
        Strings.of([path.encode()]), np.array([3]), np.array([1]), Strings.of([version_of(path).encode()])
    )
    for each in (table, table.take(np.array([0]))):
        each.check(0)
        each.check(-1)  # none of these
    Path(path).write_bytes(b"abcd")
    with pytest.raises(DataLossError, match="has changed since the manifest was written"):
        table.check(0)
    os.unlink(path)
    with pytest.raises(NotFoundError):
        table.check(0)
    FileTable.of([path], [3]).check(0)  # of which nobody knows the version
