# SPDX-License-Identifier: Apache-2.0
"""Grain's check of checkpoints: every state gives back its own bytes, and exactly what followed it."""

from typing import Any

import pytest

import distinput as di

check = pytest.importorskip("grain.experimental", reason="left out: grain is not installed")
Dataset = di.data.Dataset


def strategy_batches() -> Any:
    strategy = di.distribute.MirroredStrategy(["CPU:0"])
    return strategy.experimental_distribute_dataset(Dataset.range(12).shuffle(5, seed=1).batch(4))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(12).shuffle(5, seed=1).batch(2),
        lambda: Dataset.range(12).batch(4).shard_batches(2, 1),
        lambda: Dataset.range(6).cache().shuffle(6, seed=2).repeat(2),
        strategy_batches,
    ],
    ids=["shuffled", "shared", "cached", "distributed"],
)
def test_iterators_pass(make: Any) -> None:
    """tests/interop/test_grain.py has every kind of step."""
    check.assert_equal_output_after_checkpoint(make())
