# SPDX-License-Identifier: Apache-2.0
"""What do several workers save, and what does one cost?"""

import weakref
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order, in_order
from benchmarks.harness import SEED, Case, Contender, Mapped, Work, delivering, scaled

QUESTION = "a Python function on every element, by 2 workers; one that waits, below a shuffle, on 8 threads"
NOTES = """
Arrays from a process: in `slots and semaphores` one process copies into shared memory, and another looks at it. Nothing is
said about shapes, errors or elements. On a virtual machine it takes as long to wake a process as to copy half a megabyte,
and both have slow and fast phases.
"""
BATCH = 64
WAITING_THREADS, BUFFER = 8, 50
WAVE = np.linspace(0.0, 1.0, 24_000)


def holding(x: Any) -> Any:
    """Some 50 us of Python, which holds the interpreter's lock."""
    total = 0
    for i in range(1_400):
        total += i & 3
    return np.int64(x) * 3 + (total & 1)


def releasing(x: Any) -> Any:
    """Some 100 us of NumPy on one array, which releases it."""
    return np.int64(x) + np.int64(np.sin(WAVE).argmin())


def waiting(x: Any) -> Any:
    """2 ms of waiting, as for an answer of a server."""
    sleep(0.002)
    return np.int64(x) * 3


@dataclass
class Handing:
    """The same array for every order, without a pipeline around it.

    Args:
      size: its bytes.
    """

    size: int

    def __call__(self, order: int) -> Any:
        return _given(self.size)


