# SPDX-License-Identifier: Apache-2.0
"""Rows of several blocks are put in order as plain lists would be, whatever columns they have."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import Block
from distinput.columns.picked import check_rows, put_in_order
from distinput.values.nest import LEAF, structure_of

VALUES: dict[str, Any] = {
    "number": lambda i: np.int64(i),
    "text": lambda i: b"x" * (i % 3) + str(i).encode(),
    "array": lambda i: np.full((2,), i, np.float32),
    "lengths": lambda i: np.arange(i % 4),
    "shapes": lambda i: np.full((i % 2 + 1, i % 3 + 1), i),
}


@given(st.sampled_from(sorted(VALUES)), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_elements_come_to_their_places(kind: str, sizes: list[int], data: st.DataObject) -> None:
    places = data.draw(st.permutations(range(sum(sizes))))
    blocks, numbers, wanted, first = [], list[Any](), [None] * sum(sizes), 0
    for size in sizes:
        values = [VALUES[kind](i) for i in range(first, first + size)]
        blocks.append(Block.of_elements(LEAF, values))
        numbers.append(np.array(places[first : first + size]))
        for place, value in zip(places[first : first + size], values, strict=True):
            wanted[place] = value
        first += size
    found = list(put_in_order(blocks, numbers).elements())
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_all_columns_are_put_in_the_same_order() -> None:
    structure = structure_of({"a": 1, "b": b""})
    blocks = [Block.of_elements(structure, [{"a": i, "b": str(i)} for i in part]) for part in ([0, 1], [2])]
    found = list(put_in_order(blocks, [np.array([1, 2]), np.array([0])]).elements())
    assert [(int(e["a"]), e["b"]) for e in found] == [(2, b"2"), (0, b"0"), (1, b"1")]


def test_a_block_in_order_is_passed_on_as_it_is() -> None:
    block = Block.of_elements(LEAF, [1, 2, 3])
    assert put_in_order([block], [np.arange(3)]) is block
    assert put_in_order([block], [np.array([2, 1, 0])]) is not block


@pytest.mark.parametrize("rows", [[], [0], [4, 0, 4]])
def test_rows_that_exist_are_accepted(rows: list[int]) -> None:
    check_rows(np.array(rows, np.int64), 5)


@pytest.mark.parametrize("rows", [[5], [0, -1], [-(1 << 63)], [(1 << 63) - 1]])
def test_rows_that_do_not_exist_are_refused(rows: list[int]) -> None:
    with pytest.raises(IndexError, match=r"rows must be from 0 to 4, got \["):
        check_rows(np.array(rows, np.int64), 5)


def test_the_message_about_many_rows_stays_short() -> None:
    with pytest.raises(IndexError) as caught:
        check_rows(np.arange(1000), 5)
    assert len(str(caught.value)) < 150
