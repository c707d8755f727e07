# SPDX-License-Identifier: Apache-2.0
"""The other forms of ragged tensors. What is wanted are the answers of TensorFlow 2.21, where no other source is named."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

R = di.RaggedTensor
FOUR = [1, 2, 3, 4]
NO_VALUES, NO_ROWS = np.zeros(0, np.int32), np.zeros(0, np.int64)
PADDED = [[1, 2, 0], [0, 0, 0], [3, 0, 4]]
CUBE = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
DEEP = R.from_list([[[1, 2], []], [], [[3]]])
INNER = R.from_row_lengths(np.arange(12, dtype=np.int32).reshape(3, 2, 2), [2, 1])
SPARSE = di.SparseTensor


@pytest.mark.parametrize(
    "made, rows, splits",
    [
        (R.from_value_rowids(FOUR, [0, 0, 2, 2]), [[1, 2], [], [3, 4]], [[0, 2, 2, 4]]),
        (R.from_value_rowids(FOUR, [0, 0, 2, 2], nrows=5), [[1, 2], [], [3, 4], [], []], [[0, 2, 2, 4, 4, 4]]),
        (R.from_value_rowids(NO_VALUES, NO_ROWS), [], [[0]]),
        (R.from_value_rowids(NO_VALUES, NO_ROWS, nrows=3), [[], [], []], [[0, 0, 0, 0]]),
        (R.from_value_rowids(DEEP, [0, 1, 1]), [[[[1, 2], []]], [[], [[3]]]], [[0, 1, 3], [0, 2, 2, 3], [0, 2, 2, 3]]),
        (R.from_row_starts(FOUR, [0, 2, 2]), [[1, 2], [], [3, 4]], [[0, 2, 2, 4]]),
        (R.from_row_starts(NO_VALUES, NO_ROWS), [], [[0]]),
        (R.from_row_limits(FOUR, [2, 2, 4]), [[1, 2], [], [3, 4]], [[0, 2, 2, 4]]),
        (R.from_row_limits(NO_VALUES, NO_ROWS), [], [[0]]),
        (R.from_uniform_row_length(FOUR, 2), [[1, 2], [3, 4]], [[0, 2, 4]]),
        (R.from_uniform_row_length(NO_VALUES, 0), [], [[0]]),
        (R.from_uniform_row_length(NO_VALUES, 0, nrows=3), [[], [], []], [[0, 0, 0, 0]]),
        (R.from_tensor(PADDED), PADDED, [[0, 3, 6, 9]]),
        (R.from_tensor(PADDED, lengths=[2, 0, 3]), [[1, 2], [], [3, 0, 4]], [[0, 2, 2, 5]]),
        (R.from_tensor(PADDED, lengths=[2, 0, 9]), [[1, 2], [], [3, 0, 4]], [[0, 2, 2, 5]]),
        (R.from_tensor(PADDED, lengths=[2, 0, -1]), [[1, 2], [], []], [[0, 2, 2, 2]]),
        (R.from_tensor(PADDED, padding=0), [[1, 2], [], [3, 0, 4]], [[0, 2, 2, 5]]),
        (R.from_tensor(CUBE), CUBE.tolist(), [[0, 3, 6]]),
        (R.from_tensor(CUBE, ragged_rank=2), CUBE.tolist(), [[0, 3, 6], [0, 2, 4, 6, 8, 10, 12]]),
        (R.from_tensor(CUBE, lengths=[1, 2]), [[[0, 1]], [[6, 7], [8, 9]]], [[0, 1, 3]]),
        (R.from_tensor([[[1, 0], [0, 0]], [[0, 0], [0, 0]]], padding=[0, 0]), [[[1, 0]], []], [[0, 1, 1]]),
        (
            R.from_tensor([[[1, 0], [0, 0]], [[0, 0], [0, 2]]], padding=0, ragged_rank=2),
            [[[1], []], [[], [0, 2]]],
            [[0, 2, 4], [0, 1, 1, 1, 3]],
        ),
        (R.from_tensor(np.zeros((0, 3), np.int32)), [], [[0]]),
        (R.from_tensor(np.zeros((3, 0), np.int32)), [[], [], []], [[0, 0, 0, 0]]),
        (R.from_tensor(np.zeros((3, 0), np.int32), padding=0), [[], [], []], [[0, 0, 0, 0]]),
        (R.from_tensor([["a", ""], ["b", "c"]], padding=""), [[b"a"], [b"b", b"c"]], [[0, 1, 3]]),
        (R.from_sparse(SPARSE([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [4, 5])), [[1, 2], [], [3], []], [[0, 2, 2, 3, 3]]),
        # TensorFlow gives the values of rows in a wrong order to the wrong rows.
        (R.from_sparse(SPARSE([[1, 0], [0, 0]], [1, 2], [2, 5])), [[2], [1]], [[0, 1, 2]]),
        (R.from_sparse(SPARSE(np.zeros((0, 2), np.int64), NO_VALUES, [3, 2])), [[], [], []], [[0, 0, 0, 0]]),
        (DEEP.merge_dims(0, 1), [[1, 2], [], [3]], [[0, 2, 2, 3]]),
        (DEEP.merge_dims(1, 2), [[1, 2], [], [3]], [[0, 2, 2, 3]]),
        (DEEP.merge_dims(-2, -1), [[1, 2], [], [3]], [[0, 2, 2, 3]]),
        (DEEP.merge_dims(1, 1), DEEP.to_list(), [[0, 2, 2, 3], [0, 2, 2, 3]]),
        (INNER.merge_dims(1, 2), [[[0, 1], [2, 3], [4, 5], [6, 7]], [[8, 9], [10, 11]]], [[0, 4, 6]]),
        (INNER.merge_dims(2, 3), [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10, 11]]], [[0, 2, 3]]),
        (INNER.merge_dims(1, 3), [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11]], [[0, 8, 12]]),
    ],
)
def test_rows(made: Any, rows: Any, splits: Any) -> None:
    assert made.to_list() == rows
    assert [each.tolist() for each in made.nested_row_splits] == splits
    assert all(each.dtype == np.int64 for each in made.nested_row_splits)
    assert R.from_row_splits(made.values, made.row_splits).to_list() == rows


@pytest.mark.parametrize(
    "found, wanted",
    [
        (DEEP.merge_dims(0, 2), [1, 2, 3]),
        (DEEP.merge_dims(0, -1), [1, 2, 3]),
        (INNER.merge_dims(0, 1), [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]),
        (INNER.merge_dims(0, 2), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]),
        (INNER.merge_dims(0, 3), [*range(12)]),
        (R.from_list([[1, 2], [], [3]]).row_starts(), [0, 2, 2]),
        (R.from_list([[1, 2], [], [3]]).row_limits(), [2, 2, 3]),
        (R.from_list([[1, 2], [], [3]]).value_rowids(), [0, 0, 2]),
        (DEEP.nested_row_lengths()[1], [2, 0, 1]),
        (DEEP.bounding_shape(), [3, 2, 2]),
        (DEEP.bounding_shape(axis=0), 3),
        (DEEP.bounding_shape(axis=[1, 2]), [2, 2]),
        (INNER.bounding_shape(), [2, 2, 2, 2]),
        (R.from_row_lengths(NO_VALUES, NO_ROWS).bounding_shape(), [0, 0]),
    ],
)
def test_arrays(found: Any, wanted: Any) -> None:
    assert isinstance(found, np.ndarray | np.integer)
    assert found.tolist() == wanted


def test_the_dtype_of_a_bounding_shape_may_be_said() -> None:
    assert DEEP.bounding_shape(out_type="int32").dtype == np.int32


@pytest.mark.parametrize(
    "call, says",
    [
        (
            lambda: R.from_value_rowids(FOUR, [0, 0, 2, 2], nrows=2),
            "nrows must be at least 3, the rows of values, got 2",
        ),
        (
            lambda: R.from_value_rowids(FOUR, [0, 2, 0, 2]),
            r"value_rowids must be at least 0, not fall, .* \[0, 2, 0, 2\]",
        ),
        (lambda: R.from_value_rowids(FOUR, [-1, 0, 0, 2]), "value_rowids must be at least 0"),
        (lambda: R.from_value_rowids(FOUR, [0, 0]), "one for each of the 4 values"),
        (lambda: R.from_value_rowids(FOUR, [0.5] * 4), "value_rowids must be a vector of integers"),
        (
            lambda: R.from_row_starts(FOUR, [1, 2]),
            r"row_starts must not fall, and go from 0 to at most the 4 .* \[1, 2\]",
        ),
        (lambda: R.from_row_starts(FOUR, [0, 5]), "row_starts must not fall"),
        (lambda: R.from_row_starts(FOUR, [0, 3, 2]), "row_starts must not fall"),
        (lambda: R.from_row_starts(FOUR, NO_ROWS), "row_starts must not fall"),  # TensorFlow's splits begin at 4 then
        (lambda: R.from_row_limits(FOUR, [2, 3]), r"row_limits must .* end with the 4 values, got \[2, 3\]"),
        (lambda: R.from_row_limits(FOUR, [-1, 4]), "row_limits must be at least 0"),
        (lambda: R.from_uniform_row_length(FOUR, 3), "must be the 4 values, got 3 times 1"),
        (lambda: R.from_uniform_row_length(FOUR, 2, nrows=3), "must be the 4 values, got 2 times 3"),
        (lambda: R.from_uniform_row_length(FOUR, -1), "must be the 4 values, got -1"),
        (lambda: R.from_tensor(PADDED, lengths=[2, 0]), "a length for each of 3 rows, got 2"),
        (lambda: R.from_tensor([1, 2]), "an array of 1 dimensions, which must be 2 or more"),
        (lambda: R.from_tensor(PADDED, lengths=[1, 1, 1], padding=0), "lengths or padding, but not both"),
        (lambda: R.from_tensor(DEEP), "got a RaggedTensor, which is one already"),
        (lambda: R.from_sparse(SPARSE([[0, 0], [0, 2]], [1, 2], [2, 5])), "rows without gaps"),
        (lambda: R.from_sparse(SPARSE([[0, 0, 0]], [1], [1, 1, 1])), r"two dimensions, got the shape \[1, 1, 1\]"),
        (lambda: DEEP.merge_dims(2, 1), "outer_axis must not be behind inner_axis, got 2 and 1"),
        (lambda: DEEP.merge_dims(0, 3), "inner_axis must be from -3 to 2, got 3"),
        (lambda: DEEP.bounding_shape(axis=9), "axis must be from -3 to 2, got 9"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        call()