@cache
def _given(size: int) -> Any:
    return np.arange(size // 8, dtype=np.int64)


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Two processes, two threads, none; and arrays that come from a process."""
    many, some, few = scaled(12_000, scale, 130), scaled(6_000, scale, 130), scaled(600, scale, 130)
    return [
        _case(
            "50 us, holding the lock, 2 processes", many, holding, {"num_parallel_calls": 2, "processes": True}, 1 / 0.6
        ),
        _case("100 us, releasing it, 2 threads", some, releasing, {"num_parallel_calls": 2}, 1 / 0.6),
        _case("100 us, releasing it, AUTOTUNE", some, releasing, {"num_parallel_calls": -1}, 1 / 0.6),
        _case("50 us, no worker", some, holding, {}, 1 / 1.05),
        _below_a_shuffle("2 ms of waiting below shuffle, 8 threads", few, whole=False),
        _below_a_shuffle("2 ms of waiting below global_shuffle, 8 threads", few, whole=True),
        *[_handing(1 << 20, scaled(2_000, scale, 8)), _handing(1 << 23, scaled(250, scale, 8))],
    ]


def _case(name: str, n: int, function: Any, how: dict[str, Any], reach: float) -> Case:
    processes, parallel = bool(how.get("processes")), bool(how)
    # Grain's processes take every other element each, and give batches of their own.
    checksum = in_any_order if processes else in_order

    def ours() -> Work:
        import distinput as di

        dataset = di.data.Dataset.range(n).map(function, **how).batch(BATCH)
        return delivering(lambda: dataset, checksum=checksum)

    def grain() -> Work:
        import grain.python as grain

        source = grain.MapDataset.range(n).map(function)
        if processes:
            from absl import flags

            flags.FLAGS.mark_as_parsed()  # which Grain asks when it starts processes, and a program of absl's would have done
            plain = source.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)).batch(BATCH)
            dataset: Any = plain.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
        else:
            dataset = source.to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=64)).batch(BATCH)
        return delivering(lambda: dataset, checksum=checksum)

    def torch() -> Work:
        from torch.utils.data import DataLoader

        loader: Any = DataLoader(
            Mapped(function, n), BATCH, num_workers=2, persistent_workers=True, multiprocessing_context="spawn"
        )
        return delivering(lambda: loader, plain=lambda batch: batch.numpy(), checksum=checksum)

    halves = Contender("2 workers that never meet, half each", "limit", lambda: _halves(n, function, processes))
    peers = [Contender("grain", "peer", grain, ("grain",), 1.25)]
    if processes:
        peers.append(Contender("torch", "peer", torch, ("torch",), 1.25))
    return Case(
        name,
        {"element": n},
        [
            Contender("distinput", "ours", ours),
            Contender("a loop", "peer", lambda: _loop(n, function, checksum), reach=reach),
            *([halves] if parallel else []),
            *(peers if parallel and how["num_parallel_calls"] == 2 else []),
        ],
    )


def _below_a_shuffle(name: str, n: int, *, whole: bool) -> Case:
    """As programs of tf.data often have it: the shuffle is called on what `map` gives."""

    def ours() -> Work:
        import distinput as di

        mapped = di.data.Dataset.range(n).map(waiting, num_parallel_calls=WAITING_THREADS)
        shuffled = mapped.global_shuffle(seed=SEED) if whole else mapped.shuffle(BUFFER, seed=SEED)
        dataset = shuffled.batch(BATCH)
        return delivering(lambda: dataset, checksum=in_any_order)

    def tensorflow() -> Work:
        import tensorflow as tf

        def called(x: Any) -> Any:
            return tf.numpy_function(waiting, [x], tf.int64)

        mapped = tf.data.Dataset.range(n).map(called, num_parallel_calls=WAITING_THREADS)
        dataset = mapped.shuffle(n if whole else BUFFER, seed=SEED).batch(BATCH)
        return delivering(lambda: dataset, checksum=in_any_order)

    def grain() -> Work:
        import grain.python as grain

        source = grain.MapDataset.range(n).seed(SEED).map(waiting).shuffle()
        read = grain.ReadOptions(num_threads=WAITING_THREADS, prefetch_buffer_size=2 * WAITING_THREADS)
        dataset = source.to_iter_dataset(read).batch(BATCH)
        return delivering(lambda: dataset, checksum=in_any_order)

    peers = [Contender("tf.data", "peer", tensorflow, ("tensorflow",), 1.0)]
    if whole:  # Grain has no shuffle by a buffer of elements that it can reach by number
        peers.append(Contender("grain", "peer", grain, ("grain",), 1.0))
    return Case(
        name,
        {"element": n},
        [
            Contender("distinput", "ours", ours),
            Contender("a pool of 8 threads", "limit", lambda: _pooled(n), reach=0.8),
            *peers,
        ],
    )


def _pooled(n: int) -> Work:
    """The calls alone, in order."""
    pool = ThreadPoolExecutor(WAITING_THREADS)

    def batches() -> Iterator[Any]:
        for first in range(0, n, BATCH):
            yield np.array(list(pool.map(waiting, range(first, min(first + BATCH, n)))))

    work = delivering(batches, checksum=in_any_order)
    weakref.finalize(work, pool.shutdown)
    return work


def _loop(n: int, function: Any, checksum: Any) -> Work:
    def batches() -> Iterator[Any]:
        for first in range(0, n, BATCH):
            yield np.array([function(x) for x in np.arange(first, min(first + BATCH, n))])

    return delivering(batches, checksum=checksum)


def _halves(n: int, function: Any, processes: bool) -> Work:
    """The calls alone, with nothing handed over: as fast as two cores are today, whoever else uses them."""
    pool: Executor = ProcessPoolExecutor(2, get_context("spawn")) if processes else ThreadPoolExecutor(2)
    halves = [range(n // 2), range(n // 2, n)]

    def once() -> None:
        list(pool.map(_called, [function, function], halves))

    once()  # starts the workers
    weakref.finalize(once, pool.shutdown)
    return Work(once)


def _called(function: Any, numbers: range) -> None:
    for x in np.arange(numbers.start, numbers.stop):
        function(x)


def _handing(size: int, count: int) -> Case:
    """To hand over is one copy, and to tell the other process: at 10 GB/s at least."""
    return Case(
        f"arrays of {size >> 20} MiB from a process",
        {"array": count, "byte": size * count},
        [
            Contender("distinput", "ours", lambda: _handed(size, count), most={"seconds": size / 10e9}),
            Contender("memcpy", "limit", lambda: _copied(size, count)),
            Contender("slots and semaphores", "limit", lambda: _slotted(size, count)),
        ],
    )


def _handed(size: int, count: int) -> Work:
    from distinput.run.processes import Processes, Workforce

    workforce = Workforce(lambda: Processes(Handing(size), 1, "benchmark"))

    def arrays() -> Iterator[Any]:
        with workforce.lent() as workers:
            for place in range(-4, count):
                if place >= 0:
                    yield workers.receive(0, lambda: True)
                if place + 4 < count:
                    workers.send(0, 0)

    return Work(lambda: _drained(arrays()), lambda: in_order(arrays()))


def _copied(size: int, count: int) -> Work:
    """Every array copied once, to memory that is warm."""
    given = _given(size)
    rooms = [np.empty_like(given) for _ in range(4)]

    def arrays() -> Iterator[Any]:
        for place in range(count):
            np.copyto(rooms[place % 4], given)
            yield rooms[place % 4]

    return Work(lambda: _drained(arrays()), lambda: in_order(arrays()))


def _slotted(size: int, count: int) -> Work:
    """Every array copied by a process into the next of 4 slots that both have mapped; nothing is told but that it is there."""
    context = get_context("spawn")
    memory = context.RawArray("b", 4 * size)
    filled, free = context.Semaphore(0), context.Semaphore(0)
    process = context.Process(target=_filling, args=(size, memory, filled, free), daemon=True)
    process.start()
    slots = cycle(_slots(memory))

    def arrays() -> Iterator[Any]:
        for place in range(-4, count):
            if place >= 0:
                filled.acquire()
                yield next(slots)
            if place + 4 < count:
                free.release()

    work = Work(lambda: _drained(arrays()), lambda: in_order(arrays()))
    weakref.finalize(work, process.terminate)
    return work


def _filling(size: int, memory: Any, filled: Any, free: Any) -> None:
    for slot in cycle(_slots(memory)):
        free.acquire()
        np.copyto(slot, _given(size))
        filled.release()


def _slots(memory: Any) -> Any:
    return np.frombuffer(memory, np.int64).reshape(4, -1)


def _drained(values: Iterator[Any]) -> None:
    for _ in values:
        pass
