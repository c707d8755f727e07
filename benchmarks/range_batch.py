# SPDX-License-Identifier: Apache-2.0
"""What does a batch cost when there is nothing to read?"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import Case, Contender, Work, delivering, scaled

QUESTION = "range(n).batch(k), handed to Python as NumPy arrays"


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Small and large batches."""
    return [_case(scaled(1_000_000, scale, 100), 32, 100.0), _case(scaled(4_000_000, scale, 3_000), 1024, 150.0)]


def _case(n: int, size: int, reach: float) -> Case:
    def ours() -> Work:
        import distinput as di

        dataset = di.data.Dataset.range(n).batch(size)
        return delivering(lambda: dataset)

    def slices() -> Work:
        numbers = np.arange(n)

        def once() -> None:
            for first in range(0, n, size):
                numbers[first : first + size]

        return Work(once, lambda: in_order(numbers[first : first + size] for first in range(0, n, size)))

    def tensorflow() -> Work:
        import tensorflow as tf

        dataset: Any = tf.data.Dataset.range(n).batch(size)
        return delivering(lambda: dataset)

    return Case(
        f"batch({size})",
        {"batch": -(-n // size), "element": n},
        [
            Contender("distinput", "ours", ours),
            Contender("slice of an array", "limit", slices, reach=0.25),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), reach),
        ],
    )
