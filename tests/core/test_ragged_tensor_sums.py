# SPDX-License-Identifier: Apache-2.0
"""Sums and means of ragged tensors against NumPy's of rows with padding."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import InvalidArgumentError
from distinput.values.ragged_tensor import RaggedTensor

ROWS = st.lists(st.lists(st.integers(-50, 50), max_size=4), max_size=5)


@given(ROWS, st.sampled_from([(), (2,)]))
def test_sums_and_means_are_those_of_the_values_that_are_there(rows: list[list[int]], inner: tuple[int, ...]) -> None:
    flat = np.array([x for row in rows for x in row], np.int64)
    ragged = RaggedTensor.from_row_lengths(
        np.broadcast_to(flat.reshape(-1, *[1] * len(inner)), (len(flat), *inner)).copy(),
        np.array(list(map(len, rows)), np.int64),
    )
    padded = ragged.to_padded(0).astype(float)
    there = ragged.with_values(np.ones(ragged.values.shape, bool)).to_padded(False)
    for count in range(1, ragged.ndim + 1):
        for axes in combinations(range(ragged.ndim), count):
            if not {0, 1} & set(axes):
                continue
            total, counts = padded.sum(axis=axes), there.sum(axis=axes)
            np.testing.assert_array_equal(ragged.sum(axis=axes), total)
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(ragged.mean(axis=axes), total / counts)
    assert ragged.sum() == ragged.values.sum()
    if inner:
        assert ragged.sum(axis=2).to_list() == [[2 * x for x in row] for row in rows]
        assert ragged.mean(axis=-1).to_list() == [[float(x) for x in row] for row in rows]


def test_rows_of_rows() -> None:
    ragged = RaggedTensor.from_list([[[1, 2], []], [], [[3]]])
    assert ragged.sum(axis=2).to_list() == [[3, 0], [], [3]]
    assert ragged.sum(axis=(0, 1)).tolist() == [4, 2]
    assert ragged.sum(axis=(0, 1, 2)) == 6
    for axis in (0, 1, (1, 2)):
        with pytest.raises(InvalidArgumentError, match=r"a sum over axes .* of 2 ragged dimensions is not there"):
            ragged.sum(axis=axis)


def test_dtypes_are_those_of_reductions_of_replicas() -> None:
    ragged = RaggedTensor.from_list([[1, 2], [4]])
    assert (ragged.sum(axis=0).dtype, ragged.mean(axis=0).dtype) == (np.int32, np.float64)
    assert ragged.astype("float32").mean().dtype == np.float32
    assert np.sum(ragged, axis=1).tolist() == [3, 4]


@pytest.mark.parametrize("axis", [2, -3, "x", ()])
def test_an_axis_that_is_not_there(axis: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="axis must be from -2 to 1, or a tuple, got"):
        RaggedTensor.from_list([[1]]).sum(axis=axis)
