# SPDX-License-Identifier: Apache-2.0
"""A histogram counts every value in its bin, and depends on neither the order nor the pieces."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.inspect.column_statistics import MOST_BINS, Histogram

numbers = st.lists(
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-5, 5).map(float)), max_size=50
)


def of(values: list[float]) -> Histogram:
    made = Histogram()
    made.add(np.array(values))
    return made


@given(numbers)
def test_every_value_is_in_its_bin(values: list[float]) -> None:
    made = of(values)
    edges = made.edges()
    assert sum(made.counts) == len(values)
    assert len(made.counts) <= MOST_BINS
    for low, high, count in zip(edges[:-1], edges[1:], made.counts, strict=True):
        assert count == sum(low <= value < high for value in values)
    assert not values or (made.counts[0] and made.counts[-1])


@given(numbers, st.randoms(use_true_random=False), st.integers(0, 50))
def test_neither_order_nor_pieces_count(values: list[float], random: object, cut: int) -> None:
    whole = of(values)
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    pieces = of(shuffled[:cut])
    pieces.add(np.array(shuffled[cut:]))
    assert (pieces.edges(), pieces.counts) == (whole.edges(), whole.counts)


@given(st.integers(1, 1000), st.integers(2, 10**6))
def test_there_are_enough_bins(step: int, count: int) -> None:
    made = of([0.0, float(step * count)])
    assert len(made.counts) > MOST_BINS // 2


def test_nothing_has_no_edges() -> None:
    assert Histogram().edges() == []
