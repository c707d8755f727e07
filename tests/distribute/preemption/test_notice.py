# SPDX-License-Identifier: Apache-2.0
"""The notice: SIGTERM, or what a function says."""

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from distinput.distribute.preemption import Notice
from distinput.errors import FailedPreconditionError
from tests.patience import threads_since, wait_until


@pytest.fixture
def caught() -> Iterator[list[int]]:
    """The signals that reach a handler of the program's own."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_noted_and_does_not_end_the_process(caught: list[int]) -> None:
    first, second = Notice(), Notice()
    assert first.when is None
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    for notice in (first, second):
        assert notice.when is not None
        assert began <= notice.when <= time.monotonic()
        notice.acted_on()
    second.close()
    first.close()
    assert caught == []
    os.kill(os.getpid(), signal.SIGTERM)
    assert caught == [signal.SIGTERM], "the handler of the program is back"


def test_a_signal_that_nobody_acted_on_is_sent_again(caught: list[int]) -> None:
    notice = Notice()
    os.kill(os.getpid(), signal.SIGTERM)
    notice.close()
    notice.close()
    assert caught == [signal.SIGTERM]


def test_a_notice_that_was_dropped_swallows_nothing(caught: list[int]) -> None:
    notice: Any = Notice()
    del notice
    gc.collect()
    os.kill(os.getpid(), signal.SIGTERM)
    assert caught == [signal.SIGTERM]


def test_a_function_is_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.distribute.preemption._LOOK_SECONDS", 0.01)
    answers = [False, False, True, False]
    before = threading.enumerate()
    notice = Notice(lambda: answers.pop(0) if answers else False)
    wait_until(lambda: notice.when is not None)
    (asking,) = threads_since(before, "distinput-notice")
    notice.close()
    asking.join(60)
    assert not asking.is_alive()


@pytest.mark.parametrize("end", ["closed", "dropped"])
def test_the_thread_that_asks_does_not_outlive_the_notice(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.distribute.preemption._LOOK_SECONDS", 3600)
    before, asked = threading.enumerate(), threading.Event()
    notice: Any = Notice(asked.set)  # type: ignore[arg-type]
    (asking,) = threads_since(before, "distinput-notice")
    assert asked.wait(60)
    assert asking.is_alive()
    if end == "closed":
        notice.close()
    else:
        del notice
        gc.collect()
    asking.join(60)
    assert not asking.is_alive()


def test_a_second_signal_does_not_hide_the_exit_code(caught: list[int]) -> None:
    notice = Notice()
    os.kill(os.getpid(), signal.SIGTERM)
    notice.acted_on()
    os.kill(os.getpid(), signal.SIGTERM)
    notice.close(ending=True)
    assert caught == []


def test_other_threads_cannot_watch_for_signals() -> None:
    found: list[Any] = []

    def make() -> None:
        try:
            Notice()
        except FailedPreconditionError as error:
            found.append(str(error))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert "make the handler there" in found[0]
