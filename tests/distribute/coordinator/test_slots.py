# SPDX-License-Identifier: Apache-2.0
"""Leaves of some kinds are replaced, wherever they are."""

from dataclasses import dataclass
from typing import Any

import pytest

from distinput.distribute.coordinator.worker_seat import Slot, replaced


@dataclass(frozen=True)
class Pair:
    a: Any
    b: Any


@pytest.mark.parametrize(
    "given, expected",
    [
        (Slot(3), 3),
        ((1, Slot(2)), (1, 2)),
        ([[Slot(1)], {"x": (Slot(2), "y")}], [[1], {"x": (2, "y")}]),
        (Pair(Slot(1), [2]), Pair(1, [2])),
        ("text", "text"),
        (None, None),
    ],
)
def test_slots_are_replaced(given: Any, expected: Any) -> None:
    assert replaced((Slot,), given, lambda slot: slot.key) == expected


def test_what_has_none_is_not_rebuilt() -> None:
    given = [1, {"x": object()}, (2,)]
    assert replaced((Slot,), given, lambda slot: slot.key) is given
