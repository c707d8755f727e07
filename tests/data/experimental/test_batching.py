# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply` that batch and pad; the expected elements are TensorFlow 2.21's."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

X = di.data.experimental
RANGE = di.data.Dataset.range
LISTS = RANGE(1, 5).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))


def test_pad_to_cardinality_says_which_elements_are_real() -> None:
    ds = di.data.Dataset.from_tensor_slices({"a": [1, 2], "s": ["x", "y"], "v": [[1.0, 2.0], [3.0, 4.0]]})
    padded = ds.apply(X.pad_to_cardinality(4))
    assert len(padded) == 4
    assert padded.element_spec == {**ds.element_spec, "valid": di.TensorSpec([], "bool")}
    assert padded.to_list() == [
        {"a": 1, "s": b"x", "v": [1.0, 2.0], "valid": True},
        {"a": 2, "s": b"y", "v": [3.0, 4.0], "valid": True},
        {"a": 0, "s": b"", "v": [0.0, 0.0], "valid": False},
        {"a": 0, "s": b"", "v": [0.0, 0.0], "valid": False},
    ]
    assert [x["m"] for x in ds.apply(X.pad_to_cardinality(2, "m"))] == [True, True]


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda ds: ds.map(lambda x: (x["a"],)), "elements must be dicts, got"),
        (lambda ds: ds.map(lambda x: {"valid": x["a"]}), "mask_key must be a new name, got 'valid'"),
        (lambda ds: ds.filter(lambda x: True), "the number of elements must be known and finite, got -2"),
        (lambda ds: ds.repeat(), "the number of elements must be known and finite, got -1"),
        (lambda ds: ds.repeat(2), "the dataset must have at most 3 elements, got 4"),
        (lambda _: X.from_list([{"a": [1]}, {"a": [1, 2]}]), "the shape of each component must be known, got"),
    ],
)
def test_pad_to_cardinality_refuses(change: Any, says: str) -> None:
    ds = di.data.Dataset.from_tensor_slices({"a": [1, 2]})
    with pytest.raises(InvalidArgumentError, match=f"pad_to_cardinality: {says}"):
        change(ds).apply(X.pad_to_cardinality(3))


def test_map_and_batch_is_both() -> None:
    assert RANGE(5).apply(X.map_and_batch(lambda x: x + 1, 2)).to_list() == [[1, 2], [3, 4], [5]]
    made = RANGE(5).apply(X.map_and_batch(lambda x: x + 1, 2, num_parallel_batches=2, drop_remainder=True))
    assert made.to_list() == [[1, 2], [3, 4]]
    with pytest.raises(InvalidArgumentError, match="map_and_batch: give num_parallel_batches or num_parallel_calls"):
        X.map_and_batch(lambda x: x, 2, 2, num_parallel_calls=2)


def test_others_are_the_methods() -> None:
    assert LISTS.apply(X.bucket_by_sequence_length(len, [3], [2, 2])).to_list() == [
        [[1, 0], [2, 2]],
        [[3, 3, 3, 0], [4, 4, 4, 4]],
    ]
    assert LISTS.apply(X.dense_to_ragged_batch(2)).to_list() == LISTS.ragged_batch(2).to_list()
    assert next(iter(LISTS.apply(X.dense_to_sparse_batch(2, [4])))).to_dense().tolist() == [[1, 0, 0, 0], [2, 2, 0, 0]]
    assert RANGE(3).batch(2).apply(X.unbatch()).to_list() == [0, 1, 2]
