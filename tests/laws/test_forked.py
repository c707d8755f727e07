# SPDX-License-Identifier: Apache-2.0
"""A child of a busy program runs a pipeline to its end, whatever other threads did when it was forked."""

import gc
import gzip
import importlib.metadata
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.files.paths import FileLock, locked
from distinput.kernels.kernel import renewed
from distinput.names import lazy
from distinput.ops.on_error import Quarantine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

_SECONDS = 60


def status_of(work: Callable[[], object]) -> int:
    """What a child that does this work ends with; a child that hangs is killed."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        try:
            work()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_lock_that_another_thread_holds_is_open_in_a_child() -> None:
    for lock in (renewed(threading.Lock()), renewed(threading.RLock())):
        held, over = threading.Event(), threading.Event()

        def hold(lock: threading.Lock = lock, held: threading.Event = held, over: threading.Event = over) -> None:
            with lock:
                held.set()
                over.wait(_SECONDS)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(_SECONDS)
        status = status_of(lock.acquire)
        over.set()
        thread.join()
        assert status == 0


def test_a_module_that_another_thread_is_importing_is_imported_by_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_imported.py").write_text(
        "import os, threading\n"
        "begun, over = threading.Event(), threading.Event()\n"
        f"if os.getpid() == {os.getpid()}:\n"
        "    begun.set(); over.wait(60)\n"
        "whole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    thread = threading.Thread(target=lambda: __import__("half_imported"))
    thread.start()
    while not hasattr(sys.modules.get("half_imported"), "over"):
        pass
    status = status_of(lambda: __import__("half_imported").whole)
    sys.modules["half_imported"].over.set()
    thread.join()
    assert status == 0


def test_extensions_that_another_thread_is_loading_are_loaded_by_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, over, loaded = threading.Event(), threading.Event(), []
    own = os.getpid()

    class Point:
        name, dist = "slow", None

        def load(self) -> None:
            if os.getpid() == own:
                begun.set()
                over.wait(_SECONDS)
            loaded.append(os.getpid())

    def as_it_is_there() -> None:
        assert lazy.load_extensions()
        assert not lazy.load_extensions()
        assert loaded == [os.getpid()]

    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Point()])
    monkeypatch.setattr(lazy, "_looked", False)
    thread = threading.Thread(target=lazy.load_extensions)
    thread.start()
    begun.wait(_SECONDS)
    status = status_of(as_it_is_there)
    over.set()
    thread.join()
    assert status == 0
    assert loaded == [own]


_BUSY = """
import os, random, signal, sys, threading, time
import distinput as di
from distinput.kernels import kernel
kernel._spent = 0.1  # kernels are loaded at once

def work():
    ds = di.data.TFRecordDataset(sys.argv[1]).parse_example({"n": di.io.FixedLenFeature([], "int64")})
    ds = ds.shuffle(40, seed=1).batch(16).prefetch(2).map(lambda x: x, num_parallel_calls=2)
    assert len(ds.to_list()) == 4

def always():
    while True:
        time.sleep(0.01)
        work()

for _ in range(2):
    threading.Thread(target=always, daemon=True).start()
for _ in range(2):
    time.sleep(random.random() / 20)
    child = os.fork()
    if not child:
        signal.alarm(60)
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""


