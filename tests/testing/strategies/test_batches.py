# SPDX-License-Identifier: Apache-2.0
"""Random batches and ends."""

from typing import Any

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

import distinput as di
from distinput.testing.judge.delivery import look_of
from distinput.testing.strategies import batch_sizes, partial_batches, uneven_ends
from distinput.values.nest import flatten


@given(partial_batches(batch=3))
def test_batches_differ_in_their_rows_alone(batches: list[Any]) -> None:
    assert len({look_of(batch) for batch in batches}) <= 1
    for batch in batches:
        assert len({len(leaf) for leaf in flatten(batch)}) == 1
        assert len(flatten(batch)[0]) <= 3
    assert all(len(flatten(batch)[0]) == 3 for batch in batches[:-1])


@given(st.integers(1, 5), st.booleans(), st.data())
def test_sizes_are_full_but_for_the_last(batch: int, anywhere: bool, data: Any) -> None:
    sizes = data.draw(batch_sizes(batch, 4, anywhere=anywhere))
    assert len(sizes) <= 4
    assert all(0 <= size <= batch for size in sizes)
    assert anywhere or all(size == batch for size in sizes[:-1])


def test_partial_batches_are_found_where_they_may_be() -> None:
    find(partial_batches(di.TensorSpec((), np.int32), anywhere=True), lambda made: [*map(len, made)] == [0, 2])
    with pytest.raises(ValueError, match="shapes must be known"):
        find(partial_batches(di.TensorSpec((None,), np.int32)), lambda _: True)


@given(uneven_ends(most_parts=3, most_rows=5))
def test_ends_are_uneven(rows: list[int]) -> None:
    assert 2 <= len(rows) <= 3
    assert max(rows) > min(rows) >= 0
