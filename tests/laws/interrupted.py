# SPDX-License-Identifier: Apache-2.0
"""Interrupts loops over pipelines at random moments: `python -m tests.laws.interrupted SEED INTERRUPTS [LOOP ...]`,
or one loop at so many of the places at which Python looks for signals: `... at-places LOOP PLACES`.

A signal handler raises KeyboardInterrupt, as for Ctrl-C. Then the loop is run again, with the same iterator or with one that
is restored from its state. All loops together must get what one loop without interrupts gets: nothing is lost, nothing comes
twice, and none of them hangs.
"""

import dis
import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any, Self

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


def _numbers(n: int) -> Any:
    return Dataset.range(n // 3).concatenate(Dataset.range(n // 3, n))


def _text(folder: str, n: int) -> str:
    path = os.path.join(folder, f"{n}.txt")
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.writelines(f"{i}\n" for i in range(n))
    return path


def _files(folder: str, kind: str, n: int) -> str:
    path = os.path.join(folder, f"{kind}-{n}")
    if not os.path.exists(path):
        _numbers(n).map(lambda x: {"a": x, "b": x + 0.5}).write(path, kind, shard_rows=max(2, n // 6))
    return path


def _mirrored(dataset: Any, **options: Any) -> Loop:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return Loop.of(strategy.experimental_distribute_dataset(dataset, di.distribute.InputOptions(**options)))


def _dealt(dataset: Any) -> Loop:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return Loop.of(strategy.distribute_datasets_from_function(lambda _: dataset))


def _loader(dataset: Any) -> Loop:
    def made() -> Any:
        return di.interop.torch.Loader(dataset, rank=0, world_size=2)

    def restore(state: Any) -> Any:
        loader = made()
        loader.load_state_dict(state)
        return _OfLoader(loader)

    return Loop(lambda: _OfLoader(made()), restore)


class _OfLoader:
    """An iterator of a loader's first pass, with its state."""

    def __init__(self, loader: Any) -> None:
        self._loader, self._over = loader, loader.epoch > 0
        self._steps = iter(loader)

    def __iter__(self) -> Any:
        return iter(() if self._over else self._steps)

    def state(self) -> Any:
        return self._loader.state_dict()


def loops(folder: str, size: int = 600) -> dict[str, Callable[[], Loop]]:
    """Loops over all kinds of pipelines.

    Args:
      folder: for files.
      size: about how many elements there are.
    """

    def of(n: int = size) -> Any:
        return _numbers(n)

    def inner(x: Any) -> Any:
        return Dataset.range(3 + size // 40).map(lambda y: x * 1000 + y)

    many, some, few = 5 * size, size // 2, max(4, size // 20)
    made: dict[str, Callable[[], Any]] = {
        "range": lambda: Dataset.range(8 * size),
        "tensors": lambda: Dataset.from_tensor_slices({"a": np.arange(size), "b": np.arange(float(size))}),
        "source": lambda: Dataset.from_source(range(size)),
        "generator": lambda: Dataset.from_generator(lambda: iter(range(size)), output_signature=di.TensorSpec([], "int64")),
        "text": lambda: di.data.TextLineDataset(_text(folder, 30 * size)),
        "saved": lambda: Dataset.load(_files(folder, "elements", size)),
        "parquet": lambda: di.data.FileDataset(_files(folder, "parquet", size)),
        "map": lambda: of().map(_slow),
        "map on threads": lambda: of().map(_slow, num_parallel_calls=3),
        "map of batches": lambda: of().batch(4).map(lambda x: x * 2),
        "filter": lambda: of(many).filter(lambda x: x % 7 == 0),
        "batch": lambda: of(many).batch(7),
        "padded": lambda: of(some).map(lambda x: np.arange(x % 5)).padded_batch(4),
        "ragged": lambda: of(some).map(lambda x: np.arange(x % 5)).ragged_batch(4),
        "shuffle": lambda: of(many).shuffle(few, seed=3),
        "shuffle of a source": lambda: Dataset.from_source(range(size)).shuffle(size, seed=3),
        "prefetch": lambda: of().map(_slow).prefetch(2),
        "prefetch of batches": lambda: of(many).batch(5).prefetch(1).unbatch(),
        "autotuned": lambda: of().map(_slow, num_parallel_calls=di.data.AUTOTUNE).prefetch(di.data.AUTOTUNE),
        "interleave": lambda: Dataset.range(few).interleave(inner, 4, 2),
        "interleave on threads": lambda: Dataset.range(few).interleave(inner, 4, 2, num_parallel_calls=2),
        "flat_map": lambda: Dataset.range(few).flat_map(lambda x: Dataset.range(x % 9)),
        "zip": lambda: Dataset.zip((of(), of().shuffle(9, seed=1))),
        "concatenate": lambda: of().concatenate(of().map(_slow)),
        "repeat": lambda: of(few).repeat(5),
        "cache": lambda: of(some).map(lambda x: x + 1).cache().repeat(2),
        "window": lambda: of(some).window(5, shift=2).flat_map(lambda w: w.batch(5)),
        "scan": lambda: of(some).scan(np.int64(0), lambda s, x: (s + x, s + x)),
        "take_while": lambda: of(some).take_while(lambda x: x < some - 3),
        "unique": lambda: of(some).map(lambda x: x // 2).unique(),
        "groups": lambda: of(some).group_by_window(lambda x: x % 3, lambda k, w: w.batch(4), 4),
        "buckets": lambda: of(some).map(lambda x: np.arange(x % 9)).bucket_by_sequence_length(len, [3, 6], [4, 4, 4]),
        "sampled": lambda: Dataset.sample_from_datasets([of(some), of(some)], [0.4, 0.6], seed=1),
        "dicts": lambda: of(some).map(lambda x: {"a": x, "b": {"c": x + 1}}),
        "rebatch": lambda: of(some).batch(7).rebatch(4),
        "sharded": lambda: of(many).shard(3, 1),
        "errors": lambda: of(some).map(_seventh_fails).ignore_errors(),
    }  # fmt: skip
    found: dict[str, Callable[[], Loop]] = {name: (lambda make=make: Loop.of(make())) for name, make in made.items()}
    found["progress"] = lambda: Loop(of().progress, lambda state: of().restore(state))
    found["mirrored"] = lambda: _mirrored(of().batch(8))
    found["mirrored, slow"] = lambda: _mirrored(of().map(_slow).batch(8))
    found["mirrored, padded"] = lambda: _mirrored(of().shuffle(9, seed=1).batch(7), tail="pad")
    found["dealt"] = lambda: _dealt(of().batch(5))
    found["loader"] = lambda: _loader(of().shuffle(50, seed=1).batch(5))
    return found


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


_CHECKED = {
    dis.opmap[name]
    for name in dis.opmap
    if name.startswith(("CALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")) or name == "RESUME"
}
"""Instructions after which Python looks for signals."""


def _handler(code: CodeType, at: int) -> Any:
    """Where errors of an instruction are handled."""
    return next((each.target for each in _handlers(code) if each.start <= at < each.end), None)


@cache
def _handlers(code: CodeType) -> Any:
    return dis._parse_exception_table(code)  # type: ignore[attr-defined]


class _Places:
    """Counts the places in the library at which an interrupt may come, and raises one at one of them.

    Args:
      at: where; None: nowhere.
    """

    def __init__(self, at: int | None) -> None:
        self.at, self.count = at, 0
        self._before: dict[FrameType, int] = {}  # the last instruction of a frame

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._before.clear()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            caller = frame.f_back
            if caller is not None and frame.f_code.co_name in caller.f_code.co_names:
                self._before.pop(caller, None)  # a call of Python by Python, behind which no signals are looked for
            if not frame.f_code.co_filename.startswith(_LIBRARY):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            code, now, before = frame.f_code, frame.f_lasti, self._before.get(frame)
            # An error of an instruction goes where that one says, which the next one must say too for this to be the same.
            if (
                before is not None
                and code.co_code[before] in _CHECKED
                and _handler(code, before) == _handler(code, now)
            ):
                self.count += 1
                if self.at is not None and self.count > self.at:
                    self._before.clear()
                    sys.settrace(None)
                    raise KeyboardInterrupt
            self._before[frame] = now
        else:
            self._before.pop(frame, None)
        return self._trace


_LIBRARY = os.path.dirname(os.path.abspath(di.__file__))


def places(loop: Loop) -> int:
    """At how many places of a loop an interrupt may come."""
    iterator = loop.begin()
    with _Places(None) as found:
        for _ in iterator:
            pass
    return found.count


def interrupted_at(loop: Loop, at: int, *, restored: bool) -> list[Any]:
    """What two loops get, of which the first is interrupted at one of its places; the other may be restored from its state."""
    iterator = loop.begin()
    found: list[Any] = []
    try:
        with _Places(at):
            for element in iterator:
                found.append(element)  # noqa: PERF402 - `extend` would lose the element that it has in hand
    except KeyboardInterrupt:
        pass
    rest = loop.restore(iterator.state()) if restored else iterator
    return [plain(element) for element in [*found, *rest]]


def interrupt_at_places(name: str, most: int, folder: str) -> None:
    """Interrupt a loop at its places, or at as many of them as are asked for."""
    make = loops(folder, size=12)[name]
    wanted = whole(make())
    count = places(make())
    for at in random.Random(name).sample(range(count), min(count, most)):
        for restored in (False, True):
            got = interrupted_at(make(), at, restored=restored)
            assert got == wanted, f"{name}, interrupted at {at} of {count}: {_difference(got, wanted)}"


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
        if sys.argv[1] == "at-places":
            interrupt_at_places(sys.argv[2], int(sys.argv[3]), folder_)
        else:
            main(int(sys.argv[1]), int(sys.argv[2]), folder_)
