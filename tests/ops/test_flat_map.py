# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di
from distinput.testing import check_restart, check_spec
from tests.ops.iterating import state_bytes

Dataset = di.data.Dataset
RANGE = Dataset.range


def test_one_dataset_is_finished_before_the_next() -> None:
    assert RANGE(4).flat_map(RANGE).to_list() == [0, 0, 1, 0, 1, 2]


def test_a_tuple_is_unpacked() -> None:
    assert RANGE(2).enumerate(5).flat_map(lambda number, x: RANGE(number, number + x)).to_list() == [6]


def test_it_needs_a_function() -> None:
    with pytest.raises(TypeError, match=r"flat_map: map_func must be a function, got \[1\]"):
        RANGE(3).flat_map([1])


def test_a_restart_within_a_dataset_goes_on_there() -> None:
    dataset = RANGE(4).flat_map(lambda x: RANGE(x, x + 5).batch(2))
    check_restart(dataset)
    check_spec(dataset)


def test_the_state_does_not_grow_with_the_datasets_behind_it() -> None:
    dataset = RANGE(100).flat_map(lambda x: RANGE(10))
    assert state_bytes(dataset, 995) <= state_bytes(dataset, 15) + 10


def test_shuffles_without_a_seed_differ_between_elements_and_are_the_same_after_a_restart() -> None:
    dataset = RANGE(8).flat_map(lambda _: RANGE(6).shuffle(6))
    with iter(dataset) as elements:
        found = [int(next(elements)) for _ in range(20)]
        state = elements.state()
        found += [int(x) for x in elements]
    orders = {tuple(found[first : first + 6]) for first in range(0, 48, 6)}
    assert len(orders) > 1
    assert [int(x) for x in dataset.restore(state)] == found[20:]


@pytest.mark.parametrize("inner, count", [(lambda x: RANGE(3), 6), (lambda x: RANGE(x).filter(lambda y: True), -2)])
def test_elements_are_counted_where_the_datasets_can_be(inner: Any, count: int) -> None:
    dataset = RANGE(2).flat_map(inner)
    assert dataset.cardinality() == di.data.UNKNOWN_CARDINALITY  # as in TensorFlow
    assert dataset.node.count_elements() == count
