# SPDX-License-Identifier: Apache-2.0
"""Eight slow pipelines of which it is known why they are slow: the first advice names the cause.

Where it tells what following it brings, following it does, within a quarter; else `trials` measures that.
"""

import gzip
import itertools
import os
import re
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
from distinput.data import stats as stats_module
from distinput.data.stats import stats_of
from distinput.formats.text import TextLines
from distinput.ops import shuffle as shuffle_module
from distinput.ops.reader import Reader
from distinput.plan.node import walk
from distinput.reports import bench as bench_module
from distinput.reports.bench import bench, trials
from distinput.run import run as run_module
from distinput.run.run import CoreUse, core_use
from tests.data.test_stats import INT64, Clock, clock
from tests.depth import DEEP
from tests.patience import Beside

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
    """Calls that wait for another one beside them, and how many of them there were at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock, self._another = threading.Lock(), Beside()

    def __call__(self, *_: object) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self._another.wait()
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


def times_of(text: str) -> float:
    """As fast, by an advice."""
    found = re.search(r"([\d.]+(?:e\+\d+)?) times as fast", text)
    assert found is not None, text
    return float(found[1])


def near(told: float, brought: float) -> bool:
    """Within a quarter."""
    return 0.75 <= told / brought <= 1.25


@pytest.fixture
def bench_clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of `bench` as well, whose loop takes a microsecond for each element."""
    see = bench_module._Marks.see

    def seen(marks: Any, element: Any, now: float) -> None:
        see(marks, element, now)
        clock.work(1e-6)

    monkeypatch.setattr(bench_module, "_clock", clock)
    monkeypatch.setattr(bench_module._Marks, "see", seen)
    return clock


def tried(dataset: di.data.Dataset, change: str, followed: di.data.Dataset) -> None:
    """That a trial brings what following it does."""
    before = bench(dataset, None, warm_up=0)
    assert "not measured; distinput bench --try measures it" in before.bottleneck
    (told,) = [one for one in trials(dataset, before) if one.change.startswith(change)]
    after = bench(followed, None, warm_up=0)
    assert told.times is not None, told.error
    assert told.times > 1.25
    assert near(told.times, before.seconds / after.seconds), (told, before.seconds, after.seconds)


def slow_square(x: Any) -> int:
    """In Python, 10 ms."""
    return int(x) ** 2 + sum(range(500_000)) * 0


@pytest.mark.skipif(not DEEP, reason="needs cores that nobody else uses")
def test_threads_that_take_turns_get_from_processes_what_was_tried() -> None:
    slow = RANGE(600).map(slow_square, num_parallel_calls=2, output_signature=INT64)
    followed = RANGE(600).map(slow_square, num_parallel_calls=-1, processes=True, output_signature=INT64)
    for _ in range(4):
        before = bench(slow, None, warm_up=0)
        assert "not measured" in before.bottleneck
        (told,) = [one for one in trials(slow, before) if "processes=True" in one.change]
        now, was = bench(followed, None, warm_up=0).elements_per_second, before.elements_per_second
        if told.times and now and was and near(told.times, now / was):
            return
    pytest.fail(f"{told}, and it came from {was} to {now} elements in a second")


def test_numpy_for_each_element_gets_from_batches_what_was_tried(bench_clock: Clock) -> None:
    def norm(x: Any) -> Any:
        bench_clock.work(1e-5)
        return np.sqrt(x + 0.0)

    tried(RANGE(3000).map(norm).batch(100), "map after batch", RANGE(3000).batch(100).map(norm))


