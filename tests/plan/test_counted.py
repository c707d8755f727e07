# SPDX-License-Identifier: Apache-2.0
"""A stand-in has the elements of its input and another count; steps over known counts say what they would say."""

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.node import INFINITE, UNKNOWN, Counted, over_counts

RANGE = di.data.Dataset.range


def test_a_stand_in_has_the_elements_of_its_input() -> None:
    uncounted = RANGE(6).filter(lambda x: x > 2)
    stand_in = Counted(uncounted.node, 3)
    assert (uncounted.node.cardinality, stand_in.cardinality) == (UNKNOWN, 3)
    assert stand_in.spec == uncounted.node.spec
    assert Dataset(stand_in).to_list() == uncounted.to_list() == [3, 4, 5]


@pytest.mark.parametrize("count, batches", [(7, 3), (0, 0), (INFINITE, INFINITE)])
def test_a_step_over_a_count_counts_from_it(count: int, batches: int) -> None:
    step = RANGE(6).filter(lambda x: x > 2).batch(3).node
    assert over_counts(step, [count]).cardinality == batches
    assert step.cardinality == UNKNOWN


@pytest.mark.parametrize("count", [6, UNKNOWN])
def test_a_count_that_tells_nothing_new_changes_nothing(count: int) -> None:
    step = RANGE(6).batch(4).node
    assert over_counts(step, [count]) is step


def test_each_input_has_its_own_count() -> None:
    step = Dataset.zip(RANGE(6).filter(lambda x: x > 2), RANGE(4)).node
    counted = over_counts(step, [3, 4])
    assert counted.cardinality == 3
    assert isinstance(counted.inputs[0], Counted)
    assert counted.inputs[1] is step.inputs[1]
    with pytest.raises(ValueError, match="shorter"):
        over_counts(step, [3])
