# SPDX-License-Identifier: Apache-2.0
"""What does making batches beside the loop save, and what does it cost where there is nothing to save?"""

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Case, Contender, Work, delivering, scaled

QUESTION = "prefetch(AUTOTUNE) beside a loop that computes, and beside one that does not"
WAVE = np.linspace(0.0, 1.0, 24_000)
CHEAP = 32
STEPS, WAITS = 1_500, 5


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def kernel(x: Any) -> Any:
    """Some 100 us of NumPy, which releases the interpreter's lock, into memory of the thread's own: no two threads meet."""
    out = getattr(_room, "out", None)
    if out is None:
        out = _room.out = np.empty_like(WAVE)
    return np.int64(x) + np.int64(np.sin(WAVE, out=out).argmin())


_room = threading.local()


def computing(batches: Iterable[Any]) -> Iterator[Any]:
    """A loop that computes as long for each as it took to make."""
    for batch in batches:
        kernel(0)
        yield batch


def small_arrays(x: Any) -> Any:
    """Some 4 ms of NumPy on small arrays, which lets go of the interpreter's lock for a moment, thousands of times."""
    row = np.arange(300.0) + x
    for step in range(STEPS):
        row = row * 1.0001 + step
    return row


def waiting(batches: Iterable[Any]) -> Iterator[Any]:
    """A loop that computes nothing, and waits 5 times for a millisecond, as one does that asks a device whether it is ready."""
    for batch in batches:
        for _ in range(WAITS):
            time.sleep(0.001)
        yield batch


def cases(folder: Path, scale: float) -> list[Case]:
    """The loop in turn with the dataset is the limit: the ratio says how much faster it is with prefetch."""
    some, many = scaled(6_000, scale, 20), scaled(2_000_000, scale, 1_000)
    few = scaled(250, scale, 20)

    def ours(size: int | None) -> Work:
        import distinput as di

        dataset = di.data.Dataset.range(some).map(kernel)
        ahead = dataset if size is None else dataset.prefetch(size)
        return delivering(lambda: computing(ahead))

    def cheap(size: int | None) -> Work:
        import distinput as di

        dataset = di.data.Dataset.range(many).map_rows(lambda rows: rows + 1).batch(CHEAP)
        ahead = dataset if size is None else dataset.prefetch(size)
        return delivering(lambda: ahead)

    return [
        Case(
            "100 us kernels beside 100 us",
            {"element": some},
            [
                Contender("distinput", "ours", lambda: ours(-1)),
                Contender("in turn", "limit", lambda: ours(None), reach=1 / 0.55),
                Contender("a loop in turn", "limit", lambda: _loop(some)),
                Contender("on two threads, one for each half", "limit", lambda: _halves(some)),
            ],
        ),
        Case(
            f"4 ms of small arrays beside {WAITS} waits of 1 ms",
            {"element": few},
            [
                Contender("distinput", "ours", lambda: _beside_waits(few, 2)),
                Contender("in turn", "limit", lambda: _beside_waits(few, None), reach=1.5),
                Contender("the waits alone", "limit", lambda: Work(lambda: list(waiting(range(few))))),
                Contender("tf.data, from_generator", "peer", lambda: _by_tensorflow(few), ("tensorflow",), 1.25),
                Contender("grain", "peer", lambda: _by_grain(few), ("grain",), 1.25),
            ],
        ),
        Case(
            f"batch({CHEAP}) beside nothing",
            {"batch": -(-many // CHEAP)},
            [
                Contender("distinput", "ours", lambda: cheap(-1)),
                Contender("in turn", "limit", lambda: cheap(None), reach=1 / 1.1),
                Contender("prefetch(64)", "limit", lambda: cheap(64)),
            ],
        ),
    ]


def _beside_waits(n: int, size: int | None) -> Work:
    import distinput as di

    dataset = di.data.Dataset.range(n).map(small_arrays)
    ahead = dataset if size is None else dataset.prefetch(size)
    return delivering(lambda: waiting(ahead))


def _by_tensorflow(n: int) -> Work:
    import tensorflow as tf

    rows = tf.TensorSpec((300,), tf.float64)
    dataset = tf.data.Dataset.from_generator(lambda: map(small_arrays, range(n)), output_signature=rows).prefetch(2)
    return delivering(lambda: waiting(dataset.as_numpy_iterator()))


def _by_grain(n: int) -> Work:
    import grain.python as grain

    read = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    dataset = grain.MapDataset.range(n).map(small_arrays).to_iter_dataset(read)
    return delivering(lambda: waiting(dataset))


def _loop(n: int) -> Work:
    return delivering(lambda: computing(map(kernel, np.arange(n))))


def _halves(n: int) -> Work:
    """The same kernels on two threads that never meet: as fast as two cores are today."""
    from concurrent.futures import ThreadPoolExecutor

    def once() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: [kernel(x) for x in np.arange(n)], range(2)))

    return Work(once)
