# SPDX-License-Identifier: Apache-2.0
"""A pool of threads gives results and errors, drops what has not begun, and waits in C code alone."""

import threading

import pytest

from distinput.core.pool import Pool
from distinput.errors import CancelledError


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
    tasks = [pool.submit(release.wait, 10) for _ in range(5)]
    assert len(pool.threads) == 2
    release.set()
    assert all(task.result() for task in tasks)
    pool.shutdown()
    for thread in pool.threads:
        thread.join(10)
        assert not thread.is_alive()


def test_what_has_not_begun_is_dropped() -> None:
    pool, begun, release = Pool(1), threading.Event(), threading.Event()

    def slow() -> int:
        begun.set()
        release.wait(10)
        return 1

    first, second, third = pool.submit(slow), pool.submit(int), pool.submit(int)
    assert begun.wait(10)
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


def test_a_task_that_raises_what_says_that_it_is_cancelled_was_not() -> None:
    def cancels() -> None:
        raise CancelledError("by the function")

    pool = Pool(1)
    task = pool.submit(cancels)
    with pytest.raises(CancelledError, match="by the function"):
        task.result()
    assert not task.cancelled()
    pool.shutdown()
