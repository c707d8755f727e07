# SPDX-License-Identifier: Apache-2.0
"""How fast do the lines of a text file arrive?"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "lines of text, batch(1024), as byte spans and as bytes objects"
BATCH, CHUNK = 1024, 1 << 20


def prepare(folder: Path, scale: float) -> None:
    """One file; lines of 20 to 180 letters."""
    random = np.random.default_rng(SEED)
    with open(folder / "lines.txt", "wb") as file:
        left = scaled(250_000_000, scale, 200_000)
        while left > 0:
            letters = random.integers(97, 123, min(left, 1_000_000), np.uint8)
            ends = np.cumsum(random.integers(21, 182, len(letters) // 21))
            letters[ends[ends < len(letters)] - 1] = 10
            letters[-1] = 10
            file.write(letters.tobytes())
            left -= len(letters)


def cases(folder: Path, scale: float) -> list[Case]:
    """What a block holds, and what Python sees."""
    path = folder / "lines.txt"
    data = path.read_bytes()
    units = {"line": data.count(b"\n"), "byte": len(data)}

    def dataset() -> Any:
        import distinput as di

        return di.data.TextLineDataset(str(path)).batch(BATCH)

    def spans() -> Work:
        lines = dataset()

        def batches() -> Iterator[Any]:
            for block in lines.iter_blocks():
                column = block.columns[0]
                for number in range(block.size):
                    yield column.rows(number, number + 1)

        return delivering(batches, plain=lambda column: column.row(0))

    def objects() -> Work:
        lines = dataset()
        return delivering(lambda: lines)

    def python() -> Work:
        def batches() -> Iterator[Any]:
            with path.open("rb") as file:
                while batch := [line[:-1] for line in islice(file, BATCH)]:
                    yield batch

        return delivering(batches, plain=_as_array)

    def tensorflow() -> Work:
        import tensorflow as tf

        lines = tf.data.TextLineDataset(str(path)).batch(BATCH).prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: lines)

    limit = Contender("read", "limit", lambda: reading(path), reach=0.3)
    return [
        Case(
            "byte spans",
            units,
            [
                Contender("distinput", "ours", spans),
                limit,
                Contender("tf.data", "peer", tensorflow, ("tensorflow",), 25.0),
            ],
        ),
        Case(
            "bytes objects",
            units,
            [
                Contender("distinput", "ours", objects),
                Contender("for line in file", "peer", python),
                Contender("tf.data", "peer", tensorflow, ("tensorflow",), 7.0),
            ],
        ),
    ]


def _as_array(lines: list[bytes]) -> Any:
    made = np.empty(len(lines), object)
    made[:] = lines
    return made


def reading(path: Path) -> Work:
    """All bytes read into one small buffer."""
    buffer = bytearray(CHUNK)

    def once() -> None:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    return Work(once)
