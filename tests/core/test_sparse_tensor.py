# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors."""

import numpy as np

from distinput.core.sparse_tensor import SparseTensor


def test_values_stand_at_their_places() -> None:
    sparse = SparseTensor(np.array([[0, 1], [1, 0]]), np.array([b"a", b"b"], object), np.array([2, 2]))
    assert (sparse.shape, sparse.dtype) == ((2, 2), object)
    assert sparse.to_dense().tolist() == [[b"", b"a"], [b"b", b""]]
    assert sparse.to_dense(b"?").tolist() == [[b"?", b"a"], [b"b", b"?"]]
