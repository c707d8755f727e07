# SPDX-License-Identifier: Apache-2.0
"""What all groups of one origin share: who takes part, who failed, and what each worker last said of itself.

When a wait does not end, this is where it is found out because of whom.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from distinput.distribute.collectives.channel import Board, Channel
from distinput.distribute.collectives.failures import ChannelLost
from distinput.distribute.collectives.seat import Seat
from distinput.errors import CollectiveError

__all__ = ["End", "Need", "Party"]

_STUCK = 16  # threads of which a notice says what they wait for
_SAID = 16  # agreements of which a notice says what they were about


@dataclass(frozen=True, slots=True)
class Need:
    """Which operation a worker waits in: the number of a call or of an agreement on a group."""

    kind: str
    group: str
    number: int

    @property
    def key(self) -> str:
        """The stream of operations that it belongs to."""
        return f"{self.kind} {self.group}"


@dataclass(frozen=True, slots=True)
class End:
    """Why a worker does not go on.

    Args:
      state: `aborted` by its own word, `told` so by another one, `timeout` after waiting, `lost` another one, or `crossed`
        where workers wait for one another in different calls.
      reason: for messages.
      ranks: the other one, or those that it waited for.
    """

    state: str
    reason: str = ""
    ranks: tuple[int, ...] = ()


class Party:
    """What all groups of one origin share: who takes part, whether it failed, and the notice of this worker.

    A notice is a JSON object: `at` says in which operations the worker waits or waited, `stuck` what each of its threads
    waits for, `said` what it called where agreements differ, `left` how many calls and agreements it made on groups it
    closed, `end` why it does not go on, `gone` that it closed all.
    """

    def __init__(self, channel: Channel) -> None:
        self._board: Board = channel.board
        self.rank, self.size = channel.rank, channel.size
        self.board_host = channel.board.host
        self.seat = Seat.mine()
        self.seats: list[Seat] = []
        self.failure: CollectiveError | None = None
        self.open = 0
        self._lock = threading.Lock()
        self._notice: dict[str, Any] = {"at": {}, "left": {}}
        self._begun: dict[str, tuple[int, int]] = {}

    def _write(self) -> None:
        with suppress(ChannelLost):  # it only helps the others to say who is to blame
            self._board.write(json.dumps(self._notice))

    def begins(self, need: Need) -> None:
        """This thread begins an operation; whoever waits for a later one of its kind waits for this thread."""
        self._begun[need.key] = (need.number + 1, get_ident())

    def waits(self, need: Need | None, what: object) -> None:
        """Tell the others that this worker has come, and waits."""
        if need is None:
            return
        with self._lock:
            self._notice["at"][need.key] = need.number
            thread = get_ident()
            begun = {key: count for key, (count, by) in list(self._begun.items()) if by == thread}
            stuck = self._notice.setdefault("stuck", {})
            stuck.pop(str(thread), None)
            while len(stuck) >= _STUCK:
                del stuck[next(iter(stuck))]
            stuck[str(thread)] = [need.key, need.number, str(what)[:500], begun]
            self._write()

    def crossed(self, need: Need | None) -> tuple[int, str] | None:
        """A worker that waits for this one in another operation, and in which; neither will ever come to the other.

        Notices may be old: a worker that has gone on since then got what it waited for, so this one had begun that.
        """
        if need is None:
            return None
        thread = get_ident()
        for rank, notice in self._read().items():
            for key, number, what, begun in notice.get("stuck", {}).values():
                count, by = self._begun.get(key, (0, None))
                mine = (
                    by == thread or not count
                )  # what nobody began here is for this thread, as it is on the other worker
                if mine and key != need.key and count <= number and begun.get(need.key, need.number + 1) <= need.number:
                    return rank, what
        return None

    def says(self, need: Need, text: str) -> None:
        """Tell the others what was called here, where it was not the same everywhere."""
        with self._lock:
            said = self._notice.setdefault("said", {})
            said[f"{need.key} {need.number}"] = text[:500]
            while len(said) > _SAID:
                del said[next(iter(said))]
            self._write()

    def said(self, need: Need, mine: str, seconds: float) -> list[str]:
        """What all say that they called, in rank order, as far as they say it within the time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                notices = self._read()
            except ChannelLost:
                notices = {}
            found = {rank: notice.get("said", {}).get(f"{need.key} {need.number}") for rank, notice in notices.items()}
            texts = [mine if rank == self.rank else found.get(rank) for rank in range(self.size)]
            if None not in texts or time.monotonic() >= deadline:
                return [text or "it has not said" for text in texts]
            time.sleep(0.01)

    def fail(self, failure: CollectiveError, end: End) -> None:
        """The first failure counts; the others are told."""
        with self._lock:
            if self.failure is None:
                self.failure = failure
                self._notice["end"] = [end.state, end.reason[:500], end.ranks]
                self._write()

    def leave(self, group: str, calls: int, agreements: int) -> None:
        """This worker closed a group after so many calls."""
        with self._lock:
            self._begun.pop(f"call {group}", None)
            self._begun.pop(f"agree {group}", None)
            self.open -= 1
            self._notice["left"][f"call {group}"] = calls
            self._notice["left"][f"agree {group}"] = agreements
            self._notice["gone"] = not self.open
            self._write()

    def linger(self, seconds: float) -> None:
        """Where this process hosts the board, stay until the others do not need it any more."""
        if self.board_host != self.rank:
            return
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            notices = self._read()
            dead = [r for r in range(self.size) if self._state(r) == "dead"]
            if all(r in dead or notices.get(r, {}).get("gone") for r in range(self.size) if r != self.rank):
                return
            time.sleep(0.01)

    def end(self) -> None:
        """The last group is closed."""
        self._board.end()

    def _read(self) -> dict[int, dict[str, Any]]:
        return {rank: json.loads(text) for rank, text in self._board.read().items() if text}

    def _state(self, rank: int) -> str:
        return self.seat.state(self.seats[rank]) if self.seats and rank != self.rank else "alive"

    def dead(self) -> int | None:
        """The first worker on this machine whose process has ended."""
        return next(self._all_dead(), None)

    def _all_dead(self) -> Iterator[int]:
        return (rank for rank in range(self.size) if self._state(rank) == "dead")

    def culprit(self, need: Need | None) -> tuple[int | None, End] | None:
        """The worker because of which waiting is in vain, and why; None while there is hope.

        Raises:
          ChannelLost: the board cannot be read.
        """
        lost = self.dead()
        try:
            notices = self._read()
        except ChannelLost:
            if lost is not None:
                return lost, End("lost")
            raise
        ends: dict[int, End] = {}
        for rank, notice in notices.items():
            if "end" in notice:
                state, reason, ranks = notice["end"]
                ends[rank] = End(state, reason, tuple(ranks))
        # A worker that said why it goes knows best; then what can be seen; then what others have seen.
        for state in ("aborted", "crossed", "timeout", "told"):
            for rank, end in ends.items():
                if end.state == state:
                    return (end.ranks[0], End("aborted", end.reason)) if state == "told" and end.ranks else (rank, end)
        # One that ended in order took part in what it called before; its share may be on its way.
        key = "" if need is None else need.key
        number = 0 if need is None else need.number
        for rank in self._all_dead():
            if notices.get(rank, {"left": {}})["left"].get(key, 0) <= number:
                return rank, End("lost")
        for end in ends.values():
            if end.state == "lost":
                return (end.ranks[0] if end.ranks else None), End("lost", end.reason)
        if need is not None:
            for rank, notice in notices.items():
                if notice["left"].get(need.key, need.number + 1) <= need.number:
                    return rank, End("lost", "it closed the group")
        return None

    def late(self, need: Need | None) -> tuple[tuple[int, ...], str]:
        """The workers that are not known to wait in the same operation, and what can be seen of them."""
        try:
            notices = self._read()
        except ChannelLost:
            notices = {}
        key = "" if need is None else need.key
        number = 0 if need is None else need.number
        others = [rank for rank in range(self.size) if rank != self.rank]
        late = [rank for rank in others if notices.get(rank, {"at": {}})["at"].get(key, -1) < number]
        stopped = [rank for rank in others if self._state(rank) == "stopped"]
        notes = f" (the process of rank {', '.join(map(str, stopped))} is stopped)" if stopped else ""
        return tuple(stopped or late), notes
