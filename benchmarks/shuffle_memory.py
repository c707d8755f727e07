# SPDX-License-Identifier: Apache-2.0
"""What do a million waiting elements cost, in time and in memory?"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import ROOT, SEED, Case, Contender, Work, find_case, scaled

QUESTION = "elements of 24 bytes: shuffle(1 000 000).batch(1024) of a stream and of an array, and global_shuffle()"
BATCH, BLOCK = 1024, 500
MEMORY = "bytes of memory for each element that waits"


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def numbers(first: int, stop: int) -> tuple[Any, Any]:
    """Elements (int64, float32[4]), 24 bytes each."""
    whole = np.arange(first, stop)
    return whole, np.repeat(whole[:, None] % 1000, 4, 1).astype(np.float32)


def cases(folder: Path, scale: float) -> list[Case]:
    """Rows that wait themselves, numbers of rows that wait, and nothing that waits."""
    rows, buffer = scaled(4000, scale, 8) * BLOCK, scaled(1_000_000, scale, 2000)
    units = {"row": rows}

    def stream(rows: int, buffer: int) -> Any:
        import distinput as di

        # Elements that come out of batches cannot be reached by their numbers.
        batches = tuple([column.reshape(-1, BLOCK, *column.shape[1:]) for column in numbers(0, rows)])
        return di.data.Dataset.from_tensor_slices(batches).unbatch().shuffle(buffer, seed=SEED).batch(BATCH)

    def array(rows: int, buffer: int) -> Any:
        import distinput as di

        return di.data.Dataset.from_tensor_slices(numbers(0, rows)).shuffle(buffer, seed=SEED).batch(BATCH)

    def whole(rows: int, buffer: int) -> Any:
        import distinput as di

        return di.data.Dataset.from_tensor_slices(numbers(0, rows)).global_shuffle(seed=SEED).batch(BATCH)

    def tensorflow(rows: int, buffer: int) -> Any:
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(numbers(0, rows)).shuffle(buffer).batch(BATCH)

    def gathered(rows: int, buffer: int) -> Any:
        """The best way to do it with tf.data: shuffle numbers, gather a batch at a time."""
        import tensorflow as tf

        columns = [tf.constant(column) for column in numbers(0, rows)]
        order = tf.data.Dataset.range(rows).shuffle(buffer).batch(BATCH)
        return order.map(lambda picked: tuple([tf.gather(column, picked) for column in columns]), tf.data.AUTOTUNE)

    needs = ("tensorflow",)

    def contender(
        case: str,
        name: str,
        make: Callable[[int, int], Any],
        kind: Literal["ours", "peer"] = "peer",
        reach: float | None = None,
    ) -> Contender:
        def load() -> Work:
            return _work(make(rows, buffer), lambda: _memory(case, name, scale))

        return Contender(name, kind, load, needs if kind == "peer" else (), reach)

    return [
        Case(
            case,
            units,
            [
                contender(case, "distinput", ours, "ours"),
                Contender("permutation + take", "limit", lambda: _taking(rows)),
                contender(case, name, peer, reach=reach),
            ],
        )
        for case, ours, name, peer, reach in (
            ("a stream", stream, "tf.data", tensorflow, 40.0),
            ("an array", array, "tf.data, numbers + gather", gathered, None),
            ("the whole array", whole, "tf.data, numbers + gather", gathered, None),
        )
    ]


def _work(dataset: Any, facts: Callable[[], Mapping[str, float]]) -> Work:
    def once() -> Any:
        iterator = iter(dataset)
        for _ in iterator:
            pass
        return iterator

    return Work(once, lambda: in_any_order(dataset), facts)


def _memory(case: str, name: str, scale: float) -> Mapping[str, float]:
    """The peak of a pass in a process of its own, over what it has after a pass over few rows."""
    if not Path("/proc/self/clear_refs").exists():
        return {}
    program = [sys.executable, "-m", "benchmarks.shuffle_memory", case, name, repr(scale)]
    done = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    return {MEMORY: float(done.stdout.split()[-1])}


def _resident(word: str) -> int:
    """Bytes, from what Linux says of this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (found,) = [line for line in lines if line.startswith(word + ":")]
    return int(found.split()[1]) * 1024


def main() -> None:
    """Make a pass and print the memory that it took."""
    case, name, scale = sys.argv[1:]
    whole = find_case(sys.modules[__name__], case, Path(), float(scale))
    small = find_case(sys.modules[__name__], case, Path(), 0.0)
    (warm,) = [contender.load() for contender in small.contenders if contender.name == name]
    warm.once()  # what is loaded and compiled once is no memory of the buffer
    (measured,) = [contender.load() for contender in whole.contenders if contender.name == name]
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # forget the peak so far
    before = _resident("VmRSS")
    measured.once()
    waiting = scaled(1_000_000, float(scale), 2000)
    print(max(1, _resident("VmHWM") - before) / waiting, flush=True)
    os._exit(0)  # some libraries wait for their threads at exit


def _taking(rows: int) -> Work:
    columns = numbers(0, rows)
    random = np.random.default_rng(SEED)

    def epoch() -> Iterator[Any]:
        order = random.permutation(rows)
        for first in range(0, rows, BATCH):
            picked = order[first : first + BATCH]
            yield tuple([column.take(picked, 0) for column in columns])

    def once() -> None:
        for _ in epoch():
            pass

    return Work(once, lambda: in_any_order(epoch()))


if __name__ == "__main__":
    main()
