# SPDX-License-Identifier: Apache-2.0
"""Who is at fault when a wait does not end: what can be read from the statuses and seen of the processes."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.collectives.membership import FailureReport, Membership, OperationId, ProcessIdentity
from distinput.errors import Aborted


class Boards:
    """The statuses of all workers, in memory."""

    def __init__(self) -> None:
        self.statuses: dict[int, str] = {}
        self.lost = False


class Board:
    host_rank = None

    def __init__(self, boards: Boards, rank: int) -> None:
        self.boards, self.rank = boards, rank

    def publish(self, status: str) -> None:
        self.boards.statuses[self.rank] = status

    def read(self) -> Mapping[int, str]:
        if self.boards.lost:
            raise ChannelLost("gone")
        return {rank: status for rank, status in self.boards.statuses.items() if rank != self.rank}

    def close(self) -> None:
        pass


def members(size: int) -> tuple[list[Membership], Boards]:
    boards = Boards()
    made = []
    for rank in range(size):
        channel: Any = SimpleNamespace(rank=rank, size=size, status_board=Board(boards, rank))
        made.append(Membership(channel))
        made[-1].open_groups = 1
    for one in made:
        one.processes = [other.own_process for other in made]
    return made, boards


def call(number: int, group: str = "g") -> OperationId:
    return OperationId("call", group, number)


def dies(monkeypatch: pytest.MonkeyPatch, *ranks: int, looks: str = "dead") -> None:
    monkeypatch.setattr(Membership, "_process_state", lambda self, rank: looks if rank in ranks else "alive")


def test_there_is_hope_while_nobody_has_stopped() -> None:
    (here, other, _), _ = members(3)
    other.report_waiting(call(0), "barrier")
    assert here.find_culprit(call(0)) is None
    assert here.find_late(call(0)) == ((2,), "")
    assert here.find_late(call(1)) == ((1, 2), "")


def test_the_one_that_gave_up_is_named_before_those_that_it_told() -> None:
    (here, told, gave_up), _ = members(3)
    told.fail(Aborted("", 2), FailureReport("told", "disk full", (2,)))
    assert here.find_culprit(call(0)) == (2, FailureReport("aborted", "disk full"))
    gave_up.fail(Aborted("", 2), FailureReport("aborted", "disk full"))
    assert here.find_culprit(call(0)) == (2, FailureReport("aborted", "disk full"))


def test_the_first_failure_counts() -> None:
    (here, other), _ = members(2)
    first = Aborted("first", 1)
    other.fail(first, FailureReport("aborted", "first"))
    other.fail(Aborted("second", 0), FailureReport("aborted", "second"))
    assert other.failure is first
    assert here.find_culprit(None) == (1, FailureReport("aborted", "first"))


def test_a_process_that_has_died_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (here, _, other), boards = members(3)
    other.report_waiting(call(0), "barrier")
    dies(monkeypatch, 2)
    assert here.first_dead() == 2
    assert here.find_culprit(call(0)) == (2, FailureReport("lost"))
    boards.lost = True
    assert here.find_culprit(call(0)) == (2, FailureReport("lost"))


def test_a_board_that_is_gone_is_an_error_where_nobody_is_seen_to_be_dead() -> None:
    (here, _), boards = members(2)
    boards.lost = True
    with pytest.raises(ChannelLost):
        here.find_culprit(call(0))
    assert here.find_late(call(0)) == ((1,), "")


def test_one_that_closed_after_the_call_is_not_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (here, other), _ = members(2)
    other.close_group("g", calls=3, agreements=0)
    dies(monkeypatch, 1)
    assert here.find_culprit(call(2)) is None  # it took part, and its share may be on its way
    assert here.find_culprit(call(3)) == (1, FailureReport("lost"))
    assert here.find_culprit(OperationId("agree", "g", 0)) == (1, FailureReport("lost"))


def test_one_that_closed_before_the_call_is_named_while_it_lives() -> None:
    (here, other), _ = members(2)
    other.close_group("g", calls=3, agreements=0)
    assert here.find_culprit(call(3)) == (1, FailureReport("lost", "it closed the group"))
    assert here.find_culprit(call(7, group="another")) is None


def test_a_stopped_process_is_the_late_one(monkeypatch: pytest.MonkeyPatch) -> None:
    (here, _, _), _ = members(3)
    dies(monkeypatch, 1, looks="stopped")
    assert here.find_late(call(0)) == ((1,), " (the process of rank 1 is stopped)")


def test_two_that_wait_for_one_another_are_deadlocked() -> None:
    (here, other), _ = members(2)
    agree = OperationId("agree", "g", 0)
    for one in (here, other):  # as a new group does
        one.record_start(call(-1))
        one.record_start(OperationId("agree", "g", -1))
    here.record_start(call(0))
    other.record_start(agree)
    other.report_waiting(agree, "agree, at train.py:7")
    assert here.find_deadlock(call(0)) == (1, "agree, at train.py:7")
    here.record_start(agree)  # it has come to that, too
    assert here.find_deadlock(call(0)) is None
    assert here.find_deadlock(None) is None


def test_waiting_in_the_same_operation_is_no_deadlock() -> None:
    (here, other), _ = members(2)
    for one in (here, other):
        one.record_start(call(0))
        one.report_waiting(call(0), "barrier")
    assert here.find_deadlock(call(0)) is None


def test_descriptions_come_in_rank_order_and_say_who_has_given_none() -> None:
    (here, other, _), _ = members(3)
    other.publish_description(call(4), "sum")
    assert here.collect_descriptions(call(4), "mean", 0.02) == ["mean", "sum", "it has not said"]
    for number in range(40):
        other.publish_description(call(number), f"call {number}")
    assert here.collect_descriptions(call(39), "", 0.02)[1] == "call 39"
    assert here.collect_descriptions(call(0), "", 0.02)[1] == "it has not said"


def test_statuses_do_not_grow_without_end() -> None:
    (here, other), boards = members(2)
    other.report_waiting(call(0), "x" * 10_000)
    other.fail(Aborted("", 1), FailureReport("aborted", "y" * 10_000))
    assert len(boards.statuses[1]) < 2000
    found = here.find_culprit(call(0))
    assert found is not None
    assert found[1].reason == "y" * 500


def test_processes_of_another_machine_are_not_seen() -> None:
    (here, other), _ = members(2)
    mine = other.own_process
    here.processes[1] = ProcessIdentity(b"another machine!", mine.pid, mine.started)
    assert here.first_dead() is None


def test_a_notice_is_there_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    (here, other, third), boards = members(3)
    assert here.notices() == {}
    other.publish_notice("worker 1 received SIGTERM")
    assert here.notices() == {1: "worker 1 received SIGTERM"}
    assert other.notices() == {}
    other.close_group("g", 3, 0)
    assert here.departed() == {1}
    dies(monkeypatch, 2)
    assert here.departed() == {1, 2}
    assert third.rank == 2
    boards.lost = True
    with pytest.raises(ChannelLost):
        here.notices()
    assert here.departed() == {2}
