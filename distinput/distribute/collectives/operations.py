# SPDX-License-Identifier: Apache-2.0
"""Runs the operations of a group: each returns its value in time, or raises the error that names the worker at fault."""

import time
from collections.abc import Callable
from typing import Any, NoReturn

from distinput.distribute.collectives.channel import Channel, ChannelLost, Handle
from distinput.distribute.collectives.membership import FailureReport, Membership, OperationId
from distinput.errors import (
    Aborted,
    CollectiveError,
    CollectiveTimeout,
    FailedPreconditionError,
    Mismatch,
    PeerLost,
    Poisoned,
)

__all__ = ["POLL_SECONDS", "Deadline", "Operations"]

# ---- The time by which a call must end


class Deadline:
    """A point in time, `seconds` from now.

    Args:
      seconds: at least 0.

    Raises:
      ValueError: it is not such a number.
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not seconds >= 0:
            raise ValueError(f"timeout must be a number of seconds, at least 0, got {seconds!r}")
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())


# ---- Runs the operations of a group: each returns its value in time, or raises the error that names the worker at fault

POLL_SECONDS = 0.05
"""A worker that waits looks at the status board this often."""
_DETECTION_SECONDS = (
    0.5  # after a connection broke, the death of the process behind it becomes visible within this time
)


class Operations:
    """The operations of one group on its channel.

    Args:
      channel: what the engine offers.
      membership: the workers, shared with the groups of the same origin.
      name: the name of the group.
      timeout: seconds that an operation waits for the others, unless it is given its own.
    """

    def __init__(self, channel: Channel, membership: Membership, name: str, timeout: float) -> None:
        self.channel, self.membership, self.name, self.timeout = channel, membership, name, timeout
        self.rank, self.size = channel.rank, channel.size
        self.closed = False

    def deadline(self, timeout: float | None) -> Deadline:
        """The deadline of an operation that begins now; None is the group's own timeout."""
        return Deadline(self.timeout if timeout is None else timeout)

    def check_open(self, what: object) -> None:
        """Raise if the group cannot be used any more.

        Raises:
          FailedPreconditionError: it was closed.
          Poisoned: it failed.
        """
        if self.closed:
            raise FailedPreconditionError(f"{what}: the group {self.name!r} was closed; open another one")
        if self.membership.failure is not None:
            raise Poisoned(
                f"{what}: rank {self.rank} cannot use the group {self.name!r}, which failed before: "
                f"{self.membership.failure}; open another one"
            )

    def run(
        self,
        start: Callable[..., Handle],
        *args: Any,
        what: object,
        deadline: Deadline,
        operation: OperationId | None,
    ) -> Any:
        """Start an operation and return its value.

        Args:
          start: starts the operation.
          *args: its arguments.
          what: the call, for messages.
          deadline: when to give up.
          operation: which operation it is, to tell late workers from those that wait, too.

        Raises:
          CollectiveError: see its kinds; the group cannot be used any more.
        """
        try:
            return self._value(start(*args), what, deadline, operation)
        except ChannelLost as error:
            self.raise_loss(what, error, operation)
        except CollectiveError:
            raise
        except BaseException as error:  # interrupted: what is under way will get a result that belongs to no call
            text = f"{what}: rank {self.rank} was interrupted by {type(error).__name__}"
            self.membership.fail(Aborted(text, self.rank), FailureReport("aborted", text))
            raise

    def _value(self, handle: Handle, what: object, deadline: Deadline, operation: OperationId | None) -> Any:
        if handle.wait(min(POLL_SECONDS, deadline.remaining())):
            return handle.value()
        self.membership.report_waiting(operation, what)
        while not handle.wait(min(POLL_SECONDS, deadline.remaining())):
            if self.membership.failure is not None:  # found by another thread
                self.check_open(what)
            found = self.membership.find_culprit(operation)
            if found is not None:
                self._fail(what, *found)
            if (other := self.membership.find_deadlock(operation)) is not None:
                self._fail_deadlocked(what, *other)
            if deadline.remaining() <= 0:
                self._fail_late(what, deadline, operation)
        return handle.value()

    def raise_loss(self, what: object, error: ChannelLost, operation: OperationId | None) -> NoReturn:
        """The engine reports a broken connection: try for a short time to find out to which worker, and raise.

        Raises:
          CollectiveError: see its kinds.
        """
        if self.membership.failure is not None:
            self.check_open(what)
        culprit = None
        end = time.monotonic() + _DETECTION_SECONDS
        while culprit is None and time.monotonic() < end:
            try:
                culprit = self.membership.find_culprit(operation)
            except ChannelLost:  # the board is gone too, so if nobody is seen to be dead it is the one that hosts it
                dead = self.membership.first_dead()
                culprit = (self.membership.host_rank if dead is None else dead, FailureReport("lost"))
            if culprit is None:
                time.sleep(0.01)
        if culprit is None:
            culprit = (1 - self.rank if self.size == 2 else None, FailureReport("lost"))
        rank, report = culprit
        if not report.reason:
            report = FailureReport(report.kind, f"the engine says: {error}", report.ranks)
        try:
            self._fail(what, rank, report)
        except CollectiveError as failure:
            raise failure from error

    def _fail_deadlocked(self, what: object, rank: int, other: str) -> NoReturn:
        text = (
            f"rank {self.rank} waits in {what} for rank {rank}, which waits for it in {other}; all ranks must make the same "
            f"calls in the same order. The group {self.name!r} cannot be used any more"
        )
        failure = Mismatch(text)
        self.membership.fail(failure, FailureReport("deadlock", text))
        raise failure

    def _fail(self, what: object, rank: int | None, report: FailureReport) -> NoReturn:
        who = "a worker" if rank is None else f"rank {rank}"
        text = f": {report.reason}" if report.reason else ""
        failure: CollectiveError
        if report.kind == "timeout" and report.ranks and self.rank not in report.ranks:
            late = ", ".join(map(str, report.ranks))
            failure = CollectiveTimeout(f"{what}: {who} gave up waiting for rank {late}{text}", report.ranks)
        elif report.kind == "lost":
            failure = PeerLost(f"{what}: {who} is gone while rank {self.rank} waited for it{text}", rank)
            report = FailureReport("lost", report.reason, () if rank is None else (rank,))
        elif report.kind == "deadlock":
            failure = Mismatch(report.reason)
        else:
            failure = Aborted(f"{what}: {who} gave up while rank {self.rank} waited for it{text}", rank, report.reason)
            report = FailureReport("told", report.reason, () if rank is None else (rank,))
        self.membership.fail(failure, report)
        raise failure

    def _fail_late(self, what: object, deadline: Deadline, operation: OperationId | None) -> NoReturn:
        late, notes = self.membership.find_late(operation)
        who = f"rank{'s' * (len(late) > 1)} {', '.join(map(str, late))}" if late else "the others"
        text = f"{what}: rank {self.rank} waited {deadline.seconds:g} s for {who}{notes}"
        failure = CollectiveTimeout(
            f"{text}; the group {self.name!r} cannot be used any more. Give a longer timeout if they may be that late",
            late,
        )
        self.membership.fail(failure, FailureReport("timeout", text, late))
        raise failure