def test_children_of_threads_that_run_pipelines_run_them_too(tmp_path: Path) -> None:
    records = tmp_path / "x.tfrecord"
    with di.io.TFRecordWriter(str(records)) as writer:
        for n in range(50):
            writer.write(di.io.encode_example({"n": n}))
    made = subprocess.run([sys.executable, "-c", _BUSY, records], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def plus_one(x: int) -> int:
    return x + 1


_N = 5000
WAYS: dict[str, Callable[[], di.data.Dataset]] = {
    "prefetch": lambda: di.data.Dataset.range(_N).map(plus_one).prefetch(1),
    "threads": lambda: di.data.Dataset.range(_N).map(plus_one, num_parallel_calls=2),
    "processes": lambda: di.data.Dataset.range(_N).map(plus_one, num_parallel_calls=1, processes=True),
    "interleave": lambda: di.data.Dataset.range(1).interleave(
        lambda _: di.data.Dataset.range(_N).map(plus_one), cycle_length=1, num_parallel_calls=1
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_iteration_that_needs_threads_or_workers_of_the_parent_is_an_error_in_a_child(way: str) -> None:
    dataset = WAYS[way]()
    iterator = iter(dataset)
    next(iterator)

    def goes_on() -> None:
        with pytest.raises(di.errors.FailedPreconditionError, match="is a fork of it"):
            list(iterator)

    def begins_anew() -> None:
        assert dataset.to_list() == list(range(1, _N + 1))

    assert status_of(goes_on) == 0
    assert status_of(begins_anew) == 0
    assert [int(x) for x in iterator] == list(range(2, _N + 1))


def test_a_child_has_on_workers_for_itself_whatever_threads_of_the_parent_have_in_hand() -> None:
    parent, begun, over = os.getpid(), threading.Event(), threading.Event()

    def waits(x: int) -> int:
        if os.getpid() == parent:
            begun.set()
            over.wait(_SECONDS)
        return x + 1

    dataset = di.data.Dataset.range(9).map(waits, output_signature=di.TensorSpec([], "int64")).on_workers("threads:1")
    with iter(dataset) as iterator:
        taking = threading.Thread(target=next, args=(iterator,))
        taking.start()
        assert begun.wait(_SECONDS)

        def begins_anew() -> None:
            assert dataset.to_list() == list(range(1, 10))

        status = status_of(begins_anew)
        over.set()
        taking.join()
    assert status == 0


def test_an_iteration_in_one_thread_goes_on_in_a_child() -> None:
    iterator = iter(di.data.Dataset.range(_N).map(plus_one))
    next(iterator)

    def goes_on() -> None:
        assert [int(x) for x in iterator] == list(range(2, _N + 1))

    assert status_of(goes_on) == 0
    goes_on()


LINES = [b"%09d" % number for number in range(30_000)]
FILES: dict[str, Callable[[str], Any]] = {
    "text": di.data.TextLineDataset,
    "text.gz": di.data.TextLineDataset,
    "csv": lambda path: di.data.CsvDataset(path, [di.string], header=False).map(lambda line: line),
    "bin": lambda path: di.data.FixedLengthRecordDataset(path, 10).map(lambda line: line[:9]),
    "npy": lambda path: di.data.NpyDataset(path, memory_map=False).map(lambda number: b"%09d" % number),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_a_child_reads_on_is_read_on_by_the_parent(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, np.arange(len(LINES)))
    else:
        with gzip.open(path, "wb") if kind.endswith("gz") else path.open("wb") as file:
            file.writelines([line + b"\n" for line in LINES])
    iterator = iter(FILES[kind](str(path)))
    first = next(iterator)

    def goes_on() -> None:
        with suppress(di.errors.FailedPreconditionError):  # a thread of the parent reads ahead
            assert list(iterator) == LINES[1:]

    assert status_of(goes_on) == 0
    assert [first, *iterator] == LINES


@pytest.mark.parametrize("kind", ["cache", "shared", "snapshot", "snapshot of shards"])
@pytest.mark.parametrize("does", ["drops", "ends", "goes on"])
def test_a_child_leaves_the_files_of_a_pass_alone(does: str, kind: str, tmp_path: Path) -> None:
    """It may drop an iterator that keeps its elements in files, or go on with it; the parent's pass is kept all the same."""
    count, folder = 6000, str(tmp_path / "kept")

    def made() -> di.data.Dataset[Any]:
        rows = di.data.Dataset.range(count).map(lambda x: np.full(50, x))
        match kind:
            case "cache":
                return rows.cache(folder)
            case "shared":
                return rows.cache(shared=folder)
            case "snapshot":
                return rows.snapshot(folder)
        return rows.snapshot(folder, shard_func=lambda row: row[0] % 3)

    iterator = iter(made())
    got = [int(next(iterator)[0]) for _ in range(count // 2)]

    def work() -> None:
        if does == "drops":
            iterator.close()
        elif does == "ends":
            iterator._iteration.stream = None  # as when Python takes its modules apart
            gc.collect()
        else:
            assert got + [int(row[0]) for row in iterator] == [*range(count)]

    assert status_of(work) == 0
    assert got + [int(row[0]) for row in iterator] == [*range(count)]
    assert sorted(int(row[0]) for row in made()) == [*range(count)]
    (kept,) = [file.parent for file in (tmp_path / "kept").rglob("distinput-manifest.json")]
    di.io.verify_files(kept)


def test_a_file_of_failed_elements_is_free_though_a_child_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else adds a line would wait for the end of the child, which was forked while a line was added."""
    path, read = tmp_path / "bad.jsonl", os.pread
    children: list[int] = []
    reads, writes = os.pipe()

    def fork(*args: Any) -> bytes:
        if not children:
            children.append(os.fork())
            if not children[0]:
                signal.alarm(_SECONDS)
                os.read(reads, 1)
                os._exit(0)
        return read(*args)

    monkeypatch.setattr(os, "pread", fork)
    try:
        assert Quarantine(path, 9).add({"file": "a", "row": 3})
        with path.open() as file:
            assert locked(file.fileno())
    finally:
        os.write(writes, b"x")
        os.waitpid(children[0], 0)
        os.close(reads)
        os.close(writes)


def test_a_lock_of_a_file_that_is_released_is_free_though_a_child_lives_on(tmp_path: Path) -> None:
    """A child has the open file too, and neither keeps the lock nor frees it."""
    lock, path = FileLock(str(tmp_path / "lock")), str(tmp_path / "lock")
    assert lock.take()
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(_SECONDS)
        os.read(reads, 1)
        os._exit(0)
    try:
        assert status_of(lock.release) == 0
        assert FileLock(path).take() is False, "another child has not freed it"
        lock.release()
        with FileLock(path) as other:
            assert other.take()
    finally:
        os.write(writes, b"x")
        os.waitpid(child, 0)
        os.close(reads)
        os.close(writes)


@pytest.mark.parametrize("pool", [ProcessPoolExecutor, ThreadPoolExecutor])
@pytest.mark.parametrize("way", ["map", "on_workers"])
def test_an_executor_whose_threads_a_child_has_not_is_refused(way: str, pool: Callable[[int], Executor]) -> None:
    numbers = di.data.Dataset.range(9)
    with pool(1) as idle, pool(1) as executor:
        assert executor.submit(abs, -1).result() == 1  # it has its threads from now on

        def by(service: Executor) -> list[int]:
            by_map = numbers.map(abs, executor=service)
            return [int(x) for x in (by_map if way == "map" else numbers.map(abs).on_workers(service))]

        def refused() -> None:
            with pytest.raises(di.errors.FailedPreconditionError, match="has none of the threads of"):
                by(executor)

        def taken() -> None:
            with idle:  # its threads begin here, and so do its processes
                assert by(idle) == list(range(9))

        assert status_of(refused) == 0
        assert status_of(taken) == 0
        assert by(executor) == list(range(9))
