# SPDX-License-Identifier: Apache-2.0
"""Interrupts loops over pipelines at random moments: `python -m tests.laws.interrupted SEED INTERRUPTS`.

A signal handler raises KeyboardInterrupt, as for Ctrl-C. Then the loop is run again, with the same iterator or with one that
is restored from its state. All loops together must get what one loop without interrupts gets: nothing is lost, nothing comes
twice, and none of them hangs.
"""

import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import distinput as di

Dataset = di.data.Dataset
_HANGS = 120.0
"""Seconds after which a loop hangs."""


class Loop:
    """A pipeline, or what hands out its steps.

    Args:
      begin: an iterator at the beginning.
      restore: an iterator that goes on at a state.
    """

    def __init__(self, begin: Callable[[], Any], restore: Callable[[Any], Any]) -> None:
        self.begin, self.restore = begin, restore

    @staticmethod
    def of(dataset: Any) -> "Loop":
        """A loop over a dataset, which is made once."""
        return Loop(lambda: iter(dataset), dataset.restore)


def _slow(x: Any) -> Any:
    time.sleep(0.0002)
    return x


def _seventh_fails(x: Any) -> Any:
    if x % 7 == 0:
        raise ValueError(f"{x} is no good")
    return x


def _numbers(n: int = 600) -> Any:
    return Dataset.range(n // 3).concatenate(Dataset.range(n // 3, n))


def _generated() -> Iterator[int]:
    yield from range(400)


def _text(folder: str) -> str:
    path = os.path.join(folder, "lines.txt")
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.writelines(f"{i}\n" for i in range(20_000))
    return path


def _files(folder: str, kind: str) -> str:
    path = os.path.join(folder, kind)
    if not os.path.exists(path):
        _numbers().map(lambda x: {"a": x, "b": x + 0.5}).write(path, kind, shard_rows=100)
    return path


def _mirrored(dataset: Any, **options: Any) -> Loop:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return Loop.of(strategy.experimental_distribute_dataset(dataset, di.distribute.InputOptions(**options)))


def _dealt() -> Loop:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return Loop.of(strategy.distribute_datasets_from_function(lambda _: _numbers().batch(5)))


def _loader(**options: Any) -> Loop:
    def made() -> Any:
        return di.interop.torch.Loader(_numbers().shuffle(50, seed=1).batch(5), rank=0, world_size=2, **options)

    kept: list[Any] = []

    def begin() -> Any:
        kept[:] = [made()]
        return _OfLoader(kept[0])

    def restore(state: Any) -> Any:
        kept[:] = [made()]
        kept[0].load_state_dict(state)
        return _OfLoader(kept[0])

    return Loop(begin, restore)


class _OfLoader:
    """An iterator of a loader, with its state."""

    def __init__(self, loader: Any) -> None:
        self._loader, self._steps = loader, iter(loader)

    def __iter__(self) -> Any:
        return iter(self._steps)

    def state(self) -> Any:
        return self._loader.state_dict()


def loops(folder: str) -> dict[str, Callable[[], Loop]]:
    """Loops over all kinds of pipelines."""
    plain: dict[str, Callable[[], Any]] = {
        "range": lambda: Dataset.range(5000),
        "tensors": lambda: Dataset.from_tensor_slices({"a": np.arange(900), "b": np.arange(900.0)}),
        "source": lambda: Dataset.from_source(range(500)),
        "generator": lambda: Dataset.from_generator(_generated, output_signature=di.TensorSpec([], "int64")),
        "text": lambda: di.data.TextLineDataset(_text(folder)),
        "saved": lambda: Dataset.load(_files(folder, "elements")),
        "parquet": lambda: di.data.FileDataset(_files(folder, "parquet")),
        "map": lambda: _numbers().map(_slow),
        "map on threads": lambda: _numbers().map(_slow, num_parallel_calls=3),
        "map of batches": lambda: _numbers().batch(4).map(lambda x: x * 2),
        "filter": lambda: _numbers(3000).filter(lambda x: x % 7 == 0),
        "batch": lambda: _numbers(3000).batch(7),
        "padded": lambda: _numbers(300).map(lambda x: np.arange(x % 5)).padded_batch(4),
        "ragged": lambda: _numbers(300).map(lambda x: np.arange(x % 5)).ragged_batch(4),
        "shuffle": lambda: _numbers(3000).shuffle(100, seed=3),
        "shuffle of a source": lambda: Dataset.from_source(range(900)).shuffle(900, seed=3),
        "prefetch": lambda: _numbers().map(_slow).prefetch(2),
        "prefetch of batches": lambda: _numbers(3000).batch(5).prefetch(1).unbatch(),
        "autotuned": lambda: _numbers().map(_slow, num_parallel_calls=di.data.AUTOTUNE).prefetch(di.data.AUTOTUNE),
        "interleave": lambda: Dataset.range(30).interleave(lambda x: Dataset.range(20).map(lambda y: x * 100 + y), 4, 2),
        "interleave on threads": lambda: Dataset.range(30).interleave(
            lambda x: Dataset.range(20).map(lambda y: x * 100 + y), 4, 2, num_parallel_calls=2
        ),
        "flat_map": lambda: Dataset.range(40).flat_map(lambda x: Dataset.range(x % 9)),
        "zip": lambda: Dataset.zip((_numbers(), _numbers().shuffle(9, seed=1))),
        "concatenate": lambda: _numbers().concatenate(_numbers().map(_slow)),
        "repeat": lambda: _numbers(30).repeat(9),
        "cache": lambda: _numbers(300).map(lambda x: x + 1).cache().repeat(2),
        "window": lambda: _numbers(300).window(5, shift=2).flat_map(lambda w: w.batch(5)),
        "scan": lambda: _numbers(300).scan(np.int64(0), lambda s, x: (s + x, s + x)),
        "take_while": lambda: _numbers(300).take_while(lambda x: x < 250),
        "unique": lambda: _numbers(300).map(lambda x: x // 2).unique(),
        "groups": lambda: _numbers(300).group_by_window(lambda x: x % 3, lambda k, w: w.batch(4), 4),
        "buckets": lambda: _numbers(300)
        .map(lambda x: np.arange(x % 9))
        .bucket_by_sequence_length(len, [3, 6], [4, 4, 4]),
        "sampled": lambda: Dataset.sample_from_datasets([_numbers(90), _numbers(90)], [0.4, 0.6], seed=1),
        "dicts": lambda: _numbers(300).map(lambda x: {"a": x, "b": {"c": x + 1}}),
        "rebatch": lambda: _numbers(300).batch(7).rebatch(4),
        "sharded": lambda: _numbers(3000).shard(3, 1),
        "errors": lambda: _numbers(300).map(_seventh_fails).ignore_errors(),
    }  # fmt: skip
    made: dict[str, Callable[[], Loop]] = {name: (lambda make=make: Loop.of(make())) for name, make in plain.items()}
    made["progress"] = lambda: Loop(_numbers().progress, lambda state: _numbers().restore(state))
    made["mirrored"] = lambda: _mirrored(_numbers().batch(8))
    made["mirrored, cut"] = lambda: _mirrored(_numbers().map(_slow).batch(8))
    made["mirrored, padded"] = lambda: _mirrored(_numbers().shuffle(9, seed=1).batch(7), tail="pad")
    made["dealt"] = _dealt
    made["loader"] = _loader
    return made


def plain(element: Any) -> Any:
    """An element that can be compared."""
    if isinstance(element, dict):
        return {key: plain(part) for key, part in element.items()}
    if isinstance(element, tuple | list):
        return [plain(part) for part in element]
    values = getattr(element, "values", None)
    if isinstance(values, tuple):
        return [plain(part) for part in values]
    to_list = getattr(element, "to_list", None) or getattr(element, "tolist", None)
    return element if to_list is None else to_list()


def whole(loop: Loop) -> list[Any]:
    """What one loop without interrupts gets."""
    return [plain(element) for element in loop.begin()]


_armed = [False]
"""Whether the next signal is an interrupt; one that another thread has received may come late."""


def _ring(*_: object) -> None:
    if _armed[0]:
        _armed[0] = False
        raise KeyboardInterrupt


def run(loop: Loop, draw: random.Random, longest: float) -> tuple[list[Any], int]:
    """What loops get that are interrupted after at most so many seconds, and how many were."""
    found: list[Any] = []
    hits = 0
    iterator = loop.begin()
    while True:
        faulthandler.dump_traceback_later(_HANGS, exit=True)
        try:
            _armed[0] = True
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, longest))
            for element in iterator:
                found.append(element)  # noqa: PERF402 - `extend` would lose the element that it has in hand
            _armed[0] = False
            break
        except KeyboardInterrupt:
            hits += 1
            longest *= 1.05  # a loop that takes longer to begin again than to be interrupted would never end
        if draw.random() < 0.3:
            iterator = loop.restore(iterator.state())
    faulthandler.cancel_dump_traceback_later()
    return [plain(element) for element in found], hits


