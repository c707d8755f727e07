# SPDX-License-Identifier: Apache-2.0
"""What does it cost to hand a global batch to 8 replicas?"""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "a step of 1024 x 256 float32 dealt to 8 replicas, PerReplica included"
NOTES = """
A loop still holds one step while it asks for the next. So copies that the replicas own need two buffers of 1 MB. One of them
fits into the second cache of a core, both together do not. `two buffers by turns` is what bare NumPy takes for the same
copies.
"""
ROWS, WIDTH, REPLICAS = 1024, 256, 8
DEVICES = [f"CPU:{i}" for i in range(REPLICAS)]


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def steps_of(count: int) -> Any:
    """The global batches, [count, 1024, 256]."""
    return np.random.default_rng(SEED).standard_normal((count, ROWS, WIDTH), np.float32)


def cases(folder: Path, scale: float) -> list[Case]:
    """Views of the global batch, and copies that the replicas own."""
    count = scaled(100, scale, 3)
    units = {"step": count, "byte": 4 * count * ROWS * WIDTH}

    def ours(copied: bool = False) -> Any:
        import distinput as di

        strategy = di.distribute.MirroredStrategy(DEVICES)
        steps = di.data.Dataset.from_tensor_slices(steps_of(count))
        return strategy.experimental_distribute_dataset(steps.copied() if copied else steps)

    def views() -> Work:
        dataset = ours()
        return delivering(lambda: dataset)

    def copies() -> Work:
        """Each step is copied once, and what the replicas get are parts of that copy."""
        dataset = ours(copied=True)
        return delivering(lambda: dataset)

    def tensorflow() -> Work:
        import tensorflow as tf

        host = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(host, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
        strategy = tf.distribute.MirroredStrategy(DEVICES)
        dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(steps_of(count)))
        return delivering(lambda: dataset)

    return [
        Case(
            "views",
            units,
            [
                Contender("distinput", "ours", views, most={"seconds": 5e-6}),
                Contender("plain slices", "limit", lambda: _slicing(count)),
                Contender("tf MirroredStrategy", "peer", tensorflow, ("tensorflow",), 1000.0),
            ],
        ),
        Case(
            "owned copies",
            units,
            [
                Contender("distinput", "ours", copies),
                Contender("memcpy", "limit", lambda: _copying(count, 1), reach=0.9),
                Contender("memcpy, two buffers by turns", "limit", lambda: _copying(count, 2)),
                Contender("tf MirroredStrategy", "peer", tensorflow, ("tensorflow",), 100.0),
            ],
        ),
    ]


def _slicing(count: int) -> Work:
    """Eight slices of every step in a tuple."""
    data = steps_of(count)
    each = ROWS // REPLICAS
    bounds = [(i * each, (i + 1) * each) for i in range(REPLICAS)]

    def once() -> None:
        for step in data:
            tuple([step[a:b] for a, b in bounds])

    return Work(once, lambda: in_order(tuple([step[a:b] for a, b in bounds]) for step in data))


def _copying(count: int, number: int) -> Work:
    """Every step copied once, to so many buffers, which are warm."""
    data = steps_of(count)
    buffers = [np.empty((REPLICAS, ROWS // REPLICAS, WIDTH), np.float32) for _ in range(number)]

    def copies() -> Iterator[Any]:
        for step, buffer in zip(data, cycle(buffers), strict=False):
            np.copyto(buffer, step.reshape(buffer.shape))
            yield list(buffer)

    def once() -> None:
        for _ in copies():
            pass

    return Work(once, lambda: in_order(copies()))
