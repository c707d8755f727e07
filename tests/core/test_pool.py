# SPDX-License-Identifier: Apache-2.0
"""A pool of threads gives results and errors, drops what has not begun, and waits in C code alone."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from weakref import ref as weakref

import pytest

import distinput
from distinput.errors import CancelledError
from distinput.run.threads import Pool, Task, mapped
from tests.exhausted import ThreadStarts


def test_results_and_errors_come_to_who_asks() -> None:
    pool = Pool(2)
    made, failed = pool.submit(pow, 2, exp=5), pool.submit(int, "x")
    assert made.result() == made.result() == 32
    assert made.done()
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result()
    pool.shutdown()


def test_no_more_threads_than_tasks_and_than_there_may_be() -> None:
    pool, release = Pool(2), threading.Event()
    pool.submit(int).result()
    pool.submit(int).result()
    assert len(pool.threads) == 1
    tasks = [pool.submit(release.wait, 60) for _ in range(5)]
    assert len(pool.threads) == 2
    release.set()
    assert all(task.result() for task in tasks)
    pool.shutdown()
    for thread in pool.threads:
        thread.join(60)
        assert not thread.is_alive()


def test_there_are_enough_threads_where_more_may_be() -> None:
    pool, release = Pool(2), threading.Event()
    for _ in range(20):
        pool.submit(int).result()  # of which the pool is not busy
    tasks = [pool.submit(release.wait, 60) for _ in range(50)]
    pool.grow(4)
    together = threading.Barrier(3)
    release.set()
    assert all(task.result() for task in tasks)
    meeting = [pool.submit(together.wait, 60) for _ in range(3)]  # none of them ends before all have begun
    assert sorted(task.result() for task in meeting) == [0, 1, 2]
    pool.shutdown()


def test_no_result_is_kept_by_the_pool() -> None:
    class Result:
        pass

    pool = Pool(1)
    task = pool.submit(Result)
    held = weakref(task.result())
    del task
    pool.submit(int).result()  # the thread has let go of the task before
    assert held() is None
    pool.shutdown()


def test_what_has_not_begun_is_dropped() -> None:
    pool, begun, release = Pool(1), threading.Event(), threading.Event()

    def slow() -> int:
        begun.set()
        release.wait(60)
        return 1

    first, second, third = pool.submit(slow), pool.submit(int), pool.submit(int)
    assert begun.wait(60)
    assert second.cancel()
    assert not first.cancel()
    pool.shutdown()
    assert second.cancelled()
    assert third.cancelled()
    assert not first.cancelled()
    with pytest.raises(CancelledError):
        third.result()
    release.set()
    assert first.result() == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)


def test_a_pool_that_is_shut_down_while_it_is_given_a_task_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(1)

    class Given(Task[int]):
        def __init__(self, call: Callable[[], int]) -> None:
            super().__init__(call)
            pool.shutdown()  # by the thread of a consumer that goes just now

    monkeypatch.setattr("distinput.run.threads.Task", Given)
    task = pool.submit(int)
    for thread in pool.threads:
        thread.join(60)
        assert not thread.is_alive()
    assert task.done()


def test_a_pool_whose_thread_did_not_start_starts_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, called = Pool(1), []
    ThreadStarts(monkeypatch).fail(1)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        pool.submit(called.append, "refused")
    task = pool.submit(called.append, "taken")
    assert pool.threads, "somebody must take it"
    task.result()
    assert called == ["taken"]
    pool.shutdown()


def test_a_task_that_raises_what_says_that_it_is_cancelled_was_not() -> None:
    def cancels() -> None:
        raise CancelledError("by the function")

    pool = Pool(1)
    task = pool.submit(cancels)
    with pytest.raises(CancelledError, match="by the function"):
        task.result()
    assert not task.cancelled()
    pool.shutdown()


def test_calls_come_in_the_order_of_the_items_and_the_first_error_is_raised() -> None:
    assert mapped(lambda x: x * 2, range(50), 4) == list(range(0, 100, 2))
    assert mapped(len, [], 4) == []
    begun: list[int] = []
    together = threading.Barrier(4)

    def fails(x: int) -> int:
        begun.append(x)
        if x in (1, 2):
            raise KeyError(x)
        return x

    def all_fail(x: int) -> int:
        begun.append(x)
        together.wait(60)
        raise KeyError(x)

    with pytest.raises(KeyError, match="1"):
        mapped(fails, range(1000), 1)
    assert begun == [0, 1]
    begun.clear()
    with pytest.raises(KeyError, match="0"):
        mapped(all_fail, range(1000), 4)
    assert sorted(begun) == [0, 1, 2, 3]


INTERRUPTED = """
import signal, threading, time
from distinput.run.threads import mapped

def slow(x):
    if x == 0:
        interrupt = signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
        threading.Timer(0.3, *interrupt).start()
    time.sleep(300)

begin = time.monotonic()
try:
    mapped(slow, range(100), 4)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 60)
"""


def test_an_interrupt_is_not_held_up_by_calls_that_take_long() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout == "interrupted True\n"


def test_nothing_else_waits_with_threads_of_the_standard_library() -> None:
    """Their waits are written in Python, see above; tests and users' own executors may have them."""
    root = Path(distinput.__file__).parent
    named = [str(path.relative_to(root)) for path in root.rglob("*.py") if "ThreadPoolExecutor(" in path.read_text()]
    examples = ["distribute/engines/local.py", "ops/first_come.py"]
    assert sorted(name for name in named if not name.startswith("testing")) == examples
