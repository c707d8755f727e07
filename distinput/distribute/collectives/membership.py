# SPDX-License-Identifier: Apache-2.0
"""The workers of a job and whether they are still alive; operations of a group, which end in time or raise."""

import hashlib
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import Any, Literal, NoReturn

import numpy as np

from distinput.distribute.collectives.channel import Bytes, Channel, ChannelLost, Handle, StatusBoard
from distinput.errors import (
    Aborted,
    CollectiveError,
    CollectiveTimeout,
    FailedPreconditionError,
    Mismatch,
    PeerLost,
    Poisoned,
)
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# The workers of a job and whether they are still alive; shared by all groups with a common origin.
#
# When a wait does not end, this module finds the worker at fault.
# ----------------------------------------------------------------------------


# ---- Which process on which machine a worker is: enough to count the workers of a machine, and to see whether one still runs

_FORMAT = struct.Struct("<16sQQ")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process on a machine.

    Args:
      machine: 16 bytes, equal for processes that see each other's process IDs.
      pid: the process ID.
      started: when the process was started, in clock ticks of the machine, so that a reused process ID is not mistaken for
        it; 0 if unknown.
    """

    machine: bytes
    pid: int
    started: int

    @classmethod
    def current(cls) -> "ProcessIdentity":
        """The identity of this process."""
        parts = [socket.gethostname()]
        for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
            try:
                parts.append(os.readlink(path) if path.endswith("pid") else Path(path).read_text(encoding="ascii"))
            except OSError:
                continue
        machine = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).digest()
        return cls(machine, os.getpid(), _look_up(os.getpid())[1])

    def encode(self) -> Bytes:
        """The identity as bytes of a fixed size."""
        return np.frombuffer(_FORMAT.pack(self.machine, self.pid, self.started), np.uint8)

    @classmethod
    def decode(cls, data: Bytes) -> "ProcessIdentity":
        """The identity that `encode` wrote."""
        return cls(*_FORMAT.unpack(data.tobytes()))

    def state_of(self, other: "ProcessIdentity") -> Literal["alive", "dead", "stopped", "unknown"]:
        """What this process can see of another one without asking it; "unknown" if it is on another machine."""
        if other.machine != self.machine or not other.started:
            return "unknown"
        letter, started = _look_up(other.pid)
        if started != other.started or letter in "ZX":
            return "dead"
        return "stopped" if letter in "Tt" else "alive"


def _look_up(pid: int) -> tuple[str, int]:
    """The state letter and the start time of a process; `X` and 0 if there is none, or the system does not tell."""
    if sys.platform != "linux":
        return "X", 0
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X", 0
    fields = text[text.rindex(")") + 2 :].split()  # the name in brackets may contain anything
    return fields[0], int(fields[19])


# ---- Identifies the operation that a worker waits in, in the same way on all workers


@dataclass(frozen=True, slots=True)
class OperationId:
    """An operation of a group.

    Args:
      kind: "call" or "agree": calls and agreements are numbered separately.
      group: the name of the group.
      number: how many operations of the kind the group has started before.
    """

    kind: str
    group: str
    number: int

    @property
    def stream(self) -> str:
        """The sequence of operations that this one belongs to."""
        return f"{self.kind} {self.group}"


# ---- Who is alive, and who is at fault

_MAX_BLOCKED = 16  # threads for which a status says what they wait for
_MAX_DESCRIPTIONS = 16  # agreements for which a status says what they were about


@dataclass(frozen=True, slots=True)
class FailureReport:
    """Why a worker stops, as it tells the others.

    Args:
      kind: "aborted" if it decided so itself; "told" if it stopped because of another worker's report; "timeout" if it waited
        too long; "lost" if it lost another worker; "deadlock" if workers wait for one another in different calls.
      reason: for messages.
      ranks: the worker at fault, or those that it waited for.
    """

    kind: str
    reason: str = ""
    ranks: tuple[int, ...] = ()


class Membership:
    """The workers of a job, whether the job has failed, and the status that this worker publishes.

    A status is a JSON object. `reached`: the number of the latest operation of each stream in which the worker waits or has
    waited. `blocked`: what each of its threads waits for. `descriptions`: what it called where agreements differ. `closed`:
    how many calls and agreements it made on each group that it has closed. `failure`: its `FailureReport`. `notice`: what it
    tells the others. `left`: whether it has closed all groups.

    Args:
      channel: to the other workers.
    """

    def __init__(self, channel: Channel) -> None:
        self._board: StatusBoard = channel.status_board
        self.rank, self.size = channel.rank, channel.size
        self.host_rank = channel.status_board.host_rank
        self.own_process = ProcessIdentity.current()
        self.processes: list[ProcessIdentity] = []
        """The process of each worker, by rank; empty until all have told theirs."""
        self.failure: CollectiveError | None = None
        self.open_groups = 0
        self._lock = threading.Lock()
        self._status: dict[str, Any] = {"reached": {}, "closed": {}}
        self._started: dict[str, tuple[int, int]] = {}

    def _publish(self) -> None:
        with suppress(ChannelLost):  # a status merely helps the others to name the worker at fault
            self._board.publish(json.dumps(self._status))

    def record_start(self, operation: OperationId) -> None:
        """This thread starts an operation, so whoever waits for a later one of its stream waits for this thread."""
        self._started[operation.stream] = (operation.number + 1, get_ident())

    def report_waiting(self, operation: OperationId | None, what: object) -> None:
        """Tell the others that this worker has reached an operation, and waits in it."""
        if operation is None:
            return
        with self._lock:
            self._status["reached"][operation.stream] = operation.number
            thread = get_ident()
            started = {stream: count for stream, (count, by) in list(self._started.items()) if by == thread}
            blocked = self._status.setdefault("blocked", {})
            blocked.pop(str(thread), None)
            while len(blocked) >= _MAX_BLOCKED:
                del blocked[next(iter(blocked))]
            blocked[str(thread)] = [operation.stream, operation.number, str(what)[:500], started]
            self._publish()

    def find_deadlock(self, operation: OperationId | None) -> tuple[int, str] | None:
        """A worker that waits for this one in another operation, and which; neither will ever reach the other's.

        A status may be old: a worker that has gone on since then got what it waited for, so this one had started that.
        """
        if operation is None:
            return None
        thread = get_ident()
        for rank, status in self._read().items():
            for stream, number, what, started in status.get("blocked", {}).values():
                count, by = self._started.get(stream, (0, None))
                # A stream that no thread here has started is taken for this thread's, as it is on the other worker.
                ours = by == thread or not count
                reached_by_it = started.get(operation.stream, operation.number + 1)
                if ours and stream != operation.stream and count <= number and reached_by_it <= operation.number:
                    return rank, what
        return None

    def publish_description(self, operation: OperationId, text: str) -> None:
        """Tell the others what was called here, where the workers called different things."""
        with self._lock:
            descriptions = self._status.setdefault("descriptions", {})
            descriptions[f"{operation.stream} {operation.number}"] = text[:500]
            while len(descriptions) > _MAX_DESCRIPTIONS:
                del descriptions[next(iter(descriptions))]
            self._publish()

    def collect_descriptions(self, operation: OperationId, mine: str, seconds: float) -> list[str]:
        """What each worker says that it called, in rank order, as far as they say it within the time."""
        deadline = time.monotonic() + seconds
        key = f"{operation.stream} {operation.number}"
        while True:
            statuses = self._read_or_nothing()
            found = {rank: status.get("descriptions", {}).get(key) for rank, status in statuses.items()}
            texts = [mine if rank == self.rank else found.get(rank) for rank in range(self.size)]
            if None not in texts or time.monotonic() >= deadline:
                return [text or "it has not said" for text in texts]
            time.sleep(0.01)

    def publish_notice(self, text: str) -> None:
        """Tell the others something that they may look at whenever they like."""
        with self._lock:
            self._status["notice"] = text[:500]
            self._publish()

    def notices(self) -> dict[int, str]:
        """What the others told by `publish_notice`, by rank."""
        return {rank: status["notice"] for rank, status in self._read().items() if "notice" in status}

    def departed(self) -> set[int]:
        """The workers that have closed all groups, or whose process on this machine has ended."""
        left = {rank for rank, status in self._read_or_nothing().items() if status.get("left")}
        return left | set(self._all_dead())

    def fail(self, failure: CollectiveError, report: FailureReport) -> None:
        """Remember the first failure, and tell the others."""
        with self._lock:
            if self.failure is None:
                self.failure = failure
                self._status["failure"] = [report.kind, report.reason[:500], report.ranks]
                self._publish()

    def close_group(self, group: str, calls: int, agreements: int) -> None:
        """Tell the others that this worker has closed a group, after so many calls and agreements."""
        with self._lock:
            self._started.pop(f"call {group}", None)
            self._started.pop(f"agree {group}", None)
            self.open_groups -= 1
            self._status["closed"][f"call {group}"] = calls
            self._status["closed"][f"agree {group}"] = agreements
            self._status["left"] = not self.open_groups
            self._publish()

    def wait_until_others_left(self, seconds: float) -> None:
        """Where this process hosts the status board, wait until the others no longer need it."""
        if self.host_rank != self.rank:
            return
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            statuses = self._read()
            dead = list(self._all_dead())
            if all(r in dead or statuses.get(r, {}).get("left") for r in range(self.size) if r != self.rank):
                return
            time.sleep(0.01)

    def close(self) -> None:
        """Release the status board; the last group is closed."""
        self._board.close()

    def _read(self) -> dict[int, dict[str, Any]]:
        return {rank: json.loads(text) for rank, text in self._board.read().items() if text}

    def _read_or_nothing(self) -> dict[int, dict[str, Any]]:
        try:
            return self._read()
        except ChannelLost:
            return {}

    def _process_state(self, rank: int) -> str:
        return self.own_process.state_of(self.processes[rank]) if self.processes and rank != self.rank else "alive"

    def first_dead(self) -> int | None:
        """The first worker on this machine whose process has ended."""
        return next(self._all_dead(), None)

    def _all_dead(self) -> Iterator[int]:
        return (rank for rank in range(self.size) if self._process_state(rank) == "dead")

    def find_culprit(self, operation: OperationId | None) -> tuple[int | None, FailureReport] | None:
        """A worker for which it is pointless to wait, and the reason; None if waiting may still succeed.

        Raises:
          ChannelLost: the status board cannot be read.
        """
        dead = self.first_dead()
        try:
            statuses = self._read()
        except ChannelLost:
            if dead is not None:
                return dead, FailureReport("lost")
            raise
        reports = _reports(statuses)
        # A worker that said why it stops knows best; then what can be seen from here; then what others have seen.
        for kind in ("aborted", "deadlock", "timeout", "told"):
            for rank, report in reports.items():
                if report.kind == kind:
                    if kind == "told" and report.ranks:
                        return report.ranks[0], FailureReport("aborted", report.reason)
                    return rank, report
        # One that exited in order took part in what it called before; its share may still be on its way.
        stream = "" if operation is None else operation.stream
        number = 0 if operation is None else operation.number
        for rank in self._all_dead():
            if statuses.get(rank, {"closed": {}})["closed"].get(stream, 0) <= number:
                return rank, FailureReport("lost")
        for report in reports.values():
            if report.kind == "lost":
                return (report.ranks[0] if report.ranks else None), FailureReport("lost", report.reason)
        if operation is not None:
            for rank, status in statuses.items():
                if status["closed"].get(stream, number + 1) <= number:
                    return rank, FailureReport("lost", "it closed the group")
        return None

    def find_late(self, operation: OperationId | None) -> tuple[tuple[int, ...], str]:
        """The workers that are not known to wait in the same operation, and what can be seen of them."""
        statuses = self._read_or_nothing()
        stream = "" if operation is None else operation.stream
        number = 0 if operation is None else operation.number
        others = [rank for rank in range(self.size) if rank != self.rank]
        late = [rank for rank in others if statuses.get(rank, {"reached": {}})["reached"].get(stream, -1) < number]
        stopped = [rank for rank in others if self._process_state(rank) == "stopped"]
        notes = f" (the process of rank {', '.join(map(str, stopped))} is stopped)" if stopped else ""
        return tuple(stopped or late), notes


def _reports(statuses: Mapping[int, Mapping[str, Any]]) -> dict[int, FailureReport]:
    """The failure reports of the workers that have stopped, by rank."""
    reports = {}
    for rank, status in statuses.items():
        if "failure" in status:
            kind, reason, ranks = status["failure"]
            reports[rank] = FailureReport(kind, reason, tuple(ranks))
    return reports


# ----------------------------------------------------------------------------
# Runs the operations of a group: each returns its value in time, or raises the error that names the worker at fault.
# ----------------------------------------------------------------------------


# ---- The time by which a call must end


class Deadline:
    """A time, `seconds` from now.

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


# ---- One operation after the other

POLL_SECONDS = 0.05
"""A worker that waits looks at the status board this often."""
_DETECTION_SECONDS = 0.5
"""After a connection broke, the death of the process behind it becomes visible within this time."""


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
