# SPDX-License-Identifier: Apache-2.0
"""Shards and shuffles are shown as their plans say."""

from pathlib import Path

import numpy as np

import distinput as di
from distinput.reports.sections import shards_section, shuffle_section
from tests.reports.pictures import parsed, words_of


def text(section: list[str]) -> str:
    return words_of(parsed(f"<div>{''.join(section)}</div>"))


def test_each_worker_has_a_bar_of_its_rows() -> None:
    found = text(shards_section(di.data.Dataset.range(10).batch(4).node, 3))
    assert "Policy DATA" in found
    assert found.count(" rows") >= 3
    assert all(f"worker {w}" in found for w in range(3))


def test_bytes_where_files_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((100, 8)))
    di.data.Dataset.range(100).write(tmp_path / "rows", "parquet", shards=2)
    dataset = di.data.ParquetDataset([str(p) for p in sorted((tmp_path / "rows").glob("*.parquet"))]).batch(10)
    assert "bytes that each worker reads" in text(shards_section(dataset.node, 2))


def test_why_there_is_no_plan() -> None:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.FILE
    dataset = di.data.Dataset.range(10).batch(2).with_options(options)
    assert "There is no plan for 2 workers: " in text(shards_section(dataset.node, 2))
    assert shards_section(dataset.node, 1) == []


def test_shuffles() -> None:
    numbers = di.data.Dataset.range(1000)
    found = text(shuffle_section(numbers.shuffle(10, seed=1).node, 0))
    assert "1:shuffle" in found
    assert "1,000 places" in found
    assert shuffle_section(numbers.node, 0) == []
    assert "cannot be counted" in text(shuffle_section(numbers.filter(lambda x: x > 1).shuffle(9, seed=1).node, 0))


def test_a_worker_that_reads_nothing_has_a_bar_too(tmp_path: Path) -> None:
    for number, lines in enumerate((50, 50, 0)):
        (tmp_path / f"{number}.txt").write_text("abc\n" * lines)
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.FILE
    dataset = di.data.TextLineDataset([str(tmp_path / f"{n}.txt") for n in range(3)]).batch(6).with_options(options)
    found = text(shards_section(dataset.node, 3))
    assert "the most bytes has 1.50 times the mean, the one with the fewest 0.00 times" in found
    assert "worker 2" in found
