# SPDX-License-Identifier: Apache-2.0
"""A long chain of concatenations runs as a flat tree, with the same elements, states and errors."""

from typing import Any

import pytest

import distinput as di
from distinput.ops.concatenate import Concatenate
from distinput.plan.node import Node
from distinput.rewrite.rules import rewrite

Dataset = di.data.Dataset


def chain(n: int, of: Any = lambda k: Dataset.range(k, k + 2)) -> Any:
    dataset = of(0)
    for k in range(1, n):
        dataset = dataset.concatenate(of(k))
    return dataset


def floors(node: Node) -> int:
    return 1 + max(map(floors, node.inputs), default=0)


def test_short_chains_stay_as_they_were_described() -> None:
    node = chain(33, lambda k: Dataset.range(k).batch(1)).node
    assert rewrite(node)[1].count("balanced_concatenations") == 0
    assert floors(rewrite(node)[0]) > 32


@pytest.mark.parametrize("n", [34, 100, 400])
def test_long_ones_are_flat(n: int) -> None:
    dataset = chain(n)
    running, fired = rewrite(dataset.node)
    assert fired == ["balanced_concatenations"]
    assert floors(running) < 12
    assert isinstance(running, Concatenate)
    expected = [x for k in range(n) for x in (k, k + 1)]
    assert dataset.to_list() == expected
    iterator = iter(dataset)
    for _ in range(n):
        next(iterator)
    assert list(dataset.restore(iterator.state())) == expected[n:]


def test_shuffled_datasets_keep_their_orders() -> None:
    def shuffled(k: int) -> Any:
        return Dataset.range(10).shuffle(10, seed=k)

    dataset = chain(40, shuffled)
    for epoch in range(2):
        assert list(dataset.iter_pass(epoch)) == [x for k in range(40) for x in shuffled(k).iter_pass(epoch)]


def test_the_chain_may_stand_below_other_steps() -> None:
    assert chain(50).map(lambda x: x + 1).batch(7).unbatch().to_list() == [x + 1 for x in chain(50).to_list()]
