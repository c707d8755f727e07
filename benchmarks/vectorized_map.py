# SPDX-License-Identifier: Apache-2.0
"""What does a call of a per-element function cost, where a whole block can take its place?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "from_tensor_slices, map(function of NumPy), batch(256): time for each element"
BATCH = 256

MEAN, SCALE = np.array([0.48, 0.45, 0.4], np.float32), np.array([0.2, 0.2, 0.2], np.float32)
EYE = np.eye(10, dtype=np.float32)


def affine(x: Any) -> Any:
    """Arithmetic of a number."""
    return x * 2 + 1


def one_hot(x: Any) -> Any:
    """A row of a table."""
    return EYE[x]


def leaky(x: Any) -> Any:
    """A choice for each value of a vector."""
    return np.where(x > 0, x, np.float32(0.1) * x)


def features(x: Any) -> Any:
    """Several results of a vector."""
    return np.abs(x), np.concatenate([x[:4], x[-4:]]), x.max()


def parity(x: Any) -> Any:
    """A number that goes one of two ways."""
    return x * 2 if x % 2 == 0 else x + 1


def median(x: Any) -> Any:
    """The value in the middle of a vector."""
    return np.median(x)


def standard(x: Any) -> Any:
    """A vector with mean 0 and deviation 1; measured."""
    return (x - x.mean()) / (x.std() + np.float32(1e-6))


def image(x: Any) -> Any:
    """A small image, cropped, flipped and normalised."""
    return (x[2:14, 2:14][:, ::-1].astype(np.float32) / np.float32(255) - MEAN) / SCALE


@dataclass(frozen=True)
class Job:
    """A function and its elements.

    Args:
      function: of one element.
      rows: how many elements at full scale.
      data: makes them.
      how: `vectorize=`.
      reach: how many times faster than calls for each element it should be.
      tf: the same function of TensorFlow, if it gives the same bits there.
    """

    function: Callable[[Any], Any]
    rows: int
    data: Callable[[int, Any], Any]
    how: Any = "auto"
    reach: float | None = None
    tf: Callable[[Any, Any], Any] | None = None


def _numbers(n: int, rng: Any) -> Any:
    return rng.normal(size=n).astype(np.float32)


def _labels(n: int, rng: Any) -> Any:
    return rng.integers(0, 10, n)


def _vectors(n: int, rng: Any) -> Any:
    return rng.normal(size=(n, 64)).astype(np.float32)


def _images(n: int, rng: Any) -> Any:
    return rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)


JOBS: dict[str, Job] = {
    "affine": Job(affine, 200_000, _numbers, reach=5.0, tf=lambda _, x: x * 2 + 1),
    "one_hot": Job(one_hot, 100_000, _labels, reach=5.0, tf=lambda tf, x: tf.gather(EYE, x)),
    "leaky": Job(leaky, 50_000, _vectors, reach=5.0, tf=lambda tf, x: tf.where(x > 0, x, np.float32(0.1) * x)),
    "features": Job(features, 50_000, _vectors, reach=5.0),
    "parity": Job(parity, 100_000, _labels, reach=5.0, tf=lambda tf, x: tf.where(x % 2 == 0, x * 2, x + 1)),
    "median": Job(median, 20_000, _vectors, reach=5.0),
    "standard": Job(standard, 20_000, _vectors, how=True, reach=3.0),
    "image": Job(image, 10_000, _images),
}


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Each function: whole blocks, calls for each element, and peers."""
    return [_case(name, job, scaled(job.rows, scale, 300)) for name, job in JOBS.items()]


def _case(name: str, job: Job, n: int) -> Case:
    def data() -> Any:
        return job.data(n, np.random.default_rng(SEED))

    def ours(how: Any) -> Callable[[], Work]:
        def load() -> Work:
            import distinput as di

            dataset = di.data.Dataset.from_tensor_slices(data()).map(job.function, vectorize=how).batch(BATCH)
            return delivering(lambda: dataset)

        return load

    def blocks() -> Work:
        rows = data()

        def batches() -> Iterator[Any]:
            for first in range(0, n, BATCH):
                made = [job.function(row) for row in rows[first : first + BATCH]]
                yield tuple(map(np.stack, zip(*made, strict=True))) if isinstance(made[0], tuple) else np.stack(made)

        return delivering(batches)

    def tensorflow() -> Work:
        import tensorflow as tf

        assert job.tf is not None
        call = job.tf
        dataset = tf.data.Dataset.from_tensor_slices(data()).map(lambda x: call(tf, x)).batch(BATCH)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset)

    def grain() -> Work:
        import grain.python as grain

        dataset = grain.MapDataset.source(data()).map(job.function).batch(BATCH)
        return delivering(lambda: dataset)

    peers = [Contender("grain", "peer", grain, ("grain",), 3.0)]
    if job.tf is not None:
        peers.append(Contender("tf.data", "peer", tensorflow, ("tensorflow",), 1.0))
    return Case(
        name,
        {"element": n},
        [
            Contender("distinput", "ours", ours(job.how)),
            Contender("vectorize=False", "peer", ours(False), (), job.reach),
            Contender("the calls alone", "peer", blocks),
            *peers,
        ],
    )
