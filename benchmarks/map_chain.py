# SPDX-License-Identifier: Apache-2.0
"""What does one more step cost each element?"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import Case, Contender, Work, delivering, scaled

QUESTION = "range(n), 16 steps of one kind, batch(1024): time for each element and step"
STEPS, BATCH, BLOCK = 16, 1024, 16_384


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def bumped(x: Any) -> Any:
    """One step."""
    return x + 1


@cache
def _bumped_by_numba() -> Any:
    import numba

    return numba.njit(bumped)


def chain(dataset: Any, step: Callable[[Any, int], Any]) -> Any:
    """16 steps and a batch."""
    for number in range(STEPS):
        dataset = step(dataset, number)
    return dataset.batch(BATCH)


STEP: dict[str, Callable[[Any, int], Any]] = {
    "map_rows": lambda dataset, _: dataset.map_rows(bumped),
    "map": lambda dataset, _: dataset.map(bumped),
    "map, numba": lambda dataset, _: dataset.map(_bumped_by_numba()),
    "take and skip": lambda dataset, number: dataset.skip(1) if number % 2 else dataset.take(10**9),
    "enumerate": lambda dataset, _: dataset.enumerate(),
}


NANOSECONDS = {"map_rows": 2.0, "map, numba function": 2.0, "take and skip": 0.05, "enumerate": 4.0}
"""What an element and step may cost at most."""

GRAIN_STEP: dict[str, Callable[[Any, int], Any]] = {
    "map": lambda dataset, _: dataset.map(bumped),
    "take and skip": lambda dataset, number: dataset[1:] if number % 2 else dataset[: 10**9],
    "enumerate": lambda dataset, _: dataset.map_with_index(lambda index, x: (np.int64(index), x)),
}


def cases(folder: Path, scale: float) -> list[Case]:
    """Each kind beside its limit on many elements; beside tf.data on fewer, for it takes microseconds for each."""
    many, few = scaled(2_000_000, scale, 2_100), scaled(20_000, scale, 1_100)
    numpy = [Contender("numpy on blocks", "limit", lambda: _blocks(many))]
    slices = [Contender("slices of an array", "limit", lambda: _slices(many))]
    numbers = [Contender("slices of 17 arrays", "peer", lambda: _numbers(many))]
    calls = [Contender("the calls alone", "peer", lambda: _calls(few))]
    return [
        _case("map_rows", many, "map_rows", None, 0.0, numpy),
        _case("map_rows, fewer", few, "map_rows", "map", 200.0, []),
        _case("map, numba function", many, "map, numba", None, 0.0, numpy),
        _case("map, Python function", few, "map", "map", 0.0, calls),
        _case("take and skip", many, "take and skip", None, 0.0, slices),
        _case("take and skip, fewer", few, "take and skip", "take and skip", 200.0, []),
        _case("enumerate", many, "enumerate", None, 0.0, numbers),
        _case("enumerate, fewer", few, "enumerate", "enumerate", 200.0, []),
    ]


def _case(name: str, n: int, ours: str, theirs: str | None, reach: float, by_hand: list[Contender]) -> Case:
    def load() -> Work:
        import distinput as di

        dataset = chain(di.data.Dataset.range(n), STEP[ours])
        return delivering(lambda: dataset)

    def tensorflow() -> Work:
        import tensorflow as tf

        assert theirs is not None
        dataset = chain(tf.data.Dataset.range(n), STEP[theirs]).prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset)

    def grain() -> Work:
        import grain.python as grain

        assert theirs is not None
        dataset = grain.MapDataset.range(n)
        for number in range(STEPS):
            dataset = GRAIN_STEP[theirs](dataset, number)
        return delivering(lambda: dataset.batch(BATCH))

    peers = []
    if theirs is not None:
        peers.append(Contender("tf.data", "peer", tensorflow, ("tensorflow",), reach or None))
        peers.append(Contender("grain", "peer", grain, ("grain",), reach or None))
    most = {"seconds": NANOSECONDS[name] * 1e-9} if name in NANOSECONDS else {}
    return Case(
        name,
        {"element and step": n * STEPS, "element": n},
        [Contender("distinput", "ours", load, most=most), *by_hand, *peers],
    )


def _blocks(n: int) -> Work:
    """The same sums on blocks that fit into a core's cache."""

    def batches() -> Iterator[Any]:
        for first in range(0, n, BLOCK):
            block = np.arange(first, min(first + BLOCK, n))
            for _ in range(STEPS):
                block = bumped(block)
            for begin in range(0, len(block), BATCH):
                yield block[begin : begin + BATCH]

    return delivering(batches)


def _slices(n: int) -> Work:
    """What is left when half of the steps have skipped one element each."""

    def batches() -> Iterator[Any]:
        numbers = np.arange(STEPS // 2, n)
        for begin in range(0, len(numbers), BATCH):
            yield numbers[begin : begin + BATCH]

    return delivering(batches)


def _numbers(n: int) -> Work:
    """One block of numbers for each step, nested as `enumerate` nests them."""

    def batches() -> Iterator[Any]:
        for first in range(0, n, BLOCK):
            blocks = [np.arange(first, min(first + BLOCK, n)) for _ in range(STEPS + 1)]
            for begin in range(0, len(blocks[0]), BATCH):
                nest: Any = blocks[0][begin : begin + BATCH]
                for block in blocks[1:]:
                    nest = (block[begin : begin + BATCH], nest)
                yield nest

    return delivering(batches)


def _calls(n: int) -> Work:
    """A plain loop that calls the function, and puts the results into arrays."""

    def batches() -> Iterator[Any]:
        for first in range(0, n, BATCH):
            made = []
            for number in np.arange(first, min(first + BATCH, n)):
                x = number
                for _ in range(STEPS):
                    x = bumped(x)
                made.append(x)
            yield np.array(made)

    return Work(lambda: _drained(batches()), lambda: in_order(batches()))


def _drained(batches: Iterator[Any]) -> None:
    for _ in batches:
        pass
