# SPDX-License-Identifier: Apache-2.0
"""Iterators end: dropped on any thread, used by several, and unfinished at the end of a program."""

import gc
import importlib.util
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.depth import cases
from tests.patience import threads_since, wait_until

pytestmark = pytest.mark.fresh_process

Dataset = di.data.Dataset
INT64 = di.TensorSpec([], "int64")


def run(script: str, folder: Path, *args: str) -> tuple[str, str, int]:
    """What a program prints, and its exit status."""
    (folder / "script.py").write_text(script)
    own = {"PYTHONPATH": str(Path(di.__file__).parents[1]), "PYTHONWARNINGS": "default", "KERAS_BACKEND": "torch"}
    environment = {**os.environ, **own}
    done = subprocess.run(
        [sys.executable, "script.py", *args], cwd=folder, capture_output=True, text=True, timeout=300, env=environment
    )
    return done.stdout, done.stderr, done.returncode


COLLECTED = """
import gc, sys, threading, time, weakref
import distinput as di

Dataset, kind = di.data.Dataset, sys.argv[1]


class Trainer:  # refers to its iterator, and the iterator's pipeline to it
    def __init__(self):
        numbers = Dataset.range(10**7).map(self.step)
        if kind == "prefetch":
            numbers = numbers.prefetch(4)
        if kind == "threads":
            numbers = numbers.map(self.step, num_parallel_calls=2)
        if kind == "interleave":
            inner = lambda x: Dataset.range(10**6).map(self.step).prefetch(2)
            numbers = numbers.interleave(inner, cycle_length=2, num_parallel_calls=2)
        self.iterator = iter(numbers)

    def step(self, x):
        return x


gc.disable()
trainer = Trainer()
next(trainer.iterator)
gone = weakref.ref(trainer)
del trainer
for _ in range(6000):
    gc.collect()
    if gone() is None and threading.active_count() == 1:
        print("collected")
        break
    time.sleep(0.01)
"""


@pytest.mark.parametrize("kind", ["plain", "prefetch", "threads", "interleave"])
def test_a_dropped_iterator_in_a_cycle_is_collected_with_its_threads(kind: str, tmp_path: Path) -> None:
    assert run(COLLECTED, tmp_path, kind) == ("collected\n", "", 0)


@pytest.mark.parametrize(
    "ahead", [lambda ds: ds.prefetch(100), lambda ds: ds.map(lambda x: x, num_parallel_calls=2).batch(2).prefetch(9)]
)
def test_a_dropped_iterator_may_be_collected_by_its_own_thread(ahead: Callable[[Any], Any]) -> None:
    entered, dropped, collected = threading.Event(), threading.Event(), threading.Event()
    before = threading.enumerate()

    def collect(x: Any) -> Any:
        if x == 20:
            entered.set()
            dropped.wait(60)
            gc.collect()
            collected.set()
        return x

    cycle: list[Any] = [iter(ahead(Dataset.range(30).map(collect, output_signature=INT64)))]
    cycle.append(cycle)
    taking = threading.Thread(target=next, args=(cycle[0],))
    taking.start()
    assert entered.wait(60)
    taking.join(0.2)  # some have what they asked for by now, others wait
    gone = weakref.ref(cycle[0])
    del cycle, taking
    dropped.set()
    assert collected.wait(60)
    wait_until(lambda: gc.collect() >= 0 and gone() is None and not threads_since(before))


NUMBERS = np.arange(600)
WIDE = np.stack([NUMBERS] * 300, axis=1)
SHARED: dict[str, Callable[[], Any]] = {
    "range": lambda: Dataset.range(600),
    "map": lambda: Dataset.range(600).map(lambda x: x + 0),
    "map in threads": lambda: Dataset.range(600).map(lambda x: x + 0, num_parallel_calls=2),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(600)), output_signature=INT64),
    "dict": lambda: Dataset.from_tensor_slices({"x": NUMBERS, "y": NUMBERS}).map(same),
    "shuffled rows": lambda: Dataset.from_tensor_slices((NUMBERS, WIDE)).shuffle(100).batch(1),
    "padded": lambda: (
        Dataset.range(600)
        .map(lambda x: np.full(int(x) % 7 + 1, x), output_signature=di.TensorSpec([None], "int64"))
        .padded_batch(1)
    ),
    "copied": lambda: Dataset.from_tensor_slices((NUMBERS, WIDE)).copied(),
    "datasets": lambda: Dataset.range(600).window(1).flat_map(lambda w: w),
    "distributed": lambda: di.distribute.OneDeviceStrategy("CPU:0").experimental_distribute_dataset(Dataset.range(600)),
}


