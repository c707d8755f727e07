# SPDX-License-Identifier: Apache-2.0
"""A status board in a store that may stop answering."""

import threading
import time
from collections.abc import Iterator, Mapping

import pytest

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.background import HostedStatusBoard
from tests.patience import wait_until


class Board(HostedStatusBoard):
    """A store in this process that can be stopped, like a frozen host, and broken."""

    def __init__(self) -> None:
        super().__init__(0)
        self.statuses: dict[int, str] = {}
        self.answers = threading.Event()
        self.answers.set()
        self.broken = False

    def _ask(self) -> None:
        self.answers.wait(60)
        if self.broken:
            raise ChannelLost("the store is gone")

    def store_status(self, status: str) -> None:
        self._ask()
        self.statuses[1] = status

    def fetch_statuses(self) -> Mapping[int, str]:
        self._ask()
        return dict(self.statuses)


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board()
    yield board
    board.answers.set()
    board.close()


def test_what_is_published_is_read(board: Board) -> None:
    assert board.read() == {}
    board.publish("one")
    board.publish("two")
    wait_until(lambda: board.read() == {1: "two"})  # what comes late is as it was known
    assert board.host_rank == 0


def test_a_store_that_does_not_answer_leaves_what_was_known(board: Board) -> None:
    board.publish("one")
    wait_until(lambda: board.read() == {1: "one"})
    board.answers.clear()
    board.statuses[1] = "newer"
    begin = time.monotonic()
    assert board.read() == {1: "one"}
    board.publish("never mind")
    assert time.monotonic() - begin < 30
    board.answers.set()
    wait_until(lambda: board.read() == {1: "never mind"})


def test_a_store_that_is_gone_stays_gone(board: Board) -> None:
    board.broken = True
    with pytest.raises(ChannelLost, match="the store is gone"):
        wait_until(board.read)
    board.broken = False
    with pytest.raises(ChannelLost, match="the store is gone"):
        board.publish("late")
