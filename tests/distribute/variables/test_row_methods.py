# SPDX-License-Identifier: Apache-2.0
"""Reading and writing some rows of a variable."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.distribute.workers import on_workers


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


@pytest.mark.parametrize("kind", ["scatter_add", "scatter_sub", "scatter_mul", "scatter_div"])
@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
@pytest.mark.parametrize("place", ["mirrored", "central", "workers"])
def test_a_scalar_stands_for_all_rows_whatever_replicas_make_of_them(kind: str, aggregation: str, place: str) -> None:
    def written(strategy: Any, rows: Any) -> Any:
        with strategy.scope():
            v = di.Variable(np.ones((3, 2), "f4"), aggregation=di.VariableAggregation[aggregation])

        def step() -> None:
            first = di.distribute.get_replica_context().replica_id_in_sync_group == 0
            getattr(v, kind)(di.IndexedSlices(rows if first else np.full((2, 2), 4, "f4"), [0, 2]))

        strategy.run(step)
        return v.numpy().tolist()

    def both(strategy: Any, _: int) -> Any:
        return [written(strategy, rows) for rows in (2, np.float32(2), np.full((2, 2), 2, "f4"))]

    devices = ["CPU:0", "CPU:1"]
    if place == "workers":
        results = on_workers([1, 1], both)
    elif place == "central":
        results = [both(di.distribute.experimental.CentralStorageStrategy(devices), 0)]
    else:
        results = [both(di.distribute.MirroredStrategy(devices), 0)]
    for python, scalar, rows in results:
        assert python == scalar == rows
        assert rows[1] == [1, 1]
        assert rows[0] == rows[2] != [1, 1]


def test_replicas_scatter_one_row() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = di.Variable(np.ones((3, 2), "f4"), aggregation=di.VariableAggregation.SUM)
    strategy.run(lambda: v.scatter_add(di.IndexedSlices(3, 1)))
    assert v.numpy().tolist() == [[1, 1], [7, 7], [1, 1]]
