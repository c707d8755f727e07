# SPDX-License-Identifier: Apache-2.0
"""Faults that a worker may have, and the error that the other workers must get, on every engine."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from distinput.distribute.engines import (
    Aborted,
    CollectiveError,
    Collectives,
    CollectiveTimeout,
    Mismatch,
    PeerLost,
    Poisoned,
)
from distinput.testing.collectives.outcome import SOON, Outcome, raises

__all__ = ["FAULTS", "IN_THREADS", "run_fault"]


@dataclass(frozen=True)
class Fault:
    """A way in which one worker fails the others.

    Args:
      act: what the worker does with its group.
      expected: the error that the others get.
      waits: whether they get it only when their timeout is over.
      wait: the call that the others make, by default an all_reduce.
    """

    act: Callable[[Collectives], None]
    expected: type[CollectiveError]
    waits: bool = False
    wait: Callable[[Collectives], object] = lambda group: group.all_reduce(1.0)


def _kill(_: Collectives) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _freeze(_: Collectives) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(group: Collectives) -> None:
    with group:
        raise OSError("record 7 of part-3 is damaged")


def _come_too_late(group: Collectives) -> None:
    time.sleep(1.5 * group.timeout)
    # What the others sent for the first call may still arrive; they take part in no further one.
    error = raises(CollectiveError, lambda: (group.all_reduce(1.0), group.all_reduce(1.0)))
    assert isinstance(error, Aborted | PeerLost), f"got {type(error).__name__}: {error}"


def _stay_away(group: Collectives) -> None:
    time.sleep(2 * group.timeout)


def _transfer(group: Collectives) -> None:
    mine = np.zeros(1 << 23)  # 64 MB
    while True:
        group.all_reduce(mine)


def _kill_in_transfer(group: Collectives) -> None:
    threading.Timer(0.2, _kill, [group]).start()
    _transfer(group)


def _agree_forever(group: Collectives) -> None:
    ahead = [group.agree([1]) for _ in range(4)]
    while True:
        ahead.append(group.agree([1]))
        ahead.pop(0).result()


def _cross(group: Collectives) -> None:
    raises(Mismatch, lambda: group.agree([1]).result())  # the others are in a call, and wait for this one


FAULTS: dict[str, Fault] = {
    "close": Fault(lambda group: group.close(), PeerLost),
    "come_too_late": Fault(_come_too_late, CollectiveTimeout, waits=True),
    "cross": Fault(_cross, Mismatch),
    "exit": Fault(lambda _: sys.exit(0), PeerLost),
    "freeze": Fault(_freeze, CollectiveTimeout, waits=True),
    "freeze_in_agreement": Fault(_freeze, CollectiveTimeout, waits=True, wait=_agree_forever),
    "kill": Fault(_kill, PeerLost),
    "kill_in_agreement": Fault(_kill, PeerLost, wait=_agree_forever),
    "kill_in_transfer": Fault(_kill_in_transfer, PeerLost, wait=_transfer),
    "raise": Fault(_raise, Aborted),
    "raise_in_agreement": Fault(_raise, Aborted, wait=_agree_forever),
    "stay_away": Fault(_stay_away, CollectiveTimeout, waits=True),
}
"""The faults by name."""

IN_THREADS = ("close", "come_too_late", "raise", "raise_in_agreement", "stay_away")
"""The faults that a thread can have without ending its process."""


def run_fault(group: Collectives, name: str, victim: int) -> Outcome:
    """Let one worker have a fault; the others report the error they got, and check that the group refuses further calls."""
    fault, outcome = FAULTS[name], Outcome(group.rank)
    at = float(group.broadcast(time.monotonic() + 0.3, victim))
    if group.rank == victim:
        time.sleep(max(0.0, at - time.monotonic()))
        with contextlib.suppress(OSError):
            fault.act(group)
        return outcome
    try:
        fault.wait(group)
    except CollectiveError as error:
        outcome.seconds = time.monotonic() - at
        outcome.error, outcome.message = type(error).__name__, str(error)
        ranks = error.ranks if isinstance(error, CollectiveTimeout) else [getattr(error, "rank", None)]
        outcome.culprit = [rank for rank in ranks if rank is not None]
        problems = list(_problems(group, fault, victim, error, outcome))
        if problems:
            outcome.failed[name] = "; ".join(problems)
    else:
        outcome.failed[name] = "no error came"
    outcome.passed = [] if outcome.failed else [name]
    return outcome


def _problems(group: Collectives, fault: Fault, victim: int, error: CollectiveError, outcome: Outcome) -> Iterator[str]:
    if type(error) is not fault.expected:
        yield f"expected {fault.expected.__name__}, got {type(error).__name__}: {error}"
    if outcome.culprit not in ([], [victim]):
        yield f"the error must name rank {victim}, got {outcome.culprit}: {error}"
    limit = group.timeout + SOON if fault.waits else SOON
    if outcome.seconds > limit:
        yield f"the error came after {outcome.seconds:.2f} s, allowed are {limit:g} s"
    begin = time.monotonic()
    try:
        group.barrier()
    except Poisoned:
        if time.monotonic() - begin > 0.1:
            yield f"Poisoned came after {time.monotonic() - begin:.2f} s"
    else:
        yield "the group can still be used"
