# SPDX-License-Identifier: Apache-2.0
"""Digests of parts add up to that of the whole, in any order; another element gives another digest."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.inspect.verification import RowsDigest, hash_of
from distinput.values.ragged_tensor import RaggedTensor


@given(st.lists(st.integers(0, 5)), st.randoms(use_true_random=False), st.integers(0, 20))
def test_parts_add_up(elements: list[int], random: Any, cut: int) -> None:
    shuffled = list(elements)
    random.shuffle(shuffled)
    assert RowsDigest.of(shuffled[:cut]) + RowsDigest.of(shuffled[cut:]) == RowsDigest.of(elements)


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_other_elements_differ(one: list[int], other: list[int]) -> None:
    assert (RowsDigest.of(one) == RowsDigest.of(other)) == (sorted(one) == sorted(other))


@pytest.mark.parametrize(
    "one, other",
    [
        (np.int32(1), np.int64(1)),
        (np.zeros((2, 1)), np.zeros((1, 2))),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ((b"a", b"bc"), (b"ab", b"c")),
        (np.array([b"a", b"bc"], object), np.array([b"ab", b"c"], object)),
        (RaggedTensor.from_list([[1], [2, 3]]), RaggedTensor.from_list([[1, 2], [3]])),
        (0.0, -0.0),
    ],
)
def test_structure_dtype_shape_and_bits_count(one: Any, other: Any) -> None:
    assert hash_of(one) == hash_of(one)
    assert hash_of(one) != hash_of(other)
