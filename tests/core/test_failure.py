# SPDX-License-Identifier: Apache-2.0
"""What can be made is made around each error, and the error that is raised is that of the first row at fault."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.core.block import Block
from distinput.core.failure import Failure, of_all, sound_parts, stacked_parts
from distinput.core.nest import LEAF


@given(st.integers(1, 20), st.sets(st.integers(0, 19)))
def test_rows_around_those_at_fault_come_in_order(size: int, bad: set[int]) -> None:
    def make(first: int, end: int) -> Block:
        at_fault = sorted(bad & set(range(first, end)))
        if at_fault:
            raise ValueError(str(at_fault[0]))
        return Block.of_elements(LEAF, list(range(first, end)))

    found: list[object] = []
    ends = [0]
    for part, end in sound_parts(size, make, tolerant=True):
        found += [str(part.error)] if isinstance(part, Failure) else list(part.elements())
        ends.append(end)
    assert found == [str(row) if row in bad else row for row in range(size)]
    assert ends == sorted(set(ends))
    assert ends[-1] == size
    strict: list[object] = []

    def all_of_it() -> None:
        for part, _ in sound_parts(size, make, tolerant=False):
            strict.extend(part.elements())

    first_bad = min((row for row in bad if row < size), default=None)
    if first_bad is None:
        all_of_it()
    else:
        with pytest.raises(ValueError, match=f"^{first_bad}$"):
            all_of_it()
    assert strict == list(range(size if first_bad is None else first_bad))


def test_an_error_of_all_rows_is_not_looked_for_in_one_of_them() -> None:
    calls = []

    def make(first: int, end: int) -> Block:
        calls.append((first, end))
        raise of_all(ValueError("all"))

    (failure, end), *rest = sound_parts(8, make, tolerant=True)
    assert (str(failure.error), end, rest, calls) == ("all", 8, [], [(0, 8)])  # type: ignore[attr-defined]


def test_an_error_of_rows_together_is_raised_though_each_alone_is_sound() -> None:
    def make(first: int, end: int) -> Block:
        if end - first > 1:
            raise ValueError("together")
        return Block.of_elements(LEAF, [first])

    with pytest.raises(ValueError, match="together"):
        list(sound_parts(4, make, tolerant=False))
    assert [part.size for part, _ in sound_parts(4, make, tolerant=True)] == [1, 1, 1, 1]


@given(st.lists(st.integers(0, 1), max_size=12), st.integers(1, 3))
def test_batches_that_cannot_be_stacked_become_failures(lengths: list[int], size: int) -> None:
    lengths = lengths[: len(lengths) // size * size]
    block = Block.of_elements(LEAF, [np.zeros(n) for n in lengths]) if lengths else Block.of(LEAF, [])
    if not lengths:
        return
    groups = [lengths[first : first + size] for first in range(0, len(lengths), size)]
    found: list[bool] = []
    for part, done in stacked_parts(block, size, lambda error: ValueError(str(error)), tolerant=True):
        found += [False] if isinstance(part, Failure) else [True] * part.size
        assert done == len(found) * size
    assert found == [len(set(group)) == 1 for group in groups]
    if not all(found):
        with pytest.raises(ValueError, match="first element had shape"):
            list(stacked_parts(block, size, lambda error: ValueError(str(error)), tolerant=False))
