# SPDX-License-Identifier: Apache-2.0
"""A job of several workers on threads of one process: what each of them would read, without the job."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from distinput.data.dataset import Dataset
from distinput.distribute.collectives.multi_worker_strategy import MultiWorkerMirroredStrategy
from distinput.distribute.core.mirrored import MirroredStrategy
from distinput.distribute.engines.local import open_groups
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.plan.check import at_least
from distinput.run.threads import mapped

T = TypeVar("T")


def rehearse(
    dataset: Dataset[Any], workers: int, replicas: int, body: Callable[[DistributedDataset, Any], T]
) -> list[T]:
    """Distribute a dataset over a job that runs on threads of this process, and ask each worker something.

    Args:
      dataset: of global batches; each worker gets passes of its own.
      workers: W, at least 1.
      replicas: of each worker, at least 1.
      body: called on every worker with its distributed dataset and its strategy; where it takes steps, all workers must.

    Returns:
      What `body` returned, worker by worker.

    Raises:
      InvalidArgumentError: fewer than one worker or replica; the dataset cannot be distributed.
      Exception: what `body` raised first.

    >>> import distinput as di
    >>> numbers = di.data.Dataset.range(8).batch(4)
    >>> rehearse(numbers, 2, 1, lambda distributed, strategy: [step.values[0].tolist() for step in distributed])
    [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    """
    at_least("rehearse", "workers", workers, 1)
    devices = [f"CPU:{number}" for number in range(at_least("rehearse", "replicas", replicas, 1))]
    if workers == 1:
        strategy = MirroredStrategy(devices)
        return [body(strategy.experimental_distribute_dataset(dataset), strategy)]
    with ExitStack() as stack:
        groups = open_groups(workers)
        for group in groups:
            stack.callback(group.close)

        def work(worker: int) -> T:
            own: Dataset[Any] = Dataset(dataset.node)
            with MultiWorkerMirroredStrategy(
                devices=devices, backend="threads", collectives=groups[worker]
            ) as strategy:
                return body(strategy.experimental_distribute_dataset(own), strategy)

        return mapped(work, range(workers), workers)
