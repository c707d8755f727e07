# SPDX-License-Identifier: Apache-2.0
"""Several replicas in one process, with equal copies of every variable."""

from collections.abc import Sequence
from typing import Any

from distinput.distribute.device_name import device_names
from distinput.distribute.strategy import Strategy

__all__ = ["MirroredStrategy"]


class MirroredStrategy(Strategy):
    """Synchronous replicas in this process, each on a thread of its own.

    Args:
      devices: a name for each replica, such as "CPU:0" or "GPU:1"; None or empty for one CPU. With the threads backend
        names are labels only, so any number of replicas can be made.
      cross_device_ops: accepted for compatibility with TensorFlow, and ignored.
      backend: what the replicas run on.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(devices=["CPU:0", "CPU:1"])
    >>> strategy.num_replicas_in_sync
    2
    >>> dataset = di.data.Dataset.range(4).batch(4)
    >>> [strategy.reduce("SUM", step, axis=0).item() for step in strategy.experimental_distribute_dataset(dataset)]
    [6]

    Source: `tf.distribute.MirroredStrategy`.
    """

    per_replica_input = "made"

    def __init__(
        self, devices: Sequence[str] | None = None, cross_device_ops: Any = None, *, backend: str = "threads"
    ) -> None:
        super().__init__(device_names(devices or ["CPU:0"]), backend=backend)
