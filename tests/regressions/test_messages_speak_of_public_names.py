# SPDX-License-Identifier: Apache-2.0
"""Messages name the op and what was given as users know it, never a class from within."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di

D = di.data.Dataset
DATASET = D.range(2)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (
            lambda: DATASET.batch(DATASET),
            "batch: batch_size must be an integer, got <Dataset range(first=0, stop=2): 2 elements of int64>",
        ),
        (
            lambda: DATASET.map(DATASET),
            "map: map_func must be a function, got <Dataset range(first=0, stop=2): 2 elements of int64>",
        ),
        (
            lambda: DATASET.padded_batch(2, [], DATASET),
            "padded_batch: the padding value of the element must be a",
        ),
        (
            lambda: DATASET.padded_batch(2, [], object()),
            "padded_batch: the padding value of the element must be a",
        ),
        (
            lambda: D.from_tensors("a").padded_batch(2, [], 1),
            "padded_batch: the padding value of the element must have its dtype string, got int32",
        ),
        (
            lambda: DATASET.scan(DATASET, lambda s, x: (s, x)),
            "scan: the carried value must be a nest of arrays, got <Dataset",
        ),
        (
            lambda: DATASET.reduce(DATASET, lambda s, x: s),
            "reduce: the carried value must be a nest of arrays, got <Dataset",
        ),
        (lambda: DATASET.enumerate("x"), "enumerate: start must be an integer, got 'x'"),
        (lambda: DATASET.enumerate(1.5), "enumerate: start must be an integer, got 1.5"),
        (
            lambda: DATASET.bucket_by_sequence_length(len, None, [1]),
            "bucket_by_sequence_length: bucket_boundaries must be a list",
        ),
        (
            lambda: DATASET.bucket_by_sequence_length(len, ["x"], [1, 1]),
            "bucket_by_sequence_length: bucket_boundaries must be an integer",
        ),
        (
            lambda: DATASET.concatenate(D.from_tensors("a")),
            "concatenate: all datasets must have the same dtypes, got int64 and string",
        ),
    ],
)
def test_a_wrong_argument_is_named(wrong: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError) as found:
        wrong()
    assert str(found.value).startswith(says)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (
            lambda: D.from_tensors(10**30),
            "the integer 1000000000000000000000000000000 does not fit into int64; no dtype holds it: give a float",
        ),
        (lambda: DATASET.batch(10**30), "batch: batch_size must be at most 9223372036854775807, got 1"),
        (
            lambda: DATASET.group_by_window(int, lambda k, d: d, 10**30),
            "group_by_window: window_size must be at most 9223",
        ),
        (
            lambda: D.from_generator(lambda: iter([1, 2]), "int64").padded_batch(2, [3]).to_list(),
            "padded_batch: all elements must have the rank of their padded shape [3], got shape []",
        ),
        (
            lambda: D.from_generator(lambda: iter([[[1]], [[2]]]), "int64").padded_batch(2, [3]).to_list(),
            "padded_batch: all elements must have the rank of their padded shape [3], got shape [1, 1]",
        ),
    ],
)
def test_a_wrong_size_is_named(wrong: Callable[[], Any], says: str) -> None:
    with pytest.raises(di.errors.InvalidArgumentError) as found:
        wrong()
    assert str(found.value).startswith(says)


def test_numbers_of_numpy_may_be_as_large_as_they_are() -> None:
    assert D.from_tensors(np.uint64(2**64 - 1)).to_list() == [2**64 - 1]
    assert D.from_tensors(2**63 - 1).to_list() == [2**63 - 1]
