# SPDX-License-Identifier: Apache-2.0
"""Agreements: sums of integers over all workers, computed while the workers do something else.

In a process that has just slept an engine may need most of a millisecond to start one, since its threads have to be woken,
and some tenths of a millisecond to complete one. So a thread does both, and callers mostly find the sums ready.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from distinput.distribute.collectives.channel import Array, Handle, list_by_rank
from distinput.distribute.collectives.membership import POLL_SECONDS, Deadline, OperationId, Operations
from distinput.distribute.core.rendezvous import CallSite, call_places
from distinput.errors import Mismatch
from distinput.kernels.kernel import HelperThread

AGREE_VALUES = 26
"""How many integers one agreement can carry."""

_HEAD = 6  # number of values, its square, fingerprint, its square, count of refusals, sum of the ranks that refused
_FINGERPRINTS = 1 << 22  # fingerprints are below this, so that their squares can be summed
_DESCRIBE_SECONDS = 1.0  # if agreements differ, the others must describe theirs within this time
# The thread waits at least and at most this long between two looks, each time twice as long.
_PAUSES = (1e-3, POLL_SECONDS)
_JOIN_SECONDS = 1.0  # for the thread to end, which has only to start what was posted


class Agreement:
    """A sum of integers over all workers that is being computed; made by `Collectives.agree`. Its `str` describes the call."""

    __slots__ = (
        "_about",
        "_agreements",
        "_count",
        "_error",
        "_places",
        "_values",
        "differs",
        "number",
        "posting",
        "settled",
    )

    def __init__(self, agreements: "Agreements", posting: "_Posting", number: int, count: int, about: str) -> None:
        self._agreements, self.posting, self.number, self._count = agreements, posting, number, count
        self._about, self._places = about, call_places()
        self._values: list[int] = []
        self._error: Mismatch | None = None
        self.differs = False
        self.settled = False

    def __str__(self) -> str:
        places = [f"at {CallSite(places=self._places)}"] if self._places else []
        return ", ".join([self._about or "agree", *places])

    def done(self) -> bool:
        """Whether `result` will return or raise without waiting."""
        return self.settled or self._agreements.look() or self.settled

    def result(self, timeout: float | None = None) -> list[int]:
        """The sums, the same on every worker; all agreements posted before are completed first.

        Args:
          timeout: seconds to wait, from now.

        Raises:
          Mismatch: the workers did not give the same number of values; further agreements are not harmed.
          CollectiveError: see its kinds.
        """
        if not self.settled:
            self._agreements.complete(self, timeout)
        if self.differs:
            raise self._agreements.differ(self)
        if self._error is not None:
            raise self._error
        return list(self._values)

    def settle(self, total: Array, size: int, rank: int) -> None:
        """Accept the sums over all workers."""
        given, squares, fingerprints, fingerprint_squares, refusals, refused, *sums = total.tolist()
        count, own = self._count, _fingerprint(self.number, self._about)
        if refusals:
            who = f"rank {refused}" if refusals == 1 else f"{refusals} of the {size} workers"
            self._error = Mismatch(f"agree: {who} gave what cannot be summed; its own error says what it was")
        # All n_i equal n exactly if their sum is size * n and the sum of their squares size * n * n.
        elif (given, squares) != (size * count, size * count * count):
            self._error = Mismatch(
                f"agree: all ranks must give the same number of values, rank {rank} gave {count}, "
                f"the {size} ranks together {given}; nothing was summed and the group can be used"
            )
        elif (fingerprints, fingerprint_squares) != (size * own, size * own * own):
            self.differs = True
        else:
            self._values = sums[:count]
        self.settled = True  # last, since other threads read it without a lock


class Agreements:
    """The agreements of one group, in the order in which they were posted, which is the same on all workers.

    Args:
      operations: those of the group.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self.count = 0
        self._pending: deque[Agreement] = deque()
        self._posting = threading.Lock()
        self._begun = threading.Condition()
        self._settling = threading.RLock()
        self._queue: queue.SimpleQueue[_Posting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def post(self, values: Sequence[int], about: str) -> Agreement:
        """Start to sum; see `Collectives.agree`."""
        operations = self._operations
        operations.check_open("agree")
        with self._posting:
            number = self.count
            self.count += 1
            operations.membership.record_start(OperationId("agree", operations.name, number))
            try:
                given = _checked(values, operations.size)
            except ValueError:
                self._begin([0, 0, 0, 0, 1, operations.rank], number, 0, about)
                raise
            n, fingerprint = len(given), _fingerprint(number, about)
            slots = [n, n * n, fingerprint, fingerprint * fingerprint, 0, 0, *given]
            return self._begin(slots, number, n, about)

    def _begin(self, slots: list[int], number: int, count: int, about: str) -> Agreement:
        channel = self._operations.channel
        if not channel.post_is_cheap:
            self._start()
        posting = _Posting(slots, self._begun)
        agreement = Agreement(self, posting, number, count, about)
        self._pending.append(agreement)
        if channel.post_is_cheap:
            posting.begin(channel.post_sum)
        else:
            self._queue.put(posting)
        return agreement

    def _start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is not None:
            return
        self._thread = HelperThread(target=self._serve, name="distinput-agreements")
        try:
            self._thread.start()
        except RuntimeError:  # there are as many threads as there may be; the next agreement tries again
            self._thread = None
            raise

    def _serve(self) -> None:
        """The thread's loop: start posted agreements, and collect complete ones."""
        pause: float | None = None
        while True:
            try:
                posting = self._queue.get(timeout=pause)
            except queue.Empty:
                pause = None if self.look() else min(2 * (pause or 0.0), _PAUSES[1])
                continue
            if posting is None:
                return
            posting.begin(self._operations.channel.post_sum)
            del posting  # an idle thread keeps nothing alive
            pause = _PAUSES[0]

    def look(self) -> bool:
        """Collect complete agreements in order; True if none is left to wait for, also after a failure."""
        if not self._settling.acquire(blocking=False):
            return False  # another thread is waiting, and collects them
        try:
            while self._pending:
                if not self._pending[0].posting.wait(0):
                    return False
                self._settle(self._pending[0].posting.value())
            return True
        except Exception:  # noqa: BLE001 - `complete` meets it again and reports it
            return True
        finally:
            self._settling.release()

    def complete(self, agreement: Agreement, timeout: float | None) -> None:
        """Wait for all up to this one.

        Raises:
          CollectiveError: see its kinds.
        """
        operations = self._operations
        with self._settling:
            self.look()  # it is complete already if it was posted early enough
            deadline = operations.deadline(timeout)
            while not agreement.settled:
                operations.check_open("agree")
                first = self._pending[0]
                which = self._operation_id(first)
                total = operations.run(
                    lambda handle: handle, first.posting, what=first, deadline=deadline, operation=which
                )
                self._settle(total)

    def _settle(self, total: Array) -> None:
        agreement = self._pending.popleft()
        agreement.settle(total, self._operations.size, self._operations.rank)
        if agreement.differs:
            self._operations.membership.publish_description(self._operation_id(agreement), str(agreement))

    def _operation_id(self, agreement: Agreement) -> OperationId:
        return OperationId("agree", self._operations.name, agreement.number)

    def differ(self, agreement: Agreement) -> Mismatch:
        """The error for workers that agree about different things."""
        texts = self._operations.membership.collect_descriptions(
            self._operation_id(agreement), str(agreement), _DESCRIBE_SECONDS
        )
        return Mismatch(
            f"agree: all ranks must take the same step; they are at\n{list_by_rank(texts)}\nmake the same calls in the same "
            "order on all of them"
        )

    def close(self) -> bool:
        """End the thread; True if no agreement is under way any more."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                return False
        if not self._settling.acquire(timeout=POLL_SECONDS):  # another thread waits for one
            return False
        try:
            self.look()
            return not self._pending
        finally:
            self._settling.release()


class _Posting:
    """One agreement to be passed to the engine, possibly later and on another thread.

    Args:
      slots: what to sum.
      begun: notified then; shared by all agreements of a group, since making locks is expensive.
    """

    __slots__ = ("_begun", "_error", "_handle", "_slots")

    def __init__(self, slots: list[int], begun: threading.Condition) -> None:
        self._slots, self._begun = slots, begun
        self._handle: Handle | None = None
        self._error: Exception | None = None

    def begin(self, post_sum: Callable[[Array], Handle]) -> None:
        """Pass it to the engine; `wait` raises any error of that."""
        slots = np.zeros(_HEAD + AGREE_VALUES, np.int64)
        slots[: len(self._slots)] = self._slots
        try:
            self._handle = post_sum(slots)
        except Exception as error:  # noqa: BLE001 - raised again by `wait`
            self._error = error
        with self._begun:
            self._begun.notify_all()

    def wait(self, seconds: float) -> bool:
        """See `Handle`."""
        deadline = Deadline(seconds)
        if self._handle is None:
            with self._begun:
                if not self._begun.wait_for(lambda: self._handle or self._error, seconds):
                    return False
            if self._error is not None:
                raise self._error
        assert self._handle is not None
        return self._handle.wait(deadline.remaining())

    def value(self) -> Array:
        """See `Handle`."""
        assert self._handle is not None
        value: Array = self._handle.value()
        return value


def _checked(values: Sequence[int], size: int) -> list[int]:
    limit = (1 << 63) // size
    if len(values) <= AGREE_VALUES:
        for value in values:
            if type(value) is not int or not -limit < value < limit:
                break
        else:
            return list(values)
    given = [int(value) for value in values if isinstance(value, int | np.integer | np.bool_)]
    if len(given) != len(values) or len(given) > AGREE_VALUES:
        raise ValueError(f"agree: needs at most {AGREE_VALUES} integers, got {list(values)!r:.200}")
    if any(not -limit < value < limit for value in given):
        raise ValueError(f"agree: the sum over {size} workers must fit into 64 bits, got {given}")
    return given


def _fingerprint(number: int, about: str) -> int:
    """A number that stands for the position of an agreement among all and for what it is about."""
    return (number * 0x9E3779B1 + _subject(about)) % _FINGERPRINTS


@lru_cache(maxsize=1024)
def _subject(about: str) -> int:
    return int.from_bytes(blake2b(about.encode(), digest_size=8).digest(), "little")