def test_a_function_that_sleeps_gets_from_threads_what_was_told(clock: Clock) -> None:
    def ask(x: Any) -> Any:
        clock.wait(0.1)
        return int(x)

    def check(x: Any) -> bool:
        clock.work(0.01)
        return True

    def asked(calls: int | None) -> di.data.Dataset:
        return RANGE(64).map(ask, num_parallel_calls=calls, output_signature=INT64).filter(check)

    slow = asked(None)
    _ = list(slow)
    calls = int(re.findall(r"num_parallel_calls=(\d+)", slow.stats().bottleneck)[0])
    followed = asked(calls)
    _ = list(followed)
    stats = followed.stats()
    took = max(stats["1:map"]["worked"] / stats["1:map"]["workers"], stats["2:filter"]["busy"])
    assert took == pytest.approx(0.64)  # the other step sets the pace now
    assert near(times_of(slow.stats().bottleneck), 64 * (0.1 + 0.01) / took)


def test_a_slow_step_beside_one_that_is_as_slow_gets_little(clock: Clock) -> None:
    def ask(x: Any) -> Any:
        clock.wait(0.1)
        return int(x)

    def check(x: Any) -> bool:
        clock.wait(0.099)
        return True

    dataset = RANGE(64).map(ask, output_signature=INT64).prefetch(4).filter(check)
    _ = list(dataset)
    assert "the gain is small, since other steps take as long" in dataset.stats().bottleneck


