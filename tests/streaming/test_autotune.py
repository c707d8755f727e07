# SPDX-License-Identifier: Apache-2.0
import pytest

from distinput.run.run import Run
from distinput.streaming.buffered import AGAIN, ThreadTrial


def tried(found: ThreadTrial, seconds: float) -> bool | None:
    """What a trial of two blocks comes to that took so long each; without threads one takes a second."""
    found.alone = 1.0
    assert found.counted(1, seconds) is None
    return found.counted(1, seconds)


def test_threads_that_seem_slower_for_once_are_tried_again_at_once() -> None:
    found = ThreadTrial(2, 0.9)
    assert tried(found, 0.5)
    assert not tried(found, 2.0)
    assert found.not_before <= Run.clock()
    assert tried(found, 0.5)
    assert found.lasts == AGAIN


def test_threads_that_are_slower_twice_are_left_alone_for_longer_each_time() -> None:
    found = ThreadTrial(2, 0.9)
    tried(found, 0.5)
    waits = []
    for _ in range(4):
        assert not tried(found, 2.0)
        waits.append(max(0.0, round(found.not_before - Run.clock(), 1)))
    assert waits == [0.0, AGAIN, 2 * AGAIN, 4 * AGAIN]


def test_a_choice_that_holds_is_measured_again_less_and_less_often_also_in_later_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(Run, "clock", staticmethod(lambda: now))
    found = ThreadTrial(2, 0.9)
    assert tried(found, 0.5)
    held = []
    for _ in range(3):
        begin = now
        while found.begin():  # passes that are shorter than the time for which the choice holds
            now += 0.125
            assert tried(found, 0.5)
        held.append(now - begin)
    assert held == [AGAIN, 2 * AGAIN, 4 * AGAIN]


def test_what_was_measured_in_a_slow_moment_does_not_decide_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(Run, "clock", staticmethod(lambda: now))
    found = ThreadTrial(1, 0.9)
    found.alone = 10.0  # something else had the processor; it is 0.5 else
    assert found.counted(1, 1.0)
    now += AGAIN
    assert not found.begin()
    found.alone = 0.5
    assert found.counted(1, 1.0) is False
    assert not found.begin()
