# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di

RANGE = di.data.Dataset.range


@pytest.mark.parametrize("count, want", [(0, []), (1, [0, 1]), (3, [0, 1, 0, 1, 0, 1])])
def test_so_many_passes(count: int, want: list[int]) -> None:
    assert RANGE(2).repeat(count).to_list() == want
    assert len(RANGE(2).repeat(count)) == len(want)


@pytest.mark.parametrize("count", [None, -1, -5])
def test_without_end(count: int | None) -> None:
    dataset = RANGE(2).repeat(count)
    assert dataset.cardinality() == di.data.INFINITE_CARDINALITY
    assert dataset.take(5).to_list() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("empty", [RANGE(0), RANGE(3).filter(lambda x: x > 5)])
def test_an_empty_input_ends_it(empty: di.data.Dataset) -> None:
    assert empty.repeat().to_list() == []


def test_each_pass_is_shuffled_anew() -> None:
    order = RANGE(20).shuffle(20, seed=4).repeat(2).to_list()
    assert sorted(order[:20]) == sorted(order[20:]) == list(range(20))
    assert order[:20] != order[20:]


@pytest.mark.parametrize("count", [1.5, "2", True])
def test_the_count_must_be_a_whole_number(count: Any) -> None:
    with pytest.raises(TypeError, match="repeat: count must be an integer, got"):
        RANGE(2).repeat(count)


def test_a_restart_goes_on_in_the_pass_that_was_saved() -> None:
    dataset = RANGE(3).repeat(2)
    it = iter(dataset)
    for _ in range(4):
        next(it)
    assert [int(x) for x in dataset.restore(it.state())] == [1, 2]


@pytest.mark.parametrize("row", [0, 3])
def test_a_place_in_no_pass_at_all_is_the_beginning(row: int) -> None:
    node = RANGE(2).repeat(0).node
    assert node.start_at(row, 0) == node.start(0)