def same(element: Any) -> Any:
    assert element["x"] == element["y"]
    return element["x"]


def number(element: Any) -> int:
    """The one number that all of an element must hold."""
    leaves = element if isinstance(element, tuple) else (element,)
    found = {int(x) for leaf in leaves for x in np.asarray(leaf).reshape(-1)}
    assert len(found) == 1, f"parts of different elements: {found}"
    return found.pop()


@pytest.mark.parametrize("name", SHARED)
def test_threads_that_share_an_iterator_get_each_element_once(name: str) -> None:
    before = sys.getswitchinterval()
    iterator = iter(SHARED[name]())
    found: list[int] = []
    failures: list[BaseException] = []

    def take() -> None:
        try:
            for element in iterator:
                found.append(number(element))  # noqa: PERF401 - what came before an error counts
        except BaseException as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert failures == []
    assert sorted(found) == list(range(600))


def test_closing_ends_the_wait_of_another_thread() -> None:
    entered, released = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        entered.set()
        released.wait(60)
        return x

    iterator = iter(Dataset.range(10).map(slow, output_signature=INT64).prefetch(1))
    outcome: list[Any] = []
    waiting = threading.Thread(target=lambda: outcome.append(next(iterator, "end")))
    waiting.start()
    entered.wait()
    closing = threading.Thread(target=iterator.close)
    closing.start()
    waiting.join(60)
    assert outcome == ["end"]
    released.set()
    closing.join(60)
    assert not closing.is_alive()


# A module that something keeps (frameworks do) is taken apart late, when the names of other modules are gone already.
UNFINISHED = """
import ctypes, importlib, sys, tempfile
for name in sys.argv[1].split(","):
    if name:
        importlib.import_module(name)
import distinput as di
for name in sys.argv[2].split(","):
    if name:
        importlib.import_module(name)

ctypes.pythonapi.Py_IncRef(ctypes.py_object(sys.modules["__main__"]))
Dataset = di.data.Dataset


def endless():
    number = 0
    while True:
        yield number
        number += 1


with di.io.TFRecordWriter("a.tfrecord") as writer:
    for number in range(20_000):
        writer.write(b"%d" % number)
closed = di.io.TFRecordWriter("b.tfrecord")
closed.close()
numbers = Dataset.range(10**6)
strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
iterators = [
    iter(each)
    for each in (
        numbers.map(lambda x: x + 1),
        numbers.map(lambda x: x + 1).prefetch(2),
        numbers.map(lambda x: x + 1, num_parallel_calls=2).batch(3),
        numbers.shuffle(100).interleave(lambda x: Dataset.range(10).prefetch(1), num_parallel_calls=2),
        Dataset.from_generator(endless, output_signature=di.TensorSpec([], "int64")).prefetch(1),
        di.data.TFRecordDataset("a.tfrecord").prefetch(di.data.AUTOTUNE),
        strategy.experimental_distribute_dataset(numbers.batch(4)),
    )
]
firsts = [next(iterator) for iterator in iterators]
strategy.run(lambda x: x, args=(firsts[-1],))
"""
FORGOTTEN = """
import ctypes, os, sys
import distinput as di

ctypes.pythonapi.Py_IncRef(ctypes.py_object(sys.modules["__main__"]))
writer = di.io.TFRecordWriter("a.tfrecord")
writer.write(b"record")
"""
FRAMEWORKS = [name for name in ("torch", "jax", "keras", "datasets") if importlib.util.find_spec(name)]
if "torch" not in FRAMEWORKS and "keras" in FRAMEWORKS:  # which is given PyTorch to compute with
    FRAMEWORKS.remove("keras")
ORDERS = [("", ""), *[order for name in FRAMEWORKS for order in ((name, ""), ("", name))]][:: cases(3, 1)]
"""What is imported before distinput, and after it; every third of them in `make test`."""


@pytest.mark.parametrize("times", range(cases(1, 60)))
@pytest.mark.parametrize("before, after", ORDERS)
def test_a_program_with_unfinished_iterators_ends_in_silence(
    before: str, after: str, times: int, tmp_path: Path
) -> None:
    assert run(UNFINISHED, tmp_path, before, after) == ("", "", 0)


def test_a_forgotten_writer_leaves_nothing_when_the_program_ends(tmp_path: Path) -> None:
    said, warned, status = run(FORGOTTEN, tmp_path)
    assert (said, status) == ("", 0)
    assert "ResourceWarning: a.tfrecord: was written, but never closed" in warned
    assert "Exception ignored" not in warned
    assert os.listdir(tmp_path) == ["script.py"]


