# SPDX-License-Identifier: Apache-2.0
"""What does a shuffled epoch over data in memory cost?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "images uint8[784] with labels: shuffle(10000).batch(256), and global_shuffle().batch(256)"
BATCH = 256


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def images(rows: int) -> tuple[Any, Any]:
    """Images [rows, 784] and labels [rows]."""
    random = np.random.default_rng(SEED)
    return random.integers(0, 256, (rows, 784), np.uint8), random.integers(0, 10, rows, np.int64)


def cases(folder: Path, scale: float) -> list[Case]:
    """A buffer, and the whole."""
    rows, buffer = scaled(60_000, scale, 1000), scaled(10_000, scale, 100)
    units = {"batch": -(-rows // BATCH), "row": rows, "byte": rows * 792}

    def ours(whole: bool) -> Work:
        import distinput as di

        source = di.data.Dataset.from_tensor_slices(images(rows))
        shuffled = source.global_shuffle(seed=SEED) if whole else source.shuffle(buffer, seed=SEED)
        dataset = shuffled.batch(BATCH)
        return delivering(lambda: dataset, checksum=in_any_order)

    def tensorflow(whole: bool) -> Work:
        import tensorflow as tf

        source = tf.data.Dataset.from_tensor_slices(images(rows))
        dataset = source.shuffle(rows if whole else buffer).batch(BATCH).prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset, checksum=in_any_order)

    def numbers(whole: bool) -> Work:
        """The best way to do it with tf.data: shuffle numbers, gather a batch at a time."""
        import tensorflow as tf

        pictures, labels = map(tf.constant, images(rows))

        def gathered(picked: Any) -> Any:
            return tf.gather(pictures, picked), tf.gather(labels, picked)

        shuffled = tf.data.Dataset.range(rows).shuffle(rows if whole else buffer).batch(BATCH)
        dataset = shuffled.map(gathered, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset, checksum=in_any_order)

    def torch() -> Work:
        """A batch of indices at a time, as its documentation says for data that is fetched in bulk."""
        from torch import Tensor, from_numpy, tensor
        from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

        pictures, labels = map(from_numpy, images(rows))

        class Images(Dataset[tuple[Tensor, Tensor]]):  # type: ignore[misc]
            def __len__(self) -> int:
                return rows

            def __getitem__(self, picked: list[int]) -> tuple[Tensor, Tensor]:
                numbers = tensor(picked)
                return pictures[numbers], labels[numbers]

        source = Images()
        sampler = BatchSampler(RandomSampler(source), BATCH, drop_last=False)
        loader = DataLoader(source, sampler=sampler, batch_size=None)
        return delivering(lambda: loader, checksum=in_any_order)

    def grain() -> Work:
        """Its global shuffle, over batches of numbers that one function gathers."""
        import grain.python as grain

        pictures, labels = images(rows)
        shuffled = grain.MapDataset.range(rows).seed(SEED).shuffle().batch(BATCH)
        dataset = shuffled.map(lambda picked: (pictures.take(picked, 0), labels.take(picked, 0)))
        return delivering(lambda: dataset, checksum=in_any_order)

    needs = ("tensorflow",)
    return [
        Case(
            name,
            units,
            [
                Contender("distinput", "ours", lambda whole=whole: ours(whole)),  # type: ignore[misc]
                Contender("permutation + take", "limit", lambda: _taking(rows), reach=0.9),
                Contender("tf.data", "peer", lambda whole=whole: tensorflow(whole), needs, 20.0),  # type: ignore[misc]
                Contender("tf.data, numbers + gather", "peer", lambda whole=whole: numbers(whole), needs, 8.0),  # type: ignore[misc]
                *(
                    [
                        Contender("torch, batches of indices", "peer", torch, ("torch",), 8.0),
                        Contender("grain, numbers + gather", "peer", grain, ("grain",), 8.0),
                    ]
                    if whole  # neither has a shuffle by a buffer of rows that it can reach by number
                    else []
                ),
            ],
        )
        for name, whole in (("buffer", False), ("global", True))
    ]


def _taking(rows: int) -> Work:
    pictures, labels = images(rows)
    random = np.random.default_rng(SEED)

    def epoch() -> Iterator[Any]:
        order = random.permutation(rows)
        for first in range(0, rows, BATCH):
            picked = order[first : first + BATCH]
            yield pictures.take(picked, 0), labels.take(picked, 0)

    return delivering(epoch, checksum=in_any_order)
