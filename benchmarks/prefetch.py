# SPDX-License-Identifier: Apache-2.0
"""What does making batches beside the loop save, and what does it cost where there is nothing to save?"""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Case, Contender, Work, delivering, scaled

QUESTION = "prefetch(AUTOTUNE) beside a loop that computes, and beside one that does not"
WAVE = np.linspace(0.0, 1.0, 24_000)
CHEAP = 32


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


def cases(folder: Path, scale: float) -> list[Case]:
    """The loop in turn with the dataset is the limit: the ratio says how much faster it is with prefetch."""
    some, many = scaled(6_000, scale, 20), scaled(2_000_000, scale, 1_000)

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
            f"batch({CHEAP}) beside nothing",
            {"batch": -(-many // CHEAP)},
            [
                Contender("distinput", "ours", lambda: cheap(-1)),
                Contender("in turn", "limit", lambda: cheap(None), reach=1 / 1.1),
                Contender("prefetch(64)", "limit", lambda: cheap(64)),
            ],
        ),
    ]


def _loop(n: int) -> Work:
    return delivering(lambda: computing(map(kernel, np.arange(n))))


def _halves(n: int) -> Work:
    """The same kernels on two threads that never meet: as fast as two cores are today."""
    from concurrent.futures import ThreadPoolExecutor

    def once() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: [kernel(x) for x in np.arange(n)], range(2)))

    return Work(once)
