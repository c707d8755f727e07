# SPDX-License-Identifier: Apache-2.0
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block, Failure, concat_blocks
from distinput.ops import group_by_window as groups
from distinput.ops.group_by_window import Groups
from distinput.run.run import Run, called
from distinput.values.nest import LEAF

SIZES = {0: 2, 1: 3, 2: 1}
START: dict[str, Any] = {
    "epoch": 0,
    "input": {"row": 0},
    "skip": 0,
    "from": 0,
    "row": 0,
    "sent": [],
    "flushed": None,
    "inner": None,
}


def key_of(number: Any) -> int:
    if number < 0:
        raise KeyError(int(number))
    return int(number) % 3


def one_row(key: int, parts: list[Block], inner: Any) -> Iterator[tuple[Block, Any]]:
    """A group as one row: its numbers, which are sent as text so that groups of any size are of one kind."""
    numbers = [int(x) for x in concat_blocks(parts).elements()]
    yield Block.of_elements(LEAF, [json.dumps(numbers).encode()]), {}


def grouped(numbers: list[int], state: dict[str, Any], **more: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    source = di.data.Dataset.from_tensor_slices(np.array(numbers, np.int64)).node
    with Run() as run:
        stream = source.open(state["input"], run)
        results = called(stream, state, lambda x: x, most=5)
        made = Groups(source, state, results, key_of, SIZES.__getitem__, one_row, **more).stream()
        for block, after in made:
            yield (
                (str(block.error) if isinstance(block, Failure) else json.loads(block.row(0))),
                json.loads(json.dumps(after)),
            )


def test_full_groups_come_in_the_order_in_which_they_are_full_and_then_the_others_by_key() -> None:
    found = [group for group, _ in grouped([0, 1, 3, 4, 2, 6, 7, 9, 10], START)]
    assert found == [[0, 3], [2], [1, 4, 7], [6, 9], [10]]
    assert [group for group, _ in grouped([4, 0], START)] == [[0], [4]]


@given(numbers=st.lists(st.integers(0, 8), min_size=1, max_size=30))
def test_every_state_leads_to_what_follows(numbers: list[int]) -> None:
    whole = list(grouped(numbers, START))
    for place, (_, state) in enumerate(whole, 1):
        assert [group for group, _ in grouped(numbers, state)] == [group for group, _ in whole[place:]]


def test_a_state_stays_small_where_many_groups_are_sent_while_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_MOST_SENT", 0)
    numbers = [1, 2, 0, 3, 2, 2, 4, 7]
    whole = list(grouped(numbers, START))
    assert all(state["sent"] == [] for _, state in whole)
    for place, (_, state) in enumerate(whole, 1):
        assert [group for group, _ in grouped(numbers, state)] == [group for group, _ in whole[place:]]


def test_a_key_that_fails_is_raised_after_the_groups_before_it() -> None:
    stream = grouped([0, 3, -1, 2], START)
    assert next(stream)[0] == [0, 3]
    with pytest.raises(KeyError) as raised:
        next(stream)
    assert "element np.int64(-1)" in raised.value.__notes__[0]


def test_or_is_a_failure_in_its_place_where_errors_are_tolerated() -> None:
    numbers = [0, -1, 3, 2, -2]
    whole = list(grouped(numbers, START, tolerant=True))
    assert [group for group, _ in whole] == ["-1", [0, 3], [2], "-2"]
    for place, (_, state) in enumerate(whole, 1):
        assert [group for group, _ in grouped(numbers, state, tolerant=True)] == [group for group, _ in whole[place:]]
