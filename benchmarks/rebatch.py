# SPDX-License-Identifier: Apache-2.0
"""What does it cost to cut batches of 1000 rows into batches of 96?"""

from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "rebatch(96) of batches of 1000 rows of 256 float32"
GIVEN, WANTED, WIDTH = 1000, 96, 256


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def batches(count: int) -> Any:
    """The batches given, [count, 1000, 256]."""
    return np.random.default_rng(SEED).standard_normal((count, GIVEN, WIDTH), np.float32)


def joined(source: Any, arrays: list[Any]) -> Any:
    """A data set whose elements are these very arrays, each in memory of its own."""
    parts = [source.from_tensors(array) for array in arrays]
    while len(parts) > 1:
        parts = [reduce(lambda a, b: a.concatenate(b), parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def cases(folder: Path, scale: float) -> list[Case]:
    """Batches that lie side by side in memory, and batches that do not, as readers and functions give them."""
    count = scaled(128, scale, 3)
    rows = count * GIVEN
    units = {"batch": -(-rows // WANTED), "byte": 4 * rows * WIDTH}

    def ours(apart: bool) -> Any:
        import distinput as di

        source = di.data.Dataset
        given = joined(source, _apart(count)) if apart else source.from_tensor_slices(batches(count))
        return given.rebatch(WANTED)

    def tensorflow(apart: bool) -> Any:
        import tensorflow as tf

        source = tf.data.Dataset
        given = joined(source, _apart(count)) if apart else source.from_tensor_slices(batches(count))
        return given.rebatch(WANTED).prefetch(tf.data.AUTOTUNE)

    def work(dataset: Any) -> Work:
        return delivering(lambda: dataset)

    def owned(dataset: Any) -> Work:
        def copies() -> Iterator[Any]:
            for batch in dataset:
                yield np.array(batch)

        return delivering(copies)

    made = []
    for name, apart in (("side by side", False), ("apart", True)):
        peer = Contender("tf.data", "peer", lambda apart=apart: work(tensorflow(apart)), ("tensorflow",), 80.0)  # type: ignore[misc]
        limit = Contender("memcpy", "limit", lambda: _copying(count), reach=None)
        made.append(
            Case(
                f"views, {name}",
                units,
                [Contender("distinput", "ours", lambda apart=apart: work(ours(apart))), limit, peer],  # type: ignore[misc]
            )
        )
        limit = Contender("memcpy", "limit", lambda: _copying(count), reach=0.75)
        peer = Contender("tf.data", "peer", lambda apart=apart: work(tensorflow(apart)), ("tensorflow",))  # type: ignore[misc]
        made.append(
            Case(
                f"owned copies, {name}",
                units,
                [Contender("distinput", "ours", lambda apart=apart: owned(ours(apart))), limit, peer],  # type: ignore[misc]
            )
        )
    return made


def _apart(count: int) -> list[Any]:
    return [np.array(batch) for batch in batches(count)]


def _copying(count: int) -> Work:
    """Every batch copied once, to memory that is warm."""
    flat = batches(count).reshape(-1, WIDTH)
    buffer = np.empty((WANTED, WIDTH), np.float32)

    def copies() -> Iterator[Any]:
        for first in range(0, len(flat), WANTED):
            part = flat[first : first + WANTED]
            out = buffer[: len(part)]
            np.copyto(out, part)
            yield out

    def once() -> None:
        for _ in copies():
            pass

    return Work(once, lambda: in_order(copies()))
