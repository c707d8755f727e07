# SPDX-License-Identifier: Apache-2.0
"""Threads of the library take short turns at Python's lock, and leave the switch interval as they found it."""

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import distinput as di
from distinput.kernels.kernel import HelperThread

PYTHONS, SHORT, OWN = 0.005, 0.0001, 0.003
PLAIN = {"distribute/devices/threads.py"}  # of replicas, beside which there is a thread that makes their batches


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if no thread of the library had been left by other tests."""
    monkeypatch.setattr("distinput.kernels.kernel._helping", set())
    before = sys.getswitchinterval()
    sys.setswitchinterval(PYTHONS)
    yield
    sys.setswitchinterval(before)


def interval() -> float:
    return round(sys.getswitchinterval(), 6)


def seen_by(threads: int) -> list[float]:
    """The interval in the middle of so many threads that are there together, and behind each of their ends."""
    met, ends, seen = threading.Barrier(threads + 1), [threading.Event() for _ in range(threads)], list[float]()

    def wait(number: int) -> None:
        met.wait(60)
        ends[number].wait(60)

    helpers = [HelperThread(target=wait, args=(number,)) for number in range(threads)]
    for helper in helpers:
        helper.start()
    met.wait(60)
    seen.append(interval())
    for helper, end in zip(helpers, ends, strict=True):
        end.set()
        helper.join(60)
        seen.append(interval())
    return seen


def test_turns_are_short_until_the_last_thread_has_ended() -> None:
    assert seen_by(1) == [SHORT, PYTHONS]
    assert seen_by(3) == [SHORT, SHORT, SHORT, PYTHONS]


def test_an_interval_that_the_program_has_set_stays() -> None:
    sys.setswitchinterval(OWN)
    assert seen_by(2) == [OWN] * 3


def test_one_that_the_program_sets_meanwhile_stays() -> None:
    helper = HelperThread(target=sys.setswitchinterval, args=(OWN,))
    helper.start()
    helper.join(60)
    assert interval() == OWN


def test_an_error_ends_a_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_type))
    helper = HelperThread(target=[].pop)
    helper.start()
    helper.join(60)
    assert (told, interval()) == ([IndexError], PYTHONS)


def test_a_pass_with_prefetch_has_short_turns_until_it_is_closed() -> None:
    iterator = iter(di.data.Dataset.range(10).map(lambda x: x + 1).repeat().prefetch(1))
    next(iterator)
    assert interval() == SHORT
    iterator.close()
    assert interval() == PYTHONS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_none_of_the_threads() -> None:
    end = threading.Event()
    helper = HelperThread(target=end.wait, args=(60,))
    helper.start()
    child = os.fork()
    if not child:
        os._exit(interval() != PYTHONS)
    end.set()
    assert os.waitpid(child, 0)[1] == 0


def test_each_thread_of_the_library_is_one() -> None:
    package = Path(di.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"(?<!\w)Thread\(", path.read_text()) and "testing" not in path.parts
    }
    assert found == PLAIN
