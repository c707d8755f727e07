# SPDX-License-Identifier: Apache-2.0
"""Law: what is saved under one strategy is restored under any other, whatever holds the variables there."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import distinput as di

SHAPE = (5, 2)


@contextlib.contextmanager
def strategies() -> Iterator[dict[str, Any]]:
    """One strategy of each kind, those of parameter servers with whole and with split variables."""
    distribute: Any = di.distribute
    made = {
        "none": None,
        "one device": distribute.OneDeviceStrategy("CPU:0"),
        "mirrored": distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]),
        "central storage": distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]),
        "one worker": distribute.MultiWorkerMirroredStrategy(),
        "tpu": distribute.TPUStrategy(),
    }
    split = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    cluster = di.testing.local_parameter_server_cluster
    with (
        cluster(num_workers=1, num_ps=2, engine="threads") as (whole, _),
        cluster(num_workers=1, num_ps=2, engine="threads", variable_partitioner=split) as (parts, _),
    ):
        yield {**made, "servers": whole, "servers, split": parts}


def built(strategy: Any) -> Any:
    """What a program builds: variables of value 0."""
    with contextlib.nullcontext() if strategy is None else strategy.scope():
        sync, add = di.VariableSynchronization.ON_READ, di.VariableAggregation.SUM
        total = (
            di.Variable(np.float32(0))
            if isinstance(strategy, di.distribute.ParameterServerStrategy)
            else di.Variable(np.float32(0), synchronization=sync, aggregation=add)
        )
        return di.train.Checkpoint(model={"w": di.Variable(np.zeros(SHAPE, np.float32))}, total=total)


def test_every_strategy_restores_what_any_other_saved(tmp_path: Any) -> None:
    pytest.importorskip("jax")
    value = np.arange(10, dtype=np.float32).reshape(SHAPE)
    with strategies() as every:
        for number, (one, saving) in enumerate(every.items()):
            checkpoint = built(saving)
            checkpoint.model["w"].assign(value + number)
            checkpoint.total.assign(6.0 + number)
            path = checkpoint.save(tmp_path / one)
            for other, restoring in every.items():
                restored = built(restoring)
                restored.restore(path).assert_consumed()
                assert np.array_equal(np.asarray(restored.model["w"]), value + number), (one, other)
                assert float(restored.total) == pytest.approx(6 + number), (one, other)
