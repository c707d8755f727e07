# SPDX-License-Identifier: Apache-2.0
"""What is in hand: elements that are counted down as they are taken, and the place after each."""

from itertools import islice, repeat
from operator import length_hint

import numpy as np

from distinput.columns.block import ColumnBlock
from distinput.columns.column import Dense
from distinput.data.iterator import NONE, Hand
from distinput.values.nest import LEAF


def block(n: int) -> ColumnBlock:
    return ColumnBlock(LEAF, [Dense(np.arange(n))], n)


def test_the_place_after_each_element() -> None:
    hand = Hand({"row": 0}, {"row": 5})
    elements = hand.hold(block(5), 2)
    places = [hand.place(length_hint(hand.left)) for _ in elements]
    assert places == [({"row": 0}, 3), ({"row": 0}, 4), ({"row": 5}, 0)]
    assert hand.part() is None


def test_behind_a_block_nothing_is_in_hand() -> None:
    hand = Hand({"row": 0}, {"row": 5}, before=7)
    list(hand.hold(block(5), 0))
    hand.drop()
    assert hand.left is hand.parts is NONE
    behind = hand.behind({"row": 9}, 0, passed="code", since=True)
    assert (behind.at, behind.after, behind.before, behind.size) == ({"row": 5}, {"row": 9}, 12, 0)
    assert (behind.passed, behind.since) == ("code", True)


def test_a_part_counts_what_is_taken_from_it() -> None:
    hand = Hand({"row": 0}, {"row": 5})
    left = repeat(True, 3)
    hand.left, hand.parts = left, iter([iter("ab"), iter("c")])
    first = hand.part()
    assert first is not None
    assert list(islice(first, 1)) == ["a"]
    assert length_hint(left) == 2
