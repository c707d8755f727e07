# SPDX-License-Identifier: Apache-2.0
"""What can be the order of a shuffle, and what cannot."""

import pytest

from distinput.testing.elements import checked_shuffle

WORDS = [b"a", b"b", b"c", b"c"]


@pytest.mark.parametrize("size", [1, 2, 4, None])
def test_the_order_as_it_was_can_be_one(size: int | None) -> None:
    assert checked_shuffle(WORDS, WORDS, size) == WORDS


def test_an_element_comes_no_earlier_than_it_is_in_the_buffer() -> None:
    assert checked_shuffle(WORDS, [b"b", b"c", b"a", b"c"], 2) == [b"b", b"c", b"a", b"c"]
    with pytest.raises(AssertionError, match=r"element 0 of .* was not in a buffer of 2 yet"):
        checked_shuffle(WORDS, [b"c", b"a", b"b", b"c"], 2)


@pytest.mark.parametrize("seen", [WORDS[:3], [*WORDS, b"a"], [b"a", b"b", b"b", b"c"]])
def test_no_element_is_lost_added_or_replaced(seen: list[bytes]) -> None:
    with pytest.raises(AssertionError, match="are not the elements"):
        checked_shuffle(WORDS, seen, None)
