# SPDX-License-Identifier: Apache-2.0
from distinput.core.run import Run
from distinput.ops.autotune import AGAIN, Trial


def tried(found: Trial, seconds: float) -> bool | None:
    """What a trial of two blocks comes to that took so long each; without threads one takes a second."""
    found.alone = 1.0
    assert found.counted(1, seconds) is None
    return found.counted(1, seconds)


def test_threads_that_seem_slower_for_once_are_tried_again_at_once() -> None:
    found = Trial(2, 0.9)
    assert tried(found, 0.5)
    assert not tried(found, 2.0)
    assert found.not_before <= Run.clock()
    assert tried(found, 0.5)
    assert found.lasts == AGAIN


def test_threads_that_are_slower_twice_are_left_alone_for_longer_each_time() -> None:
    found = Trial(2, 0.9)
    tried(found, 0.5)
    waits = []
    for _ in range(4):
        assert not tried(found, 2.0)
        waits.append(max(0.0, round(found.not_before - Run.clock(), 1)))
    assert waits == [0.0, AGAIN, 2 * AGAIN, 4 * AGAIN]


def test_a_choice_that_holds_is_measured_again_less_and_less_often_also_in_later_passes() -> None:
    found = Trial(2, 0.9)
    assert tried(found, 0.5)
    found.hold()
    assert tried(found, 0.5)
    assert found.begin()
    assert found.lasts == 2 * AGAIN
