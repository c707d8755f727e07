# SPDX-License-Identifier: Apache-2.0
"""Loaders of TensorFlow."""

from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["distributed", "shards"]

_MOST = 8
"""Devices of the CPU that are made, since their number cannot be changed later."""


def distributed(records: int, rank: int, ranks: int, global_batch: int, seed: int) -> Any:
    """What a replica of a `MirroredStrategy` gets of `experimental_distribute_dataset`."""
    tf = _tensorflow()
    strategy = tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(ranks)])
    dataset = tf.data.Dataset.range(records).shuffle(records, seed=seed).batch(global_batch)
    return _OfReplica(strategy.experimental_distribute_dataset(dataset), rank)


def shards(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """Every n-th element, by `shard`, in batches."""
    dataset = _tensorflow().data.Dataset.range(records).shard(ranks, rank)
    return _Arrays(dataset.shuffle(records, seed=seed).batch(batch))


class _Arrays:
    """A dataset whose elements are arrays."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dataset.as_numpy_iterator())


class _OfReplica:
    """One replica's part of the steps of all."""

    def __init__(self, steps: Any, rank: int) -> None:
        self._steps, self._rank = steps, rank

    def __iter__(self) -> Iterator[Any]:
        for step in self._steps:
            values = getattr(step, "values", (step,))  # of one replica, a step is its own
            yield values[self._rank].numpy()


@cache
def _tensorflow() -> Any:
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(_MOST)]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    return tf
