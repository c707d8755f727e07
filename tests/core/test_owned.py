# SPDX-License-Identifier: Apache-2.0
"""What somebody else can still change is copied, what nobody holds is not, and what many look at cannot be written to."""

from typing import Any

import numpy as np
import pytest

from distinput.arrow.adopt import Promise, frozen, is_plain, lent, owned
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Dense
from distinput.columns.picked import Picked
from distinput.columns.ragged import Arrays, Objects, Ragged
from distinput.errors import InvalidArgumentError
from distinput.values.buffers import FEWEST_BYTES, counts_are_exact, empty
from distinput.values.nest import LEAF, structure_of

BUFFER = np.zeros(4)

KEPT: dict[str, Any] = {
    "an array": lambda _: BUFFER,
    "a view": lambda _: BUFFER[1:],
    "a tuple": lambda _: (BUFFER, 1),
    "a list": lambda _: [BUFFER],
    "a dict": lambda _: {"a": BUFFER},
    "a nest": lambda _: {"a": (BUFFER, {"b": BUFFER})},
    "a view in a tuple": lambda _: (BUFFER.reshape(2, 2),),
}


def leaves(value: Any) -> list[Any]:
    return structure_of(value, lists=True).flatten(value)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_an_array_that_the_function_still_holds_is_copied(name: str) -> None:
    (made,) = map(owned, map(KEPT[name], [0]))
    assert not any(np.shares_memory(leaf, BUFFER) for leaf in leaves(made) if isinstance(leaf, np.ndarray))
    assert type(made) is type(KEPT[name](0))


FRESH: dict[str, Any] = {
    "an array": lambda seen: note(seen, np.zeros(4)),
    "a view of one": lambda seen: note(seen, np.zeros(5))[1:],
    "a tuple": lambda seen: (note(seen, np.zeros(4)), 1),
    "a dict": lambda seen: {"a": note(seen, np.zeros(4))},
    "an array of the pool": lambda seen: note(seen, pooled()),
    "a view of one of the pool": lambda seen: note(seen, pooled())[::-1][::-1],
    "one of the pool in a tuple": lambda seen: (note(seen, pooled()), 1),
    "an array over bytes": lambda seen: note(seen, np.frombuffer(bytes(8), np.uint8)),
}


def pooled() -> Any:
    return empty((FEWEST_BYTES,), np.dtype(np.uint8))


def note(seen: list[int], array: Any) -> Any:
    seen.append(array.__array_interface__["data"][0])
    return array


@pytest.mark.skipif(not counts_are_exact(), reason="reference counts are not exact here")
@pytest.mark.parametrize("name", sorted(FRESH))
def test_an_array_that_nobody_else_holds_is_not_copied(name: str) -> None:
    seen: list[int] = []
    (made,) = map(owned, map(FRESH[name], [seen]))
    (array,) = [leaf for leaf in leaves(made) if isinstance(leaf, np.ndarray)]
    assert array.__array_interface__["data"][0] - seen[0] in (0, 8)


HOLD: dict[str, Any] = {
    "the array": lambda array: array,
    "a view": lambda array: array[:5],
    "its buffer": lambda array: array.base,
    "a memoryview": lambda array: memoryview(array),
    "a capsule": lambda array: array.__dlpack__(),
}


@pytest.mark.parametrize("name", sorted(HOLD))
@pytest.mark.parametrize("form", [lambda array: array, lambda array: array[1:], lambda array: (array,)])
def test_an_array_of_the_pool_that_the_function_still_holds_is_copied(name: str, form: Any) -> None:
    kept: list[Any] = []
    places: list[int] = []

    def function(_: int) -> Any:
        array = pooled()
        places.append(array.__array_interface__["data"][0])
        kept.append(HOLD[name](array))
        return form(array)

    (made,) = map(owned, map(function, [0]))
    (leaf,) = leaves(made)
    assert leaf.__array_interface__["data"][0] - places[0] not in (0, 1)


@pytest.mark.parametrize("form", [lambda array: array[:], lambda array: array[1:][1:]])
def test_memory_of_others_is_not_taken_for_that_of_the_pool(form: Any) -> None:
    mine = np.frombuffer(memoryview(bytearray(FEWEST_BYTES)), np.uint8)
    (made,) = map(owned, map(form, [mine]))
    assert not np.shares_memory(made, mine)


@pytest.mark.parametrize("value", [1, 2.5, "text", b"bytes", None, True, np.float32(1), (1, "a")])
def test_numbers_and_text_are_plain(value: Any) -> None:
    assert is_plain(value)
    (made,) = map(owned, [value])
    assert made is value


@pytest.mark.parametrize("value", [[1], np.zeros(1), (1, [2]), {"a": 1}, object()])
def test_what_can_be_changed_is_not_plain(value: Any) -> None:
    assert not is_plain(value)


def test_frozen_rows_cannot_be_written_to() -> None:
    rows = np.zeros((3, 100))
    columns = [
        Dense(rows),
        Picked(rows, np.arange(3)),
        Ragged(Dense(np.zeros(3)), np.arange(3), np.ones(3, np.int64)),
        Arrays([np.zeros(2), np.zeros(1), np.zeros(3)], np.dtype(float)),
        Objects([np.zeros((1, 2)), np.zeros((2, 1)), np.zeros((2, 2))], np.dtype(float)),
    ]
    made = frozen(ColumnBlock(structure_of((0,) * len(columns)), columns, 3))
    for element in made.elements():
        for leaf in element:
            with pytest.raises(ValueError, match="read-only"):
                leaf[...] = 1
    assert rows.flags.writeable  # the user's own array stays as it was
    again = frozen(made)
    assert all(a.array is b.array for a, b in zip(again.columns[:1], made.columns[:1], strict=True))  # type: ignore[attr-defined]
    assert frozen(Block.of_elements(LEAF, [b"a"])).row(0) == b"a"


def test_arrays_that_are_lent_cannot_be_written_to() -> None:
    array = np.zeros(4)
    alone = lent(ColumnBlock(LEAF, [Dense(array[None])], 1)).row(0)
    assert np.shares_memory(alone, array)
    assert not alone.flags.writeable
    items = [np.zeros(600), np.zeros(700)]
    several = list(
        lent(ColumnBlock(structure_of((1, 2)), [Arrays(items, items[0].dtype), Dense(array[:2])], 2)).elements()
    )
    assert np.shares_memory(several[1][0], items[1])
    assert not several[1][0].flags.writeable
    side_by_side = ColumnBlock(LEAF, [Dense(np.zeros((2, 3)))], 2)
    assert lent(side_by_side) is side_by_side
    assert array.flags.writeable


def test_an_array_that_comes_again_must_look_as_it_did() -> None:
    first, second = np.zeros(1 << 15), np.zeros((1 << 8, 1 << 8)).T
    promised = Promise("somebody")
    for _ in range(3):
        value = first, {"a": second}
        assert promised(value) is value
    second += 1
    promised(first)
    for value in (second, [second], {"a": second}, (1, {"a": (second,)})):
        with pytest.raises(
            InvalidArgumentError, match=r"somebody gave an array that it has changed .* leave out copy="
        ):
            promised(value)


def test_large_copies_are_made_in_memory_that_is_used_again() -> None:
    held = [np.full(1 << 14, float(i)) for i in range(4)]
    kept = list(map(owned, map(held.__getitem__, range(4))))
    assert [copy[0] for copy in kept] == [0, 1, 2, 3]
    assert not any(np.shares_memory(copy, array) for copy in kept for array in held)
