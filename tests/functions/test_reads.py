# SPDX-License-Identifier: Apache-2.0
import pickle
from typing import Any

import numpy as np
import pytest

from distinput.columns.block import Block
from distinput.errors import FailedPreconditionError
from distinput.functions.workers import Reads
from distinput.values.nest import LEAF


def positions(*numbers: int) -> Block:
    return Block.of_elements(LEAF, [np.int64(n) for n in numbers])


class Letters:
    """Items that are read in one call."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> str:
        raise AssertionError("read alone")

    def __getitems__(self, indices: list[int]) -> list[str]:
        self.calls.append(indices)
        if 4 in indices:
            raise LookupError("no such letter")
        return ["abcde"[index] for index in indices]


def test_positions_are_integers_of_python() -> None:
    assert list(Reads(["a", "b", "c"], 3).results(positions(2, 0))) == ["c", "a"]
    letters = Letters()
    assert list(Reads(letters, 5).results(positions(3, 1))) == ["d", "b"]
    assert [type(index) for index in letters.calls[0]] == [int, int]


def test_what_comes_before_an_error_is_read_alone() -> None:
    letters = Letters()
    items = Reads(letters, 5).results(positions(1, 4, 2))
    assert next(items) == "b"
    with pytest.raises(LookupError):
        next(items)
    assert letters.calls == [[1, 4, 2], [1], [4]]


def test_arrays_that_nobody_else_holds_are_not_copied() -> None:
    made: list[int] = []

    class Fresh:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            array = np.full(100, index)
            made.append(array.ctypes.data)
            return array

    class FreshInOneCall(Fresh):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [self[index] for index in indices]

    for kind in (Fresh, FreshInOneCall):
        made.clear()
        assert [array.ctypes.data for array in list(Reads(kind(), 3).results(positions(0, 1, 2)))] == made


def test_arrays_that_the_source_may_change_are_copied() -> None:
    held = [np.zeros(2)]

    class Held(Letters):
        def __getitem__(self, index: int) -> Any:
            return held[index]

        __getitems__ = None  # type: ignore[assignment]

    for source, copy, lends in (
        (held, True, True),
        (tuple(held), True, True),
        (Held(), False, True),
        (Held(), True, False),
    ):
        reads = Reads(source, len(source), copy=copy)
        (item,) = reads.results(positions(0))
        assert (reads.lends, np.shares_memory(item, held[0])) == (lends, lends)


def test_the_length_is_checked_before_items_are_read() -> None:
    items = [1, 2, 3]
    reads = Reads(items, 3)
    items.pop()
    with pytest.raises(FailedPreconditionError, match="got 2 items now and 3 when the dataset was made"):
        reads.results(positions(0))


def test_it_can_be_sent() -> None:
    assert list(pickle.loads(pickle.dumps(Reads([1, 2], 2))).results(positions(1))) == [2]


def test_a_position_in_words() -> None:
    assert Reads([1], 1).told(np.int64(0)) == "index 0 of a list"
