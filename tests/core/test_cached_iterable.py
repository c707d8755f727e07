# SPDX-License-Identifier: Apache-2.0
"""Items are made when they are first needed, once, and in order."""

from itertools import islice

from distinput.functions.dataset_functions import CachedIterable


def test_items_are_made_as_far_as_anybody_goes() -> None:
    made: list[int] = []

    def item(n: int) -> int:
        made.append(n)
        return n * n

    items = CachedIterable(map(item, range(5)))
    assert made == []
    assert list(islice(items, 2)) == [0, 1]
    assert made == [0, 1]
    assert list(items) == list(items) == [0, 1, 4, 9, 16]
    assert made == [0, 1, 2, 3, 4]


def test_iterations_side_by_side_give_the_same_items() -> None:
    items = CachedIterable(iter(range(3)))
    assert list(zip(items, items, strict=True)) == [(0, 0), (1, 1), (2, 2)]
    assert list(CachedIterable([])) == []
