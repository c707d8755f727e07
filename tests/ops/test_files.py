# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

import distinput as di
from distinput.errors import NotFoundError
from distinput.files.manifest import FileTable
from distinput.ops.reader import FileNames
from distinput.testing import check_restart, check_spec


def listed(folder: Path, *names: str) -> FileTable:
    for name in names:
        (folder / name).write_bytes(name.encode())
    return FileTable.of([str(folder / name) for name in names])


def test_the_names_come_in_the_order_of_the_table(tmp_path: Path) -> None:
    dataset = di.data.Dataset(FileNames.of(listed(tmp_path, "b", "a")))
    assert [Path(name.decode()).name for name in dataset] == ["b", "a"]
    assert dataset.element_spec == di.TensorSpec([], "string")
    assert dataset.cardinality() == 2


def test_it_keeps_the_contract_of_an_op(tmp_path: Path) -> None:
    dataset = di.data.Dataset(FileNames.of(listed(tmp_path, "a", "b", "c")))
    check_restart(dataset)
    check_spec(dataset)


def test_the_names_are_those_of_the_table_even_where_a_file_has_gone(tmp_path: Path) -> None:
    node = FileNames.of(listed(tmp_path, "a", "b"))
    (tmp_path / "b").unlink()
    assert len(list(di.data.Dataset(node))) == 2
    with pytest.raises(NotFoundError):
        FileTable.of([str(tmp_path / "b")])
