# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.core.sparse_tensor import SparseTensor
from distinput.errors import InvalidArgumentError


def test_values_stand_at_their_places() -> None:
    sparse = SparseTensor(np.array([[0, 1], [1, 0]]), np.array([b"a", b"b"], object), np.array([2, 2]))
    assert (sparse.shape, sparse.dtype) == ((2, 2), object)
    assert sparse.to_dense().tolist() == [[b"", b"a"], [b"b", b""]]
    assert sparse.to_dense(b"?").tolist() == [[b"?", b"a"], [b"b", b"?"]]


# Its arrays have two rows each, so they could be taken for rows of a nest.
SPARSE = SparseTensor(np.array([[0, 0], [2, 1]]), np.array([1, 2]), np.array([3, 2]))


@pytest.mark.parametrize(
    "use",
    [
        lambda sparse: sparse.batch(2),
        lambda sparse: sparse.unbatch(),
        lambda sparse: sparse.rebatch(1),
        lambda sparse: di.data.Dataset.from_tensor_slices((SPARSE, np.arange(2))),
        lambda sparse: di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(sparse),
    ],
)
def test_its_arrays_are_no_rows(use: Callable[[Any], Any]) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r": the rows of a SparseTensor cannot be stacked, taken apart or divided"
    ):
        list(use(di.data.Dataset.from_tensors(SPARSE)))


def test_one_replica_is_given_it_whole() -> None:
    strategy = di.distribute.OneDeviceStrategy("CPU:0")
    (step,) = strategy.experimental_distribute_dataset(di.data.Dataset.from_tensors(SPARSE))
    assert step.to_dense().tolist() == SPARSE.to_dense().tolist()
