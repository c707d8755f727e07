# SPDX-License-Identifier: Apache-2.0
"""Events of a rank, and what became of it."""

from typing import Any

import pytest

from distinput.testing.judge.delivery import RankStep, UnknownBatch, ids_of
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.play import Play, PlayTask, Walk, events, folded, said

JOB = Job(3, 1, 2)


def walked(make: Any, **options: Any) -> Walk:
    return folded(events(PlayTask(Maker(make, 3), ids_of, Play(JOB, (0,), **options)), 0))


def test_a_pass_comes_to_its_end() -> None:
    whole = walked(lambda: [[0, 1], [2]]).whole
    assert (whole.ids, whole.ended, whole.error) == ([0, 1, 2], True, None)


def test_a_pass_is_abandoned() -> None:
    whole = walked(lambda: [[0, 1], [2]], most=1).whole
    assert (whole.ids, whole.ended) == ([0, 1], False)


def test_an_error_is_what_came_in_the_place_of_a_step() -> None:
    def stops() -> Any:
        yield [0, 1]
        raise OSError("the disk is gone")

    whole = walked(stops).whole
    assert (whole.ids, whole.error, whole.died) == ([0, 1], "OSError: the disk is gone", False)


def test_an_error_of_the_second_epoch_is_not_one_of_the_first() -> None:
    class Once:
        epoch = 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def __iter__(self) -> Any:
            if self.epoch:
                raise OSError("once only")
            return iter([[0, 1], [2]])

    first, second = walked(Once, epochs=2).passes
    assert (first.error, second.error) == (None, "OSError: once only")


def test_an_iterator_has_one_pass() -> None:
    walk = walked(lambda: iter([[0, 1], [2]]), epochs=2)
    assert walk.one_pass
    assert len(walk.passes) == 1


def test_a_loader_without_state_says_why() -> None:
    walk = walked(lambda: [[0, 1], [2]], save=True)
    assert "neither the loader nor its iterator has state_dict" in str(walk.stateless)
    assert walk.state(1) is None


def test_records_that_cannot_be_told_are_an_error_of_the_user() -> None:
    with pytest.raises(UnknownBatch, match="give ids="):
        walked(lambda: [[0.5]])


def test_what_was_killed_before_it_could_say_anything_has_no_steps() -> None:
    assert folded([]).whole.steps == ()
    died = folded([("epoch", 0), ("step", RankStep((1,), "list")), ("died", "died of SIGKILL")]).whole
    assert (died.ids, died.error, died.died) == ([1], "died of SIGKILL", True)


def test_an_error_is_told_in_one_line() -> None:
    assert said(ValueError("one\ntwo")) == "ValueError: one"
    assert len(said(ValueError("x" * 500))) == 120
