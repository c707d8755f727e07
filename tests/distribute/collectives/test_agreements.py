# SPDX-License-Identifier: Apache-2.0
"""Agreements on an engine that is slow to begin one: a thread posts them, and nothing else is different."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from distinput.distribute.collectives.agreements import _checked
from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines import Collectives, PeerLost, Poisoned
from distinput.distribute.engines.local import LocalChannel, open_groups
from distinput.testing.collectives import CHECKS, FAULTS, IN_THREADS, check_threads, fault_threads
from tests.exhausted import ThreadStarts
from tests.patience import threads_since, wait_until


@pytest.fixture(autouse=True)
def _posted_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalChannel, "post_is_cheap", False)


@contextmanager
def groups_of(size: int, timeout: float = 60.0) -> Iterator[list[Collectives]]:
    groups = open_groups(size, timeout=timeout)
    try:
        yield groups
    finally:
        for group in groups:
            group.close()


def posting(before: list[threading.Thread]) -> list[threading.Thread]:
    return threads_since(before, "distinput-agreements")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_conformance(size: int) -> None:
    before = threading.enumerate()
    with groups_of(size) as groups:
        report = check_threads(groups)
        assert len(posting(before)) == size
    assert report.problems == []
    assert [outcome.passed for outcome in report.outcomes] == [list(CHECKS)] * size
    wait_until(lambda: not posting(before))


@pytest.mark.parametrize("fault", IN_THREADS)
def test_faults(fault: str) -> None:
    before = threading.enumerate()
    with groups_of(3, timeout=2.0 if FAULTS[fault].waits else 60.0) as groups:
        report = fault_threads(groups, fault)
    assert report.problems == []
    assert [outcome.passed for outcome in report.outcomes] == [[fault]] * 2
    wait_until(lambda: not posting(before))


def test_whoever_posts_does_not_wait_for_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    post_sum, ready, posted = LocalChannel.post_sum, threading.Event(), list[bool]()

    def slow(channel: LocalChannel, values: Any) -> Any:
        posted.append(ready.wait(60))
        return post_sum(channel, values)

    monkeypatch.setattr(LocalChannel, "post_sum", slow)
    with groups_of(2) as groups:
        under_way = [[group.agree([place, group.rank]) for place in range(3)] for group in groups]
        assert not under_way[0][2].done()
        assert not posted
        ready.set()
        for mine in under_way:
            assert [agreement.result() for agreement in mine] == [[0, 1], [2, 1], [4, 1]]


def test_what_is_complete_is_taken_in_before_anybody_asks() -> None:
    with groups_of(2) as groups:
        agreements = [group.agree([7]) for group in groups]
        wait_until(lambda: all(agreement.settled for agreement in agreements))


def test_closing_posts_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    post_sum = LocalChannel.post_sum

    def slow(channel: LocalChannel, values: Any) -> Any:
        time.sleep(0.05)
        return post_sum(channel, values)

    monkeypatch.setattr(LocalChannel, "post_sum", slow)
    with groups_of(2) as (here, other):
        for _ in range(3):
            other.agree([1])
        other.close()
        assert [here.agree([1]).result() for _ in range(3)] == [[2]] * 3


@pytest.mark.parametrize("error", [ChannelLost("the connection broke"), TypeError("not this array")])
def test_what_the_engine_raises_comes_to_whoever_asks(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise error

    with groups_of(2) as (here, _):
        here.agree([1])
        monkeypatch.setattr(LocalChannel, "post_sum", fails)
        agreement = here.agree([1])
        here._agreements._pending.popleft()  # the first one waits for the other worker
        wait_until(agreement.done)
        with pytest.raises(PeerLost if isinstance(error, ChannelLost) else TypeError, match=str(error)):
            agreement.result()
        with pytest.raises(Poisoned):
            here.agree([1])


def test_agreements_of_many_threads_are_numbered_as_they_are_posted() -> None:
    with groups_of(2) as groups, ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(group.agree, [1, 2]) for _ in range(50) for group in groups]
        assert [job.result().result() for job in jobs] == [[2, 4]] * 100


@pytest.mark.parametrize("values", [[], [1, True, np.int64(3), np.bool_(True)], [(1 << 62) - 1, 1 - (1 << 62)]])
def test_integers_of_any_kind_are_taken(values: list[Any]) -> None:
    assert _checked(values, 2) == [int(value) for value in values]


def test_an_agreement_without_a_thread_is_an_error_and_the_next_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with groups_of(1) as [group]:
        ThreadStarts(monkeypatch).fail(1)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            group.agree([1])
        assert group.agree([2]).result(60) == [2]
