# SPDX-License-Identifier: Apache-2.0
"""What gathers rows is told how many its consumer puts together."""

from typing import Any

import pytest

import distinput as di
from distinput.plan.node import walk
from distinput.rewrite.rules import rewrite
from tests.rewrite.running import fires

RANGE = di.data.Dataset.range


def told(dataset: Any) -> list[int]:
    running, _ = rewrite(dataset.node, only=["read_for_batches"])
    return [step.group for step in walk(running) if hasattr(step, "group")]


@pytest.mark.parametrize(
    "dataset, groups",
    [
        (RANGE(9).shuffle(4, seed=1).batch(3), [3]),
        (RANGE(9).global_shuffle(seed=1).padded_batch(3), [3]),
        (RANGE(9).shuffle(4, seed=1).map(abs).prefetch(1).with_options(di.data.Options()).batch(3), [3]),
        (RANGE(9).shuffle(4, seed=1).batch(1), [1]),
        (RANGE(9).shuffle(4, seed=1).filter(lambda x: x > 2).batch(3), [1]),
        (RANGE(9).shuffle(4, seed=1).shuffle(4, seed=2).batch(3), [1, 3]),
        (RANGE(9).shuffle(4, seed=1), [1]),
    ],
)
def test_it_is_told_through_steps_of_one_for_one(dataset: Any, groups: list[int]) -> None:
    assert told(dataset) == groups


def test_it_is_told_once() -> None:
    running, fired = rewrite(RANGE(9).shuffle(4, seed=1).batch(3).node, only=["read_for_batches"])
    assert fired == ["read_for_batches"]
    assert rewrite(running, only=["read_for_batches"])[1] == []


def test_the_order_is_the_same_in_groups_of_any_size() -> None:
    orders = {tuple(RANGE(50).shuffle(20, seed=3).batch(size).unbatch()) for size in (1, 2, 7, 50)}
    assert len(orders) == 1


def test_a_reader_is_told(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    dataset = di.data.TextLineDataset(str(tmp_path / "a.txt")).batch(2)
    assert fires(dataset, "read_for_batches")
    assert told(dataset) == [2]
