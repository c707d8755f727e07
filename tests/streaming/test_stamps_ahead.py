# SPDX-License-Identifier: Apache-2.0
"""What a server says of a file is asked once a pass, while the file before it is read; what has passed is asked again."""

import math
import uuid
from collections.abc import Iterator
from typing import Any

import fsspec
import numpy as np
import pytest

import distinput as di
from distinput.errors import DistinputError
from distinput.ops import reader


@pytest.fixture
def folder() -> Iterator[str]:
    made = f"memory://stamps-{uuid.uuid4().hex}"
    yield made
    fsspec.filesystem("memory").rm(made, recursive=True)


def test_a_pass_over_remote_files_asks_for_each_once(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"{folder}/{number}.parquet" for number in range(4)]
    for number, path in enumerate(paths):
        di.io.write_parquet(path, {"x": np.arange(100) + 100 * number}, row_group_size=30)
    rows = di.data.ParquetDataset(paths)
    assert list(rows.element_spec) == ["x"]  # it looks at the first file
    monkeypatch.setattr(reader, "STAMP_LASTS", math.inf)
    system = type(fsspec.filesystem("memory"))
    asked: list[str] = []
    ukey = system.ukey

    def counted(self: Any, path: str) -> Any:
        asked.append(path[-9:])
        return ukey(self, path)

    for _ in range(2):
        monkeypatch.setattr(system, "ukey", counted)
        asked.clear()
        assert [int(row["x"]) for row in rows] == list(range(400))
        assert sorted(asked) == [path[-9:] for path in paths]
        monkeypatch.setattr(system, "ukey", ukey)


def test_a_file_that_was_replaced_between_passes_is_read_anew(folder: str) -> None:
    paths = [f"{folder}/{number}.parquet" for number in range(3)]
    for turn in range(3):
        for path in paths:
            di.io.write_parquet(path, {"x": np.arange(10 + turn) * (turn + 1)})
        found = [int(row["x"]) for row in di.data.ParquetDataset(paths)]
        assert found == 3 * [(turn + 1) * each for each in range(10 + turn)]


def test_a_file_that_is_gone_is_named_in_its_turn(folder: str) -> None:
    paths = [f"{folder}/{number}.parquet" for number in range(2)]
    for path in paths:
        di.io.write_parquet(path, {"x": np.arange(10)})
    rows = di.data.ParquetDataset(paths)
    fsspec.filesystem("memory").rm(paths[1])
    found = []
    with pytest.raises((DistinputError, OSError), match=r"1\.parquet"):
        found.extend(int(row["x"]) for row in rows)
