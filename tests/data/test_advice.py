# SPDX-License-Identifier: Apache-2.0
"""Eight slow pipelines of which it is known why they are slow: the first advice names the cause, and following it helps."""

import gzip
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

import distinput as di
from distinput.data.stats import stats_of
from distinput.ops.reader import Reader
from distinput.plan.node import walk
from distinput.reports.bench import bench
from distinput.run.run import CoreUse, core_use
from tests.data.test_stats import Clock, clock

__all__ = ["clock"]

RANGE = di.data.Dataset.range


class SlowToOpen(LocalFileSystem):
    """Local files, each opened by a call that takes time."""

    cachable, protocol = False, "slow"

    def __init__(self, opening: Callable[[], object]) -> None:
        super().__init__()
        self.opening = opening

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        self.opening()
        return super()._open(path, mode, **more)


@pytest.fixture(autouse=True)
def _nothing_stays_mounted() -> Iterator[None]:
    yield
    with suppress(di.errors.InvalidArgumentError):
        di.io.unmount("slow://")


class Visits:
    """Calls that last a while, and how many of them there were at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, *_: object) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)
        with self._lock:
            self.now -= 1
        return 0


def lines(folder: Path, count: int) -> list[str]:
    paths = [folder / f"{number:03}.txt" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(f"{number}\n")
    return [str(path) for path in paths]


def first_advice(dataset: di.data.Dataset) -> tuple[str, str]:
    told = bench(dataset, None)
    assert told.changes[0] == told.bottleneck == told.stats.bottleneck
    return told.slowest, told.changes[0]


def test_numpy_for_each_element(clock: Clock) -> None:
    def norm(x: Any) -> Any:
        clock.work(1e-5)
        return np.sqrt(np.float64(int(x)))

    slowest, advice = first_advice(RANGE(1000).map(norm).batch(100))
    assert slowest == "1:map"
    assert "a call takes 10 µs" in advice
    assert "in a map after batch(n), is called once for n elements" in advice


def test_numpy_for_whole_batches_is_called_once_a_batch() -> None:
    calls: list[tuple[int, ...]] = []

    def norm(x: Any) -> Any:
        calls.append(np.shape(x))
        return np.sqrt(x + 0.0)

    signature = di.TensorSpec([None], "float64")
    _ = list(RANGE(1000).batch(100).map(norm, vectorize=False, output_signature=signature))
    assert calls == [(100,)] * 10


def test_a_function_that_sleeps(clock: Clock) -> None:
    def ask(x: Any) -> Any:
        clock.wait(0.1)
        return int(x)

    slowest, advice = first_advice(RANGE(40).map(ask).batch(4))
    assert slowest == "1:map"
    assert "it waits more than it computes: num_parallel_calls=" in advice


def test_a_function_that_sleeps_does_so_on_threads() -> None:
    alone, beside = Visits(), Visits()
    _ = list(RANGE(48).map(lambda x: alone(x), output_signature=di.TensorSpec([], "int64")))
    _ = list(RANGE(48).map(lambda x: beside(x), num_parallel_calls=8, output_signature=di.TensorSpec([], "int64")))
    assert alone.most == 1 < beside.most


def advice_of_files(dataset: di.data.Dataset, waits: bool) -> str:
    """What is said if reading the files takes nearly all of a pass, in which it waits or computes."""
    with iter(dataset) as iterator:
        assert len(list(iterator)) > 0
        node, counters = iterator.counted
        reader = next(step for step in walk(node) if isinstance(step, Reader))
        counters[id(reader)].own += 1e4
        counters[id(node)].seconds += 1e4
        counters[id(node)].used = CoreUse(0.0, 9) if waits else CoreUse(1e4, 9)
        stats = stats_of(node, counters)
    assert stats.slowest == "1:text"
    return stats.bottleneck


def test_files_that_are_compressed_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 1000))
    advice = advice_of_files(di.data.TextLineDataset(str(path), compression_type="GZIP").batch(10), waits=False)
    assert "its files are compressed as a whole: Parquet, or files without compression" in advice


def test_a_slow_loop(clock: Clock) -> None:
    dataset = RANGE(100).batch(10)
    for _ in dataset:
        clock.work(1.0)
    stats = dataset.stats()
    assert stats.slowest == "consumer"
    assert "the dataset waits for it, and a faster pipeline would not help" in stats.bottleneck


def test_many_small_files(tmp_path: Path) -> None:
    advice = advice_of_files(di.data.TextLineDataset(lines(tmp_path, 60)).batch(8), waits=False)
    assert "60 files have 1 records each: fewer and larger files" in advice


def test_files_of_a_slow_store(tmp_path: Path) -> None:
    advice = advice_of_files(di.data.TextLineDataset(lines(tmp_path, 60)).batch(8), waits=True)
    assert "it waits for the storage of 60 files: num_parallel_reads= waits for several at a time" in advice
    advice = advice_of_files(di.data.TextLineDataset(lines(tmp_path, 1)).batch(8), waits=True)
    assert "it waits for the storage: a copy nearby" in advice


def test_a_slow_store_is_asked_for_several_files_at_a_time(tmp_path: Path) -> None:
    visits = Visits()
    dataset = di.data.TextLineDataset(lines(tmp_path, 40), num_parallel_reads=8, filesystem=SlowToOpen(visits))
    assert len(list(dataset)) == 40
    assert visits.most > 1


def test_threads_that_take_turns_in_python(clock: Clock) -> None:
    def count(x: Any) -> Any:
        clock.work(0.1)  # its turn,
        clock.now += 0.3  # and those of the three others
        return int(x)

    slowest, advice = first_advice(RANGE(40).map(count, num_parallel_calls=4).batch(4))
    assert slowest == "1:map"
    assert "its 4 threads take turns in Python, one at a time: processes=True" in advice


def process_of(_: Any) -> int:
    return os.getpid()


def test_processes_do_not_take_turns() -> None:
    found = {int(pid) for pid in RANGE(64).map(process_of, num_parallel_calls=2, processes=True)}
    assert os.getpid() not in found


def test_what_a_process_had_of_the_cores() -> None:
    begin = core_use()
    time.sleep(0.01)
    slept = core_use() - begin
    assert sum(range(1_000_000)) > 0
    assert (core_use() - begin).seconds > slept.seconds


@pytest.mark.parametrize("rows, helps", [(1, True), (16, True), (1000, False)])
def test_batches_that_are_too_small(clock: Clock, rows: int, helps: bool) -> None:
    dataset = RANGE(4000).batch(rows)
    for _ in dataset:
        clock.work(1e-6)
    stats = dataset.stats()
    assert stats.slowest == "consumer"
    assert ("larger batches hand out many rows at once" in stats.bottleneck) == helps


def test_a_busy_machine_is_not_taken_for_waiting(clock: Clock) -> None:
    """Other programs take the core: little of the time is on it, but no thread gave it up."""

    def count(x: Any) -> Any:
        clock.now += 0.1
        return int(x)

    _, advice = first_advice(RANGE(40).map(count).batch(4))
    assert "waits" not in advice
    assert "num_parallel_calls= spreads it over threads, with processes=True" in advice
