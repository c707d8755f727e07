# SPDX-License-Identifier: Apache-2.0
"""What does it cost to pad sequences of many lengths?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "sequences of 10 to 2000 int32: padded_batch(64), and bucket_by_sequence_length"
BATCH = 64
BOUNDS = [100, 200, 400, 800, 1200, 1600]


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def sequences(count: int) -> tuple[Any, Any, Any]:
    """Values [m], and where each sequence begins and how long it is, [count]."""
    random = np.random.default_rng(SEED)
    sizes = random.integers(10, 2001, count)
    ends = np.cumsum(sizes)
    return random.integers(1, 30_000, int(ends[-1]), np.int32), ends - sizes, sizes


def cases(folder: Path, scale: float) -> list[Case]:
    """From a function that cuts sequences, from sequences in a cache, and by buckets."""
    count = scaled(20_000, scale, 300)
    _, _, sizes = sequences(count)
    widths = [sizes[first : first + BATCH].max() for first in range(0, count, BATCH)]
    parts = [min(BATCH, count - first) for first in range(0, count, BATCH)]
    units = {"batch": len(parts), "row": count, "byte": 4 * int(np.dot(widths, parts))}

    def ours(cached: bool) -> Any:
        import distinput as di

        flat, starts, sizes = sequences(count)
        made = di.data.Dataset.from_tensor_slices((starts, sizes)).map(lambda a, n: flat[a : a + n])
        return made.cache() if cached else made

    def tensorflow(cached: bool) -> Any:
        import tensorflow as tf

        values, starts, sizes = sequences(count)
        flat = tf.constant(values)
        made = tf.data.Dataset.from_tensor_slices((starts, sizes))
        made = made.map(lambda a, n: flat[a : a + n], tf.data.AUTOTUNE)
        return made.cache() if cached else made

    def work(dataset: Any) -> Work:
        return delivering(lambda: dataset)

    def gathered() -> Work:
        """The best way to do it with tf.data: gather a ragged batch at a time."""
        import tensorflow as tf

        values, _, sizes = sequences(count)
        ragged = tf.RaggedTensor.from_row_lengths(values, sizes)
        numbers = tf.data.Dataset.range(count).batch(BATCH)
        dataset = numbers.map(lambda i: tf.gather(ragged, i).to_tensor(), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset)

    def ahead(dataset: Any) -> Any:
        import tensorflow as tf

        return dataset.prefetch(tf.data.AUTOTUNE)

    def bucketed(made: Any, length: Any = _length) -> Any:
        return made.bucket_by_sequence_length(length, BOUNDS, [BATCH] * (len(BOUNDS) + 1))

    needs = ("tensorflow",)
    both = [
        Contender("numpy, in a loop", "peer", lambda: _looping(count)),
        Contender("memcpy of the padded bytes", "limit", lambda: _copying(count)),
    ]
    trick = Contender("tf.data, ragged gather", "peer", gathered, needs, 3.0)
    return [
        Case(
            "sequences from a map",
            units,
            [
                Contender("distinput", "ours", lambda: work(ours(False).padded_batch(BATCH))),
                *both,
                Contender("tf.data", "peer", lambda: work(ahead(tensorflow(False).padded_batch(BATCH))), needs),
                trick,
            ],
        ),
        Case(
            "sequences from a cache",
            units,
            [
                Contender("distinput", "ours", lambda: work(ours(True).padded_batch(BATCH))),
                *both,
                Contender("tf.data", "peer", lambda: work(ahead(tensorflow(True).padded_batch(BATCH))), needs, 25.0),
                trick,
            ],
        ),
        Case(
            "buckets, from a cache",
            {"row": count},
            [
                Contender("distinput", "ours", lambda: work(bucketed(ours(True)))),
                Contender("tf.data", "peer", lambda: work(ahead(bucketed(tensorflow(True)))), needs, 50.0),
            ],
        ),
        Case(
            "buckets, by len, from a cache",
            {"row": count},
            [
                Contender("distinput", "ours", lambda: work(bucketed(ours(True), len))),
                Contender("tf.data", "peer", lambda: work(ahead(bucketed(tensorflow(True)))), needs, 50.0),
            ],
        ),
    ]


def _length(sequence: Any) -> Any:
    return sequence.shape[0] if isinstance(sequence, np.ndarray) else _size(sequence)


def _size(sequence: Any) -> Any:
    import tensorflow as tf

    return tf.shape(sequence)[0]


def _looping(count: int) -> Work:
    """New zeros for every batch, filled row by row."""
    flat, starts, sizes = sequences(count)

    def batches() -> Iterator[Any]:
        for first in range(0, count, BATCH):
            lengths = sizes[first : first + BATCH].tolist()
            out = np.zeros((len(lengths), max(lengths)), np.int32)
            for row, (start, size) in enumerate(zip(starts[first : first + BATCH].tolist(), lengths, strict=True)):
                out[row, :size] = flat[start : start + size]
            yield out

    return delivering(batches)


def _copying(count: int) -> Work:
    """As many bytes as the batches have, copied to memory that is warm."""
    _, _, sizes = sequences(count)
    shapes = [sizes[first : first + BATCH] for first in range(0, count, BATCH)]
    lengths = [len(part) * int(part.max()) for part in shapes]
    source = np.ones(max(lengths), np.int32)
    buffer = np.empty_like(source)

    def once() -> None:
        for length in lengths:
            np.copyto(buffer[:length], source[:length])

    return Work(once)
