# SPDX-License-Identifier: Apache-2.0
"""How workers agree, while they compute, on the call before which all of them save.

At intervals each worker posts an agreement that says whether it has received a notice, and reads the sums some calls later,
when they are usually complete. So all workers learn of a notice in the same call, at a cost of some microseconds a call. The
number of calls between two agreements is derived from the sums as well: as many as take about `_EVERY_SECONDS`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from distinput.distribute.collectives.agreements import Agreement
from distinput.distribute.collectives.collectives import Collectives
from distinput.errors import CollectiveError

__all__ = ["LATENCY", "Alignment", "SaveDecision"]

_EVERY_SECONDS = 0.1
"""About how long an agreement is posted after the one before: each costs some tenths of a millisecond of processor time."""

_MOST_CALLS = 64
"""The maximum number of calls between two agreements, however short they are: later calls may take longer."""

LATENCY = 2 * _EVERY_SECONDS
"""Seconds from a notice to the decision, if calls are short; two calls if they are long."""

_CLOSE_SECONDS = 1.0
_MICROSECONDS = 1e6
_LONGEST = 1 << 40  # microseconds; a sum of these fits into 64 bits


@dataclass(frozen=True)
class SaveDecision:
    """What all workers do before the next call.

    Args:
      worker: the worker that received the notice; None if several did.
      final: True to end after saving, False to save and continue for the rest of the grace period.
    """

    worker: int | None
    final: bool


class Alignment:
    """One worker's part in the agreements.

    Args:
      group: a group for this purpose alone; None for a process without other workers.
      noticed: returns True if this worker has received a notice.
      expired: returns True if its time is nearly over; called only after a notice.
    """

    def __init__(self, group: Collectives | None, noticed: Callable[[], bool], expired: Callable[[], bool]) -> None:
        self._group, self._noticed, self._expired = group, noticed, expired
        self._next = 0  # the call in which the next agreement is posted
        self._look = 0  # the call after which its sums are read
        self._gap = 1  # calls from one agreement to the next
        self._calls = 1  # calls between the last two, which may have been more
        self._pending: Agreement | None = None
        self._posted_in, self._posted_at = 0, perf_counter()

    def before(self, call: int) -> None:
        """Post an agreement if one is due; to be called at the beginning of every call."""
        if call < self._next or self._pending is not None or self._group is None:
            return
        now = perf_counter()
        noticed = self._noticed()
        took = min(int((now - self._posted_at) * _MICROSECONDS), _LONGEST)
        values = [int(noticed), self._group.rank * noticed, int(noticed and self._expired()), took]
        self._pending = self._group.agree(values, f"call {call} of the preemption handler")
        self._calls = max(1, call - self._posted_in)
        self._posted_in, self._posted_at = call, now
        self._look = call + self._gap // 2

    def after(self, call: int) -> SaveDecision | None:
        """What to do before the next call, None for nothing; to be called at the end of every call.

        Raises:
          Mismatch: the workers have not made the same number of calls.
          CollectiveError: a worker is gone or late.
        """
        if self._group is None:
            return SaveDecision(0, self._expired()) if self._noticed() else None
        if self._pending is None or call < self._look:
            return None
        pending, self._pending = self._pending, None
        noticed, ranks, expired, took = pending.result()
        seconds = took / _MICROSECONDS / self._group.size / self._calls
        self._gap = max(1, min(_MOST_CALLS, 2 * self._gap, int(_EVERY_SECONDS / max(seconds, 1e-9))))
        self._next = max(call + 1, self._posted_in + self._gap)
        if not noticed:
            return None
        return SaveDecision(ranks if noticed == 1 else None, expired > 0)

    def close(self) -> None:
        """Wait for a pending agreement, and leave the group; may be called again."""
        group, self._group = self._group, None
        if group is not None:
            if self._pending is not None:
                with suppress(CollectiveError):
                    self._pending.result(_CLOSE_SECONDS)
            group.close()
