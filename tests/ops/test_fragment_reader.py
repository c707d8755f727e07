# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import Block
from distinput.errors import NotFoundError
from distinput.files.manifest import FileTable
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import END, Fragments
from distinput.formats.parquet import Parquet
from distinput.ops.fragment_reader import FragmentNumbers, FragmentReader
from distinput.ops.slices import rows_node
from distinput.rewrite.rules import rewrite
from distinput.testing import check_restart, check_spec
from distinput.values.nest import LEAF


def fragments(folder: Path) -> Fragments:
    """Records 1 and 2 of a file 0, 1, 2, 3; all of a file 10, 11; and record 3 of the first one."""
    (folder / "a").write_bytes(bytes([0, 1, 2, 3]))
    (folder / "b").write_bytes(bytes([10, 11]))
    table = FileTable.of([str(folder / "a"), str(folder / "b")])
    parts = [(0, 1, 3), (1, 0, END), (0, 3, END)]
    file, start, stop = (np.array(column, np.int64) for column in zip(*parts, strict=True))
    return Fragments(table, file, start, stop, np.full(3, -1), np.ones(3, np.int64))


def reader(parts: Fragments, numbers: Any = None) -> FragmentReader:
    return FragmentReader(numbers or FragmentNumbers.of(parts), parts, FixedLengthRecords(1))


def values(node: FragmentReader) -> list[int]:
    return [record[0] for record in di.data.Dataset(node)]


def test_the_records_of_each_fragment_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    parts = fragments(tmp_path)
    assert values(reader(parts)) == [1, 2, 10, 11, 3]
    turned = rows_node(Block.of_elements(LEAF, [np.int64(n) for n in (2, 1)]))
    assert values(reader(parts, turned)) == [3, 10, 11]


def test_rows_are_counted_where_the_format_can(tmp_path: Path) -> None:
    assert reader(fragments(tmp_path)).rows.tolist() == [2, 2, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("row", range(6))
def test_every_row_is_reached_at_once(tmp_path: Path, row: int) -> None:
    node = reader(fragments(tmp_path))
    state = node.start_at(row, 0)
    assert state is not None
    assert [record[0] for record in di.data.Dataset(node).skip(row)] == [1, 2, 10, 11, 3][row:]


def test_it_keeps_the_contract_of_an_op(tmp_path: Path) -> None:
    dataset = di.data.Dataset(reader(fragments(tmp_path)))
    check_restart(dataset)
    check_spec(dataset)


def test_a_file_that_has_gone_is_named(tmp_path: Path) -> None:
    node = reader(fragments(tmp_path))
    (tmp_path / "b").unlink()
    with pytest.raises(NotFoundError, match="b"):
        values(node)


def test_numbers_are_printed_as_the_parts_they_stand_for(tmp_path: Path) -> None:
    assert str(FragmentNumbers.of(fragments(tmp_path))).startswith("fragments(parts=3 parts of 2 files #")


def test_columns_that_nobody_wants_are_not_read(tmp_path: Path) -> None:
    di.io.write_parquet(str(tmp_path / "a.parquet"), {"x": np.arange(4), "y": np.arange(4)})
    table = FileTable.of([str(tmp_path / "a.parquet")])
    one = [np.array([each], np.int64) for each in (0, 1, 3)]
    parts = Fragments(table, *one, np.full(1, 2), np.ones(1, np.int64))
    node = FragmentReader(FragmentNumbers.of(parts), parts, Parquet())
    chosen = di.data.Dataset(node).select(["y"])
    assert chosen.to_list() == [{"y": 1}, {"y": 2}]
    running, fired = rewrite(chosen.node)
    assert (str(fired), running.format.columns) == ("['select_in_files']", ("y",))
