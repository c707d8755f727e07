# SPDX-License-Identifier: Apache-2.0
"""What somebody else can still change is copied, what nobody holds is not, and what many look at cannot be written to."""

from typing import Any

import numpy as np
import pytest

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Arrays, Dense, Objects, Ragged
from distinput.core.nest import LEAF, structure_of
from distinput.core.owned import frozen, is_plain, owned
from distinput.core.picked import Picked
from distinput.core.references import counts_are_exact

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
    "an array over bytes": lambda seen: note(seen, np.frombuffer(bytes(8), np.uint8)),
}


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
