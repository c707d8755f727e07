# SPDX-License-Identifier: Apache-2.0
"""A spool keeps elements in order, and gives a later writer those of its complete files."""

from pathlib import Path

import pytest

import distinput as di
from distinput.data.writing import Spool
from distinput.writers import open_file
from distinput.writers.stage import Stage


def test_the_elements_of_complete_files_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_file, "SHARD_BYTES", 1)
    stage, dataset = Stage(str(tmp_path), ""), di.data.Dataset.range(3).concatenate(di.data.Dataset.range(3, 5))
    assert stage.take()
    spool, files = Spool(stage, dataset.node.spec, ()), ()
    assert list(spool.elements()) == []
    with dataset.iter_blocks() as blocks:
        for block in blocks:
            files = spool.add(block) or files
    spool.discard()
    assert sum(file.rows for file in files) == 5
    again = Spool(stage, dataset.node.spec, files)
    assert [int(x) for block in again.elements() for x in block.elements()] == [0, 1, 2, 3, 4]
    assert again.size == sum(file.bytes for file in files)
    again.discard()
    stage.discard()


def test_nothing_is_spooled_to_a_store_of_objects() -> None:
    block = next(iter(di.data.Dataset.range(3).iter_blocks()))
    assert Spool(Stage("memory://no_spool", ""), di.data.Dataset.range(3).node.spec, ()).add(block) is None
