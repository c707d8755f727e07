# SPDX-License-Identifier: Apache-2.0
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.run.run import Run

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


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 7),
    width=st.sampled_from([0, 3, 5000]),
    count=st.sampled_from([None, 1, 2, 9]),
    batch=st.sampled_from([0, 1, 2, 5, 16]),
    at=st.integers(0, 12),
)
def test_passes_that_are_picked_together_are_those_that_are_read_one_by_one(
    rows: int, width: int, count: int | None, batch: int, at: int
) -> None:
    values = np.arange(rows * max(1, width), dtype=np.float64).reshape(rows, -1) if width else np.arange(rows)
    texts = [b"x" * n for n in range(rows)]

    def made(one_by_one: bool) -> di.data.Dataset:
        source = di.data.Dataset.from_tensor_slices({"a": values, "b": texts})
        if one_by_one:  # a function may fail, so its passes are not picked
            source = source.map(lambda x: x)
        repeated = source.repeat(count)
        return repeated.batch(batch) if batch else repeated

    def shown(dataset: Any) -> list[Any]:
        return [(x["a"].tolist(), x["b"].tolist() if batch else x["b"]) for x in islice(dataset, 40)]

    dataset, slow = made(False), made(True)
    assert shown(dataset) == shown(slow)
    iterator, other = iter(dataset), iter(slow)
    for _ in islice(iterator, at):
        pass
    for _ in islice(other, at):
        pass
    assert shown(dataset.restore(iterator.state())) == shown(other)


@pytest.mark.parametrize("state", [0, 4, 5, 6, 11])
def test_a_state_of_passes_read_one_by_one_goes_on_in_those_picked_together(state: int) -> None:
    dataset = RANGE(5).repeat(4)
    number, row = divmod(state, 5)
    node: Any = dataset.node
    place = {"epoch": 0, "pass": number, "input": node.input.start_at(row, number), "any": row > 0}
    with Run() as run:
        found = [int(x) for block, _ in node.stream(place, run) for x in block.elements()]
    assert found == (list(range(5)) * 4)[state:]


def test_what_a_pass_holds_is_handed_out_without_a_copy_as_long_as_batches_lie_in_it() -> None:
    rows = np.zeros((64, 4096))
    first, second = islice(di.data.Dataset.from_tensor_slices(rows).repeat().batch(64), 2)
    assert np.shares_memory(first, second)


def test_a_note_on_an_error_names_the_element_of_its_pass() -> None:
    node: Any = RANGE(3).repeat().node
    assert node.source_of(node.start(0), 7) == (node.input.start(0), 1)