STUCK = """
import threading
import distinput as di

started = threading.Event()


def stuck(x):
    if x == 3:
        started.set()
        threading.Event().wait()
    return x


numbers = di.data.Dataset.range(10).map(stuck, output_signature=di.TensorSpec([], "int64"))
iterator = iter(numbers.prefetch(8))
threading.Thread(target=lambda: next(iterator, None), daemon=True).start()
started.wait()
"""


def test_a_function_that_never_returns_does_not_hold_up_the_end_of_the_program(tmp_path: Path) -> None:
    assert run(STUCK, tmp_path) == ("", "", 0)


LOOPING = """
import sys, threading
import distinput as di

kind, begun = sys.argv[1], threading.Event()


def ended():
    begun.set()
    threading.main_thread().join()  # until Python waits for the threads of the program


def waits(x):
    if x == 5:
        ended()
    return x


numbers = di.data.Dataset.range(10).map(waits, output_signature=di.TensorSpec([], "int64"))
if kind == "in hand":
    numbers = di.data.Dataset.range(10).prefetch(1)
if kind == "between blocks":
    numbers = di.data.Dataset.range(200_000).map(lambda x: x)
if kind == "written":
    numbers = numbers.map(lambda x: {"x": x})
if kind in ("prefetched", "written"):
    numbers = numbers.prefetch(1)


def loop():
    if kind == "written":
        numbers.write("out", "jsonl")
    for number in numbers:
        if kind in ("between blocks", "in hand") and number == 0:
            ended()
    print("all")


threading.Thread(target=loop).start()
begun.wait()
"""


@pytest.mark.parametrize("kind", ["alone", "in hand", "between blocks", "prefetched", "written"])
def test_a_loop_that_the_end_of_the_program_cuts_short_tells_that(kind: str, tmp_path: Path) -> None:
    said, told, _ = run(LOOPING, tmp_path, kind)
    if kind == "in hand":  # it needs nothing that was ended
        assert (said, told) == ("all\n", "")
        return
    assert said == ""
    assert "CancelledError: this loop ends before its data does" in told
    assert not (tmp_path / "out" / "distinput-manifest.json").exists()


NESTED = """
import sys, threading, time
import distinput as di

begun, many = threading.Event(), int(sys.argv[1])
slow = di.data.Dataset.range(60).map(lambda x: (time.sleep(0.001), x)[1], output_signature=di.TensorSpec([], "int64"))
slow = slow.batch(2).prefetch(2).unbatch()


def total(x):
    if x == 3:
        begun.set()
    return sum(int(number) for number in slow)


totals = di.data.Dataset.range(10_000).map(total, output_signature=di.TensorSpec([], "int64"), num_parallel_calls=2)
beside = [iter(slow) for _ in range(many)]  # what is ended first depends on what there is


def loop():
    try:
        for number in totals:
            if number != 1770:
                print("wrong")
        print("silent")
    except (di.errors.CancelledError, RuntimeError):
        pass


threading.Thread(target=loop).start()
begun.wait()
"""


@pytest.mark.parametrize("many", range(3))
def test_a_loop_in_a_function_of_a_step_that_is_cut_short_gives_no_element(many: int, tmp_path: Path) -> None:
    said, told, _ = run(NESTED, tmp_path, str(many))
    assert (said, told) == ("", "")


AHEAD = """
import sys, threading, time
import distinput as di
from distinput.distribute.input.delivery import StepsAhead
from distinput.distribute.input.sources import END

begun = threading.Event()
numbers = di.data.Dataset.range(5_000).map(lambda x: (time.sleep(0.001), x)[1]).batch(2).prefetch(2)
strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
beside = [iter(numbers) for _ in range(int(sys.argv[1]))]  # what is ended first depends on what there is
steps = StepsAhead(strategy.experimental_distribute_dataset(numbers)._source.begin(), lambda step: step, 2)


def loop():
    try:
        while steps.next(True) is not END:
            begun.set()
        print("silent")
    except di.errors.CancelledError:
        pass


threading.Thread(target=loop).start()
begun.wait()
"""


@pytest.mark.parametrize("many", range(4))
def test_steps_that_are_made_ahead_do_not_end_where_the_program_cut_them_short(many: int, tmp_path: Path) -> None:
    said, told, _ = run(AHEAD, tmp_path, str(many))
    assert (said, told) == ("", "")
