# SPDX-License-Identifier: Apache-2.0
"""Reading and writing some rows of a variable."""

import numpy as np
import pytest

import distinput as di


def test_rows_at_places() -> None:
    v = di.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert v.sparse_read([2, 0]).tolist() == [[5, 6], [1, 2]]
    assert v.sparse_read(1).tolist() == [3, 4]
    assert v.gather_nd([[2, 1], [0, 0]]).tolist() == [6, 1]
    assert v.gather_nd([1]).tolist() == [3, 4]
    for wrong in (lambda: v.sparse_read([3]), lambda: v.gather_nd([[0, -1]]), lambda: v.gather_nd([[0, 0, 0]])):
        with pytest.raises(di.errors.InvalidArgumentError, match="indices"):
            wrong()


def test_scatter() -> None:
    v = di.Variable([1.0, 2.0, 3.0])
    v.scatter_mul(di.IndexedSlices([10.0], [1])).scatter_div(di.IndexedSlices([2.0], [0]))
    v.scatter_max(di.IndexedSlices([7.0], [2])).scatter_min(di.IndexedSlices(0.0, [2]))
    assert v.numpy().tolist() == [0.5, 20, 0]
    v.scatter_nd_add([[0], [0]], [1.0, 1.0]).scatter_nd_sub([[1]], [5.0]).scatter_nd_update([[2]], [9.0])
    v.scatter_nd_max([[0]], [3.0]).scatter_nd_min([[1]], [3.0])
    assert v.numpy().tolist() == [3, 3, 9]
    with pytest.raises(TypeError, match="scatter_add: sparse_delta is not IndexedSlices"):
        v.scatter_add([1.0])


def test_scatter_of_a_batch() -> None:
    v = di.Variable(np.zeros((2, 3), np.int32))
    v.batch_scatter_update(di.IndexedSlices(values=[[1, 2], [3, 4]], indices=[[0, 2], [1, 0]]))
    assert v.numpy().tolist() == [[1, 0, 2], [4, 3, 0]]
