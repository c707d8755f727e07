# SPDX-License-Identifier: Apache-2.0
"""The operations of a group: the value of each, or within its time the error that says who is to blame."""

import time
from collections.abc import Callable
from typing import Any, NoReturn

from distinput.distribute.collectives.channel import Channel, Handle
from distinput.distribute.collectives.failures import ChannelLost
from distinput.distribute.collectives.party import End, Need, Party
from distinput.errors import (
    Aborted,
    CollectiveError,
    CollectiveTimeout,
    FailedPreconditionError,
    Mismatch,
    PeerLost,
    Poisoned,
)

__all__ = ["GLANCE", "Operations", "Wait"]

GLANCE = 0.05
"""Seconds of waiting after which a worker looks at the notice board, and again each time."""
_BLAME = 0.5  # seconds in which the death of a neighbour becomes visible after its connection broke


class Wait:
    """A time that runs.

    Args:
      seconds: from now.
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not seconds >= 0:
            raise ValueError(f"timeout must be a number of seconds, at least 0, got {seconds!r}")
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())


class Operations:
    """What one group asks of its engine.

    Args:
      channel: what the engine offers.
      party: the workers, shared with the groups of the same origin.
      name: of the group.
      timeout: seconds that an operation waits for the others, unless it is given its own.
    """

    def __init__(self, channel: Channel, party: Party, name: str, timeout: float) -> None:
        self.channel, self.party, self.name, self.timeout = channel, party, name, timeout
        self.rank, self.size = channel.rank, channel.size
        self.closed = False

    def wait(self, timeout: float | None) -> Wait:
        """The time of one operation, which begins."""
        return Wait(self.timeout if timeout is None else timeout)

    def check_open(self, what: object) -> None:
        """Raise where the group cannot be used any more.

        Raises:
          FailedPreconditionError: it was closed.
          Poisoned: it failed.
        """
        if self.closed:
            raise FailedPreconditionError(f"{what}: the group {self.name!r} was closed; open another one")
        if self.party.failure is not None:
            raise Poisoned(
                f"{what}: rank {self.rank} cannot use the group {self.name!r}, which failed before: "
                f"{self.party.failure}; open another one"
            )

    def run(self, start: Callable[..., Handle], *args: Any, what: object, wait: Wait, need: Need | None) -> Any:
        """The value of an operation.

        Args:
          start: begins the operation.
          *args: what it takes.
          what: the call, for messages.
          wait: how long.
          need: which operation it is, so that a late worker can be told from one that is waiting too.

        Raises:
          CollectiveError: there is none, see its kinds; the group is used up.
        """
        try:
            return self._value(start(*args), what, wait, need)
        except ChannelLost as error:
            self.blame(what, error, need)
        except CollectiveError:
            raise
        except BaseException as error:  # interrupted: what is under way has an answer that belongs to nobody now
            text = f"{what}: rank {self.rank} was interrupted by {type(error).__name__}"
            self.party.fail(Aborted(text, self.rank), End("aborted", text))
            raise

    def _value(self, handle: Handle, what: object, wait: Wait, need: Need | None) -> Any:
        if handle.wait(min(GLANCE, wait.left())):
            return handle.value()
        self.party.waits(need, what)
        while not handle.wait(min(GLANCE, wait.left())):
            if self.party.failure is not None:  # found by another thread
                self.check_open(what)
            found = self.party.culprit(need)
            if found is not None:
                self._fail(what, *found)
            if (met := self.party.crossed(need)) is not None:
                self._cross(what, *met)
            if wait.left() <= 0:
                self._give_up(what, wait, need)
        return handle.value()

    def blame(self, what: object, error: ChannelLost, need: Need | None) -> NoReturn:
        """The engine says that a connection is gone: find out whose, for a short time, and raise.

        Raises:
          CollectiveError: see its kinds.
        """
        if self.party.failure is not None:
            self.check_open(what)
        found = None
        deadline = time.monotonic() + _BLAME
        while found is None and time.monotonic() < deadline:
            try:
                found = self.party.culprit(need)
            except ChannelLost:
                found = (self.party.dead() or self.party.board_host, End("lost"))
            if found is None:
                time.sleep(0.01)
        if found is None:
            found = (1 - self.rank if self.size == 2 else None, End("lost"))
        rank, end = found
        try:
            self._fail(what, rank, end if end.reason else End(end.state, f"the engine says: {error}", end.ranks))
        except CollectiveError as failure:
            raise failure from error

    def _cross(self, what: object, rank: int, other: str) -> NoReturn:
        text = (
            f"rank {self.rank} waits in {what} for rank {rank}, which waits for it in {other}; all ranks must make the same "
            f"calls in the same order. The group {self.name!r} cannot be used any more"
        )
        failure = Mismatch(text)
        self.party.fail(failure, End("crossed", text))
        raise failure

    def _fail(self, what: object, rank: int | None, end: End) -> NoReturn:
        who = "a worker" if rank is None else f"rank {rank}"
        text = f": {end.reason}" if end.reason else ""
        failure: CollectiveError
        if end.state == "timeout" and end.ranks and self.rank not in end.ranks:
            late = ", ".join(map(str, end.ranks))
            failure = CollectiveTimeout(f"{what}: {who} gave up waiting for rank {late}{text}", end.ranks)
        elif end.state == "lost":
            failure = PeerLost(f"{what}: {who} is gone while rank {self.rank} waited for it{text}", rank)
            end = End("lost", end.reason, () if rank is None else (rank,))
        elif end.state == "crossed":
            failure = Mismatch(end.reason)
        else:
            failure = Aborted(f"{what}: {who} gave up while rank {self.rank} waited for it{text}", rank, end.reason)
            end = End("told", end.reason, () if rank is None else (rank,))
        self.party.fail(failure, end)
        raise failure

    def _give_up(self, what: object, wait: Wait, need: Need | None) -> NoReturn:
        late, notes = self.party.late(need)
        who = f"rank{'s' * (len(late) > 1)} {', '.join(map(str, late))}" if late else "the others"
        text = f"{what}: rank {self.rank} waited {wait.seconds:g} s for {who}{notes}"
        failure = CollectiveTimeout(
            f"{text}; the group {self.name!r} cannot be used any more. Give a longer timeout if they may be that late",
            late,
        )
        self.party.fail(failure, End("timeout", text, late))
        raise failure
