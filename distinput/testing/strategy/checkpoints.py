# SPDX-License-Identifier: Apache-2.0
"""What is saved under a strategy is restored under it, and under another one."""

import os
import tempfile
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute import MirroredStrategy, Variable, VariableAggregation, VariableSynchronization
from distinput.distribute.core.strategy import Strategy
from distinput.testing.strategy.comparing import each_replica, same
from distinput.train import Checkpoint

__all__ = ["check_checkpoint"]

_ROWS, _BATCH = 17, 4


class _Job:
    """What a training job keeps: variables of each kind, and its place in the data."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.mean = Variable(np.zeros(2, np.float32), aggregation=VariableAggregation.MEAN)
            self.total = Variable(
                np.zeros(2, np.float32),
                aggregation=VariableAggregation.SUM,
                synchronization=VariableSynchronization.ON_READ,
            )
        dataset = Dataset.range(_ROWS).shuffle(_ROWS, seed=5).batch(_BATCH)
        self.iterator = iter(strategy.experimental_distribute_dataset(dataset))
        self.checkpoint = Checkpoint(mean=self.mean, total=self.total, iterator=self.iterator)

    def step(self, values: Any) -> bool:
        """Take a step; False at the end of the data."""
        self.batch = self.iterator.get_next_as_optional()
        if not self.batch.has_value():
            return False

        def step(value: Any) -> None:
            self.mean.assign_add(value * 1)
            self.total.assign_add(value * 1)

        self.strategy.run(step, args=(values,))
        return True

    def rows(self) -> list[int]:
        """The rows of the batches that are left, in no order within a batch."""
        left: list[int] = []
        while (batch := self.iterator.get_next_as_optional()).has_value():
            left += np.sort(self.strategy.gather(batch.get_value(), axis=0)).tolist()
        return left

    def compare(self, where: str, mean: Any, total: Any, rows: list[int]) -> None:
        same(f"a mirrored variable, restored {where}", self.mean.numpy(), mean)
        same(f"a variable summed on read, restored {where}", self.total.numpy(), total)
        same(f"the rows after a restart {where}", self.rows(), rows)


def check_checkpoint(strategy: Strategy) -> None:
    """Variables and the place in the data come back under the same strategy, and under one with a single replica."""
    values, every = each_replica(strategy, dtype=np.float32)  # which devices without float64 keep as it is
    job = _Job(strategy)
    for _ in range(2):
        job.step(values)
    with tempfile.TemporaryDirectory() as folder:
        path = job.checkpoint.write(_of_first_worker(strategy, os.path.join(folder, "saved")))
        mean, total = 2 * every.mean(axis=0), 2 * every.sum(axis=0)
        while job.step(values):
            pass
        job.checkpoint.read(path).assert_consumed()
        rows = job.rows()
        if len(rows) != _ROWS - 2 * _BATCH:
            raise AssertionError(f"after a restart at row {2 * _BATCH} of {_ROWS} there must be the rest, got {rows}")
        again = _Job(strategy)
        again.checkpoint.read(path).assert_consumed()
        again.compare("under the same strategy", mean, total, rows)
        alone = _Job(MirroredStrategy(["CPU:0"]))  # on every worker, each of which gets what the first one reads
        alone.checkpoint.read(path).assert_consumed()
        alone.compare("under one replica", mean, total, rows)
        _of_first_worker(strategy, "done")  # nobody reads the file any more


def _of_first_worker(strategy: Strategy, text: str) -> str:
    """What the first worker says; all workers have come here when this returns."""
    line = np.frombuffer(f"{text}\n".encode(), np.uint8)
    every = strategy.gather(strategy.experimental_distribute_values_from_function(lambda _: line), axis=0)
    return bytes(every).decode().partition("\n")[0]
