# SPDX-License-Identifier: Apache-2.0
"""Lists that take turns."""

import pytest

from distinput.testing.elements import interleaved

A, B, C = ["a0", "a1", "a2"], ["b0"], ["c0", "c1"]


@pytest.mark.parametrize(
    "cycle, block, expected",
    [
        (1, 1, [*A, *B, *C]),
        (2, 1, ["a0", "b0", "a1", "a2", "c0", "c1"]),
        (3, 2, ["a0", "a1", "b0", "c0", "c1", "a2"]),
    ],
)
def test_so_many_lists_are_open_at_a_time(cycle: int, block: int, expected: list[str]) -> None:
    assert interleaved([A, B, C], cycle, block) == expected


def test_nothing_of_nothing() -> None:
    assert interleaved([], 3, 1) == []
    assert interleaved([[], []], 1, 2) == []
