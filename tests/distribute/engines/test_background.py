# SPDX-License-Identifier: Apache-2.0
"""Calls that may never return, made by a thread."""

import threading
import time
from collections.abc import Iterator

import pytest

from distinput.distribute.engines.background import BackgroundThread
from tests.exhausted import ThreadStarts
from tests.patience import threads_since


@pytest.fixture
def thread() -> Iterator[BackgroundThread]:
    thread = BackgroundThread("test-background")
    yield thread
    thread.close()


def test_a_thread_starts_with_the_first_call_and_ends_when_closed(thread: BackgroundThread) -> None:
    before = threading.enumerate()
    thread.close()  # nothing was begun
    assert threads_since(before) == []
    call = thread.submit(divmod, 7, 2)
    assert call.wait(60)
    assert call.value() == (3, 1)
    (running,) = threads_since(before)
    assert (running.name, running.daemon) == ("test-background", True)
    thread.close()
    running.join(60)
    assert not running.is_alive()


def test_calls_are_made_in_order(thread: BackgroundThread) -> None:
    made: list[int] = []
    calls = [thread.submit(made.append, number) for number in range(20)]
    assert calls[-1].wait(60)
    assert made == list(range(20))


def test_a_call_that_does_not_return_is_not_waited_for_any_longer(thread: BackgroundThread) -> None:
    gate = threading.Event()
    stuck = thread.submit(gate.wait)
    queued = thread.submit(int)
    begin = time.monotonic()
    assert not stuck.wait(0.05)
    assert not queued.wait(0)
    assert time.monotonic() - begin < 30
    assert thread.has_queued()
    gate.set()
    assert queued.wait(60)
    assert not thread.has_queued()


def test_an_error_is_raised_to_whoever_waits_and_harms_no_other_call(thread: BackgroundThread) -> None:
    failing, next_one = thread.submit(int, "x"), thread.submit(int, "3")
    with pytest.raises(ValueError, match="invalid literal"):
        failing.wait(60)
    assert next_one.wait(60)
    assert next_one.value() == 3


def test_closing_waits_a_short_time_only() -> None:
    gate = threading.Event()
    thread = BackgroundThread("test-background")
    thread.submit(gate.wait)
    begin = time.monotonic()
    thread.close()
    assert time.monotonic() - begin < 30
    gate.set()


def test_a_thread_that_did_not_start_is_started_with_the_next_call(
    thread: BackgroundThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    ThreadStarts(monkeypatch).fail(1)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        thread.submit(divmod, 7, 2)
    thread.close()  # waits for none
    call = thread.submit(divmod, 9, 2)
    assert call.wait(60)
    assert call.value() == (4, 1)