def main(seed: int, interrupts: int, folder: str) -> None:
    """Interrupt as many loops as were asked for."""
    draw = random.Random(seed)
    signal.signal(signal.SIGALRM, _ring)
    made = loops(folder)
    only = sys.argv[3:] or list(made)
    wanted: dict[str, list[Any]] = {}
    took: dict[str, float] = {}
    hits: dict[str, int] = dict.fromkeys(only, 0)
    number = 0
    while sum(hits.values()) < interrupts:
        name = only[number % len(only)]
        number += 1
        loop = made[name]()
        if name not in wanted:
            whole(made[name]())
            begin = time.perf_counter()
            wanted[name] = whole(made[name]())
            took[name] = time.perf_counter() - begin
        try:
            got, here = run(loop, draw, max(0.0003, min(0.02, took[name] / 4)))
        except BaseException as error:
            error.add_note(f"loop {name}, run {number}, seed {seed}")
            raise
        hits[name] += here
        assert got == wanted[name], f"{name}, run {number}: {_difference(got, wanted[name])}"
    print(
        f"{sum(hits.values())} interrupts, {number} passes, {threading.active_count()} threads; nothing lost, nothing hung"
    )
    print(hits)


def _difference(got: list[Any], wanted: list[Any]) -> str:
    at = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    return f"{len(got)} elements for {len(wanted)}; from {at} on {got[at : at + 3]} for {wanted[at : at + 3]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="distinput-interrupted-") as folder_:
        main(int(sys.argv[1]), int(sys.argv[2]), folder_)
