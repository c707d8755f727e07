# SPDX-License-Identifier: Apache-2.0
"""Several sources in memory as one step."""

import numpy as np
import pytest

import distinput as di
from distinput.ops.slices import SlicesInTurn, from_tensor_slices
from distinput.plan.node import Node
from distinput.run.run import Run

SIZES = (3, 0, 1, 5)


def in_turn() -> SlicesInTurn:
    ends = np.cumsum(SIZES)
    sources = tuple(from_tensor_slices(np.arange(end - size, end)) for end, size in zip(ends, SIZES, strict=True))
    return SlicesInTurn(sources, sources[0].spec)


def test_rows_follow_each_other_from_any_position() -> None:
    node = in_turn()
    assert node.cardinality == sum(SIZES)
    for row in range(node.cardinality + 1):
        found = [x for block, _ in node.stream({"row": row}, Run([node])) for x in block.elements()]
        assert found == list(range(row, node.cardinality)), row


def test_rows_are_reached_across_sources_in_any_order() -> None:
    node = in_turn()
    rows = np.random.default_rng(0).permutation(node.cardinality)
    assert list(node.fetch(rows, 0).elements()) == rows.tolist()
    assert list(node.fetch(rows[:0], 0).elements()) == []


@pytest.mark.parametrize("many, blocks", [(2, 1), (16, 1), (17, 2), (144, 2), (145, 3)])
def test_many_small_sources_are_sent_together(many: int, blocks: int) -> None:
    datasets = [di.data.Dataset.from_tensor_slices([number]) for number in range(many)]
    made = datasets[0]
    for dataset in datasets[1:]:
        made = made.concatenate(dataset)
    it = iter(made)
    assert [int(x) for x in it] == list(range(many))
    (source,) = [told for name, told in it.stats().items() if "slices_in_turn" in name]
    assert source["blocks"] == blocks


def test_a_state_after_any_row_leads_to_the_next() -> None:
    node: Node = in_turn()
    dataset = di.data.Dataset(node)
    it = iter(dataset)
    for taken in range(1, node.cardinality + 1):
        next(it)
        assert [int(x) for x in dataset.restore(it.state())] == list(range(taken, node.cardinality))
