# SPDX-License-Identifier: Apache-2.0
"""`sparse_batch`: the rules of `tf.data.Dataset.sparse_batch`; the laws are in tests/laws."""

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError

WORDS = di.data.Dataset.from_generator(
    lambda: iter([["a", "b", "c"], ["a", "b"], ["a", "b", "c", "d"]]), output_signature=di.TensorSpec([None], "string")
)


def test_values_in_the_order_of_rows() -> None:
    first, last = WORDS.sparse_batch(2, row_shape=[6])
    assert first.indices.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]
    assert first.values.tolist() == [b"a", b"b", b"c", b"a", b"b"]
    assert first.dense_shape.tolist() == [2, 6]
    assert last.dense_shape.tolist() == [1, 6]  # the last batch may have fewer rows
    assert first.indices.dtype == first.dense_shape.dtype == np.int64
    assert first.to_dense()[1].tolist() == [b"a", b"b", b"", b"", b"", b""]


@pytest.mark.parametrize("row_shape", [[None], [-1], di.TensorShape([None])])
def test_an_unknown_size_is_the_largest_of_the_batch(row_shape: object) -> None:
    assert [batch.dense_shape.tolist() for batch in WORDS.sparse_batch(2, row_shape)] == [[2, 3], [1, 4]]


def test_specs_know_the_sizes_that_are_given() -> None:
    assert WORDS.sparse_batch(2, [None]).element_spec == di.SparseTensorSpec([None, None], "string")
    assert WORDS.sparse_batch(2, [6]).element_spec == di.SparseTensorSpec([None, 6], "string")


def test_zeros_are_values_too_and_rows_may_be_matrices() -> None:
    (batch,) = di.data.Dataset.from_tensor_slices(np.zeros((2, 1, 2))).sparse_batch(2, [1, 2])
    assert batch.indices.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]
    (scalars,) = di.data.Dataset.range(2).sparse_batch(2, [])
    assert (scalars.indices.tolist(), scalars.dense_shape.tolist()) == ([[0], [1]], [2])


def test_a_row_that_is_larger_than_row_shape() -> None:
    batches = iter(WORDS.sparse_batch(1, [3]))
    assert [len(next(batches).values) for _ in range(2)] == [3, 2]
    with pytest.raises(DataLossError, match=r"sparse_batch: every element must fit row_shape \[3\], got one with a"):
        next(batches)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="row_shape must have the rank of the elements"):
        list(WORDS.sparse_batch(2, [1, 2]))
    with pytest.raises(TypeError, match="row_shape must be a list of sizes, got 3"):
        WORDS.sparse_batch(2, 3)
    with pytest.raises(TypeError, match="elements must be single arrays"):
        list(WORDS.enumerate().sparse_batch(2, [None]))
    with pytest.raises(TypeError, match="elements must be single arrays"):
        list(WORDS.ragged_batch(2).sparse_batch(2, [None]))


def test_under_its_older_name() -> None:
    assert len(list(WORDS.apply(di.data.experimental.dense_to_sparse_batch(2, [9])))) == 2
