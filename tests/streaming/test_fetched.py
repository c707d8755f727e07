# SPDX-License-Identifier: Apache-2.0
"""Chosen elements come in small blocks, and in large ones only where nothing is copied before it is handed out."""

from typing import Any
from unittest import mock

import numpy as np
import pytest

import distinput as di
from distinput.columns import block as sizes
from distinput.columns.picked import Picked
from distinput.ops import shuffle as module
from distinput.rewrite import rewrite
from distinput.run.run import Run

IMAGES = np.arange(4000 * 100, dtype=np.int64).reshape(4000, 100)


def blocks(dataset: di.data.Dataset, *, by_element: bool) -> list[Any]:
    """The blocks of one pass."""
    node = rewrite(dataset.node)[0]
    with (
        Run().asking(by_element=by_element) as run,
        mock.patch.object(module, "PACE_SECONDS", 1e9),
        mock.patch.object(sizes, "_GATHERED_BYTES", 4000),
    ):
        return [block for block, _ in node.open(node.start(0), run)]


@pytest.mark.parametrize("name", ["shuffle", "global_shuffle"])
def test_batches_of_rows_in_memory_come_many_in_a_block(name: str) -> None:
    source = di.data.Dataset.from_tensor_slices(IMAGES)
    dataset = (source.shuffle(100, seed=1) if name == "shuffle" else source.global_shuffle(seed=1)).batch(5)
    large, small = blocks(dataset, by_element=True), blocks(dataset, by_element=False)
    assert max(map(len, small)) <= 4
    assert max(map(len, large)) > 100
    assert isinstance(large[-1].columnar().columns[0], Picked)
    rows = [np.concatenate([batch for block in each for batch in block.elements()]) for each in (large, small)]
    assert np.array_equal(*rows)
    assert sorted(rows[0][:, 0].tolist()) == IMAGES[:, 0].tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.global_shuffle(seed=1).map_rows(lambda x: x + 1).batch(5),  # looks at all rows of a block
        lambda rows: rows.zip(rows.map(lambda x: x + 1), rows).global_shuffle(seed=1).batch(5),  # makes them before
        lambda rows: rows.global_shuffle(seed=1).batch(5).prefetch(2),
    ],
)
def test_rows_that_are_copied_stay_few(change: Any) -> None:
    made = blocks(change(di.data.Dataset.from_tensor_slices(IMAGES)), by_element=True)
    assert max(map(len, made)) <= 4


def test_a_choice_that_takes_long_stays_small() -> None:
    dataset = di.data.Dataset.from_tensor_slices(IMAGES).global_shuffle(seed=1).batch(5)
    node = rewrite(dataset.node)[0]
    with (
        Run().asking(by_element=True) as run,
        mock.patch.object(module, "PACE_SECONDS", 0),
        mock.patch.object(sizes, "_GATHERED_BYTES", 4000),
    ):
        assert max(len(block) for block, _ in node.open(node.start(0), run)) <= 4