@pytest.fixture
def slow_lines(bench_clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A dataset of lines, of which each file takes seconds to read; and a step that works as well."""
    read = TextLines._read

    def check(line: Any) -> bool:
        bench_clock.work(0.01)
        return True

    def made(seconds: float, paths: list[str], **more: Any) -> di.data.Dataset:
        def slowly(self: Any, *given: Any) -> Any:
            bench_clock.work(seconds)
            return read(self, *given)

        monkeypatch.setattr(TextLines, "_read", slowly)
        return di.data.TextLineDataset(paths, **more)

    return lambda *given, **more: (made(*given, **more), lambda ds: ds.filter(check))


def test_many_small_files_get_from_large_ones_what_was_tried(slow_lines: Any, tmp_path: Path) -> None:
    files, checked = slow_lines(0.1, lines(tmp_path, 60))
    files.save(tmp_path / "saved")
    tried(checked(files), "its records saved", checked(di.data.Dataset.load(tmp_path / "saved")))


def test_compressed_files_get_from_others_what_was_tried(slow_lines: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 100))
    files, checked = slow_lines(10.0, [str(path)], compression_type="GZIP")
    files.save(tmp_path / "saved")
    tried(checked(files), "its records saved", checked(di.data.Dataset.load(tmp_path / "saved")))


def test_a_slow_store_gets_from_several_reads_what_was_told(tmp_path: Path) -> None:
    paths = lines(tmp_path, 64)
    advice = advice_of_files(di.data.TextLineDataset(paths).batch(8), waits=True)
    reads = int(re.findall(r"num_parallel_reads=(\d+)", advice)[0])
    assert near(times_of(advice), reads)
    together, opened = threading.Barrier(reads), itertools.count()

    def opening() -> None:
        if next(opened) < reads:
            together.wait(60)  # fails if fewer wait at once

    dataset = di.data.TextLineDataset(paths, num_parallel_reads=reads, filesystem=SlowToOpen(opening))
    assert len(list(dataset)) == 64


@pytest.mark.skipif(not DEEP, reason="needs cores that nobody else uses")
def test_a_slow_store_gets_from_several_reads_the_time_that_was_told(tmp_path: Path) -> None:
    paths = lines(tmp_path, 64)
    store = SlowToOpen(lambda: time.sleep(0.03))

    def took(reads: int | None) -> tuple[float, str]:
        dataset = di.data.TextLineDataset(paths, num_parallel_reads=reads, filesystem=store)
        begin = time.perf_counter()
        assert len(list(dataset)) == 64
        return time.perf_counter() - begin, dataset.stats().bottleneck

    slow, fast, told = float("inf"), float("inf"), ""
    for _ in range(12):  # the shortest pass of each kind is the least disturbed by other programs, and so is its advice
        seconds, advice = took(None)
        if seconds < slow and "times as fast" in advice:
            slow, told = seconds, advice
        fast = min(fast, took(8)[0])
        if told and near(times_of(told), slow / fast):
            return
    pytest.fail(f"told {told}, and it took {fast} s instead of {slow} s")


@pytest.mark.parametrize("pipeline, cure", [(0.01, "would not help"), (0.7, "prefetch(2)")])
def test_a_slow_loop_gets_what_was_told(clock: Clock, pipeline: float, cure: str) -> None:
    def ask(x: Any) -> bool:
        clock.wait(pipeline)
        return True

    def took(dataset: di.data.Dataset) -> float:
        begin = clock.now
        for _ in dataset:
            clock.wait(1.0)
        return clock.now - begin

    slow = RANGE(64).filter(ask)
    before = took(slow)
    advice = slow.stats().bottleneck
    assert cure in advice
    after = took(slow.prefetch(2) if "prefetch" in cure else RANGE(64))
    assert near(times_of(advice), before / after)


def test_a_loop_beside_a_prefetch_is_not_told_of_another(clock: Clock) -> None:
    def ask(x: Any) -> bool:
        clock.wait(0.1)
        return True

    dataset = RANGE(64).filter(ask).prefetch(2)
    for number, _ in enumerate(dataset):
        clock.wait(1.0 if number else 20.0)
    assert "prefetch" not in dataset.stats().bottleneck


def test_small_batches_get_from_larger_ones_what_was_tried(bench_clock: Clock) -> None:
    tried(RANGE(6400).batch(4), "batches 16 times as large", RANGE(6400).batch(64))
    tried(RANGE(6400), "batches 16 times as large", RANGE(6400).batch(16))


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
    _ = list(RANGE(4).map(lambda x: alone(x), output_signature=di.TensorSpec([], "int64")))
    _ = list(RANGE(16).map(lambda x: beside(x), num_parallel_calls=8, output_signature=di.TensorSpec([], "int64")))
    assert alone.most == 1 < beside.most


def advice_of_files(dataset: di.data.Dataset, waits: bool, pieces: int = 1) -> str:
    """What is said if reading the files takes nearly all of a pass, in which it waits or computes."""
    with iter(dataset) as iterator:
        assert len(list(iterator)) > 0
        node, counters = iterator.counted
        reader = next(step for step in walk(node) if isinstance(step, Reader))
        counters[id(reader)].own += 1e4
        counters[id(reader)].blocks *= pieces
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
    assert "it waits for the storage of 60 files: num_parallel_reads=8 reads so many at a time" in advice
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

    dataset = RANGE(40).map(count, num_parallel_calls=4).batch(4)
    assert "latest pass" not in dataset.explain()
    slowest, advice = first_advice(dataset)
    assert slowest == "1:map"
    assert "its 4 threads take turns in Python, one at a time: processes=True" in advice
    assert f"latest pass: {dataset.stats().bottleneck}" in dataset.explain()


def test_explain_says_nothing_of_a_pass_that_took_no_time(clock: Clock) -> None:
    def count(x: Any) -> Any:
        clock.work(0.01)
        return int(x)

    dataset = RANGE(40).map(count)
    assert (first_advice(dataset)[0], "latest pass" in dataset.explain()) == ("1:map", False)


def test_threads_that_take_turns_on_a_busy_machine_are_promised_nothing(clock: Clock) -> None:
    def count(x: Any) -> Any:
        clock.work(0.1)
        clock.wait(0.6)  # for its turn, or for anything else
        return int(x)

    _, advice = first_advice(RANGE(40).map(count, num_parallel_calls=2).batch(4))
    assert "its 2 threads wait for something, or for their turn in Python" in advice
    assert "not measured" in advice


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


def test_images_that_are_decoded_are_saved(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice names what a user can write: not the function of ours that decodes, nor what its dataset does not take."""
    image = pytest.importorskip("PIL.Image")
    for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        image.fromarray(np.random.default_rng(1).integers(0, 255, (400, 400, 3), np.uint8)).save(tmp_path / name)
    opens = image.open

    def slowly(*given: Any, **more: Any) -> Any:
        clock.work(0.1)
        return opens(*given, **more)

    monkeypatch.setattr(image, "open", slowly)
    images = di.data.ImageFolderDataset(tmp_path)
    told = bench(images, None, warm_up=0)
    assert told.slowest == "1:map"
    assert told.bottleneck.startswith("map(map_func=read_image, ")
    assert "; Dataset.save and Dataset.load, or cache, keep what it makes for the next passes. " in told.bottleneck
    assert not [text for text in told.changes if re.search(r"\b_|processes|threads|vectorize|element by element", text)]
    changes = [one.change for one in trials(images, told, 1.0)]
    assert changes == ["map(num_parallel_calls=32)", "its records saved on this disk (Dataset.save)"]


@pytest.mark.parametrize("calls", [None, di.data.AUTOTUNE])
def test_autotune_is_not_advised_where_it_is(clock: Clock, calls: int | None) -> None:
    def count(x: Any) -> Any:
        clock.work(0.1)
        return int(x)

    _, advice = first_advice(RANGE(40).map(count, num_parallel_calls=calls, output_signature=INT64).batch(4))
    assert ("num_parallel_calls= spreads it" in advice) == (calls is None)
    assert "processes=True" in advice
    assert "workers would help" not in advice


def test_a_slow_predicate_is_asked_in_a_map(clock: Clock) -> None:
    def kept(seconds: float, pause: Callable[[float], None]) -> di.data.Dataset:
        def keep(x: Any) -> bool:
            pause(seconds)
            return bool(x % 2)

        return RANGE(64).filter(keep).batch(4)

    slowest, advice = first_advice(kept(0.1, clock.work))
    assert slowest == "1:filter"
    assert (
        "a map before it that returns the element and what the predicate says of it is spread over processes" in advice
    )
    _, advice = first_advice(kept(1e-6, clock.work))
    assert "an expression of pyarrow" in advice
    _, advice = first_advice(kept(0.1, clock.wait))
    assert "waits for 32 at a time with num_parallel_calls=32" in advice
    assert near(times_of(advice), 32)


@pytest.mark.parametrize("own", [0.0, 0.002])
def test_a_large_buffer_delivers_the_first_element_as_told_with_a_smaller_one(
    own: float, bench_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the buffer takes time of its own for each element."""

    def asked() -> float:
        bench_clock.work(own)
        return bench_clock()

    # How many elements are taken at a time depends on the clock.
    monkeypatch.setattr(run_module, "perf_counter", bench_clock)
    monkeypatch.setattr(shuffle_module, "perf_counter", asked)

    def check(x: Any) -> bool:
        bench_clock.wait(0.005)
        return True

    def first_of(size: int) -> bench_module.Bench:
        return bench(RANGE(2000).filter(check).shuffle(size, seed=1).batch(10), None, elements=1, warm_up=0)

    before = first_of(300)
    (advice,) = [text for text in before.changes if "wait in its buffer" in text]
    assert "300 elements wait in its buffer: the first one is delivered after " in advice
    told = re.search(r"buffer_size=(\d+) would deliver the first one after ([\d.]+) (m?)s", advice)
    assert told is not None
    after = first_of(int(told[1]))
    assert after.first_seconds is not None
    assert near(float(told[2]) * (1e-3 if told[3] else 1), after.first_seconds)
    assert not [text for text in after.changes if "wait in its buffer" in text]


@pytest.mark.parametrize("memory, much", [(1 << 20, True), (1 << 30, False), (None, False)])
def test_a_buffer_that_takes_much_of_the_memory_is_told(
    monkeypatch: pytest.MonkeyPatch, memory: int | None, much: bool
) -> None:
    monkeypatch.setattr(bench_module, "memory", lambda: memory)
    images = RANGE(100).map(lambda x: np.full((32, 32), x, np.float32)).filter(lambda x: True)
    held = bench(images.shuffle(80).batch(10).prefetch(1), None, warm_up=0).changes
    assert ("they take about 320 KiB of the 1 MiB of memory" in " ".join(held)) == much
    by_number = bench(RANGE(100_000).shuffle(90_000), None, warm_up=0).changes
    assert not [text for text in by_number if "wait in its buffer" in text]


@pytest.mark.parametrize("pieces, told", [(1, True), (2, False)])
def test_files_that_come_in_several_pieces_are_tried(tmp_path: Path, pieces: int, told: bool) -> None:
    """Of these, another number of pieces is asked for where several files are read at a time."""
    dataset = di.data.TextLineDataset(lines(tmp_path, 60))
    assert len(list(dataset)) == 60
    advice = advice_of_files(dataset.batch(8), waits=True, pieces=pieces)
    assert "num_parallel_reads=8 reads so many at a time" in advice
    assert ("times as fast" in advice) == told


def test_work_and_waiting_of_many_at_a_time_take_longer_than_either() -> None:
    """Those that come back together queue for Python; where one of both is much longer, it hides the other."""
    for waits, works in [(64.0, 0.0), (64.0, 8.0), (64.0, 32.0)]:
        pace = stats_module._Pace(waits, 0.0, 0.0, waits, CoreUse(works, 9))
        took = waits / times_of(pace.at_once(0, 8, 0.0))
        assert max(8.0, works) <= took * 1.02
        assert took <= (8.0 + works) * 1.02
    busy = stats_module._Pace(64.0, 0.0, 0.0, 64.0, CoreUse(32.0, 9, 10_000))
    assert "other programs had the cores" in busy.at_once(0, 8, 0.0)


def is_odd(*parts: Any) -> bool:
    return int(parts[-1]) % 2 == 1


@pytest.mark.parametrize(
    "make", [lambda: RANGE(9), lambda: RANGE(9).enumerate(), lambda: RANGE(9).map(lambda x: {"x": x})]
)
def test_a_predicate_that_is_tried_in_processes_keeps_the_same(
    make: Callable[[], di.data.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distinput.ops.map.cores", lambda: 2)  # a process for each
    keep: Any = of_dict if isinstance(make().element_spec, dict) else is_odd
    kept = make().filter(keep)
    (change,) = [name for name in bench_module.CHANGES if "predicate" in name]
    edit = bench_module.CHANGES[change]
    assert di.data.Dataset(edit(kept.node)).to_list() == kept.to_list()


def of_dict(element: Any) -> bool:
    return is_odd(element["x"])


@pytest.mark.parametrize("disturbed", [False, True])
def test_no_gain_is_told_where_other_programs_had_the_cores(clock: Clock, disturbed: bool) -> None:
    """What a thread lost to them, it did not wait for, and threads side by side would not have it either."""

    def count(x: Any) -> Any:
        clock.now += 0.1
        clock.cores[1] += 1
        clock.cores[2] += 50 * disturbed
        return int(x)

    dataset = RANGE(64).map(count, output_signature=INT64)
    for _ in dataset:
        clock.wait(0.15)
    stats = dataset.stats()
    assert stats.slowest == "consumer"
    assert "prefetch(2) at the end" in stats.bottleneck
    assert ("since other programs had the cores" in stats.bottleneck) == disturbed
    assert ("As measured, the pass would be" in stats.bottleneck) == (not disturbed)


@pytest.mark.parametrize("rows, helps", [(1, True), (16, True), (1000, False)])
def test_batches_that_are_too_small(clock: Clock, rows: int, helps: bool) -> None:
    dataset = RANGE(4000).batch(rows)
    for _ in dataset:
        clock.work(1e-6)
    stats = dataset.stats()
    assert stats.slowest == "consumer"
    assert ("larger batches give it many rows at a time" in stats.bottleneck) == helps


def test_a_busy_machine_is_not_taken_for_waiting(clock: Clock) -> None:
    """Other programs take the core: little of the time is on it, but no thread gave it up."""

    def count(x: Any) -> Any:
        clock.now += 0.1
        return int(x)

    _, advice = first_advice(RANGE(40).map(count).batch(4))
    assert "waits" not in advice
    assert "num_parallel_calls= spreads it over threads, with processes=True" in advice
