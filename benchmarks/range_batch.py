# SPDX-License-Identifier: Apache-2.0
"""What does a batch cost when there is nothing to read?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import Case, Contender, Work, delivering, scaled

QUESTION = "range(n).batch(k), handed to Python as NumPy arrays"
NOTES = """
A slice of an existing array writes no numbers. `arange, rows` also writes them, with bare NumPy and without states and
specs. Most of the time for a batch of 1024 goes into writing its 8 KB.
"""
BLOCK = 16_384


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Small and large batches beside the limits on many elements; beside peers on fewer, for they take microseconds."""
    few = [scaled(100_000, scale, 100), scaled(400_000, scale, 3_000)]
    return [
        _beside_limits(scaled(1_000_000, scale, 100), 32),
        _beside_limits(scaled(4_000_000, scale, 3_000), 1024),
        _beside_peers(few[0], 32, 100.0),
        _beside_peers(few[1], 1024, 150.0),
        _records(scaled(200_000, scale, 100)),
    ]


def _records(n: int) -> Case:
    """The smallest batch of records, where nothing but the handing out takes time."""
    columns = {name: np.arange(n, dtype=np.float32) for name in "abcde"}

    def ours() -> Work:
        import distinput as di

        dataset = di.data.Dataset.from_tensor_slices(columns).batch(1)
        return delivering(lambda: dataset, plain=_side_by_side)

    def by_hand() -> Work:
        def batches() -> Iterator[Any]:
            rows = [column.reshape(-1, 1) for column in columns.values()]
            return (dict(zip(columns, row, strict=True)) for row in zip(*rows, strict=True))

        return delivering(batches, plain=_side_by_side)

    return Case(
        "batch(1) of a dict of 5",
        {"element": n},
        [
            Contender("distinput", "ours", ours, most={"seconds": 1e-6}),
            Contender("dict(zip()) of rows", "peer", by_hand, reach=1.0),
        ],
    )


def _side_by_side(record: Any) -> Any:
    return np.stack(list(record.values()))


def _ours(n: int, size: int) -> Contender:
    def load() -> Work:
        import distinput as di

        dataset = di.data.Dataset.range(n).batch(size)
        return delivering(lambda: dataset)

    return Contender("distinput", "ours", load)


def _beside_limits(n: int, size: int) -> Case:
    def slices() -> Work:
        numbers = np.arange(n)

        def once() -> None:
            for first in range(0, n, size):
                numbers[first : first + size]

        return Work(once, lambda: in_order(numbers[first : first + size] for first in range(0, n, size)))

    def rows() -> Work:
        """The least when the numbers are not there yet: they are counted into a block, and its rows are handed out."""

        def batches() -> Iterator[Any]:
            for first in range(0, n, BLOCK):
                block = np.arange(first, min(first + BLOCK, n))
                full = len(block) // size * size
                yield from block[:full].reshape(-1, size)
                if full < len(block):
                    yield block[full:]

        return delivering(batches)

    return Case(
        f"batch({size})",
        {"batch": -(-n // size), "element": n},
        [
            _ours(n, size),
            Contender("slice of an array", "limit", slices, reach=0.25),
            Contender("arange, rows", "limit", rows),
        ],
    )


def _beside_peers(n: int, size: int, reach: float) -> Case:
    def tensorflow() -> Work:
        import tensorflow as tf

        dataset: Any = tf.data.Dataset.range(n).batch(size)
        return delivering(lambda: dataset)

    def torch() -> Work:
        """A batch of indices at a time, as its documentation says for data that is fetched in bulk."""
        from torch import Tensor, arange, tensor
        from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler

        class Numbers(Dataset[Tensor]):  # type: ignore[misc]
            def __init__(self) -> None:
                self.numbers = arange(n)

            def __len__(self) -> int:
                return n

            def __getitem__(self, picked: list[int]) -> Tensor:
                return self.numbers[tensor(picked)]

        numbers = Numbers()
        sampler = BatchSampler(SequentialSampler(numbers), size, drop_last=False)
        loader = DataLoader(numbers, sampler=sampler, batch_size=None)
        return delivering(lambda: loader)

    def grain() -> Work:
        import grain.python as grain

        dataset = grain.MapDataset.range(n).batch(size)
        return delivering(lambda: dataset)

    return Case(
        f"batch({size}), fewer",
        {"batch": -(-n // size), "element": n},
        [
            _ours(n, size),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), reach),
            Contender("torch, batches of indices", "peer", torch, ("torch",), 25.0),
            Contender("grain", "peer", grain, ("grain",)),
        ],
    )
