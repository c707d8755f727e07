# SPDX-License-Identifier: Apache-2.0
"""What caches on disk and snapshots share (more of it: tests/ops/test_disk_cache.py, tests/ops/test_snapshot.py)."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.plan.node import Needs
from distinput.writers.stage import Stage

RANGE = di.data.Dataset.range


def test_nothing_is_moved_below_it(tmp_path: Path) -> None:
    dataset = RANGE(10).cache(tmp_path / "a").take(3).skip(1).shard(2, 0)
    assert dataset.node.inputs[0].inputs[0].inputs[0].needs == Needs.ALL
    assert dataset.to_list() == [1]
    assert RANGE(10).cache(tmp_path / "a").to_list() == list(range(10))  # never a part
    assert RANGE(10).cache(tmp_path / "a").to_list() == list(range(10))
    assert dataset.to_list() == [1]


def test_the_fingerprint_is_that_of_the_pipeline_as_described(tmp_path: Path) -> None:
    def fused() -> Any:
        return RANGE(5).map(lambda x: x + 1).map(lambda x: x * 2).cache(tmp_path)

    assert "map_of_map" in fused().explain()
    assert fused().to_list() == fused().to_list() == [2, 4, 6, 8, 10]


def test_a_pass_that_another_process_completes_first_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def see(x: int) -> int:
        calls.append(int(x))
        return x

    def dataset() -> Any:
        return RANGE(3).map(see, output_signature=di.TensorSpec([], "int64")).cache(tmp_path)

    take, first = Stage.take, [True]

    def later(stage: Stage, who: str) -> bool:
        if first:
            first.pop()
            dataset().to_list()
        return take(stage, who)

    monkeypatch.setattr(Stage, "take", later)
    assert dataset().to_list() == [0, 1, 2]
    assert calls == [0, 1, 2]
