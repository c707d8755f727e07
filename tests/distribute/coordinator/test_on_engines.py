# SPDX-License-Identifier: Apache-2.0
"""The same program gives the same results on every engine."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import distinput as di

PACKAGES = {"dask": "distributed", "ray": "ray"}


def opened(engine: str, **options: Any) -> Any:
    package = PACKAGES.get(engine)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed (`pip install 'distinput[{engine}]'`)")
    return di.testing.local_parameter_server_cluster(num_workers=2, num_ps=2, engine=engine, **options)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["threads", "dask", "ray"])
def test_a_program_with_all_that_a_coordinator_does(engine: str) -> None:
    partitioner = di.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    with opened(engine, variable_partitioner=partitioner) as (strategy, coordinator):
        with strategy.scope():
            total, weights = di.Variable(0), di.Variable(np.zeros((4, 3), np.float32))
        batches = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(1000).batch(10)))
        seen = coordinator.create_per_worker_resource(list)

        def step(batch: Any, mine: Any, scale: float) -> int:
            rows = next(batch)
            total.assign_add(int(rows.sum()))
            weights.assign_add(np.full((4, 3), scale, np.float32))
            mine.append(rows[0])
            return int(rows.sum())

        results = [coordinator.schedule(step, args=(batches, seen), kwargs={"scale": 0.5}) for _ in range(40)]
        coordinator.join()
        assert coordinator.done()
        sums = coordinator.fetch(results)
        assert total.numpy() == sum(sums)
        np.testing.assert_array_equal(np.asarray(weights), np.full((4, 3), 20.0, np.float32))
        first = [list(map(int, mine)) for mine in coordinator.fetch(seen)]
        assert all(mine == [10 * step for step in range(len(mine))] for mine in first)
        assert sum(map(len, first)) == 40

        def fail() -> None:
            raise KeyError("of the user")

        coordinator.schedule(fail)
        with pytest.raises(KeyError, match="of the user"):
            coordinator.join()
        assert coordinator.schedule(lambda: 7).fetch() == 7
