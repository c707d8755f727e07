# SPDX-License-Identifier: Apache-2.0
"""Agreements: sums of integers over all workers that are under way while the workers do something else.

To begin one can take an engine most of a millisecond in a process that has just slept, since its threads have to be
woken, and to take one in some tenths. So a thread does both, and whoever needs the sums mostly finds them there.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from distinput.distribute.collectives.call import table
from distinput.distribute.collectives.call_site import call_site
from distinput.distribute.collectives.channel import Array, Handle
from distinput.distribute.collectives.operations import GLANCE, Operations, Wait
from distinput.distribute.collectives.party import Need
from distinput.errors import Mismatch

__all__ = ["AGREE_VALUES", "Agreement", "Agreements"]

AGREE_VALUES = 26
"""How many integers one agreement can carry."""

_HEAD = 6  # length, its square, mark, its square, refusals, ranks that refused
_MARKS = 1 << 22  # marks are below this, so that their squares can be summed
_SAY = 1.0  # seconds in which the others say what they agree about, when it is not the same
_LOOKS = (1e-3, GLANCE)  # the shortest and the longest time between two looks of the thread; each is twice the last one
_END = 1.0  # seconds that the thread has to end, which has only to begin what was posted


class Agreement:
    """A sum of integers over all workers, under way; made by `Collectives.agree`. As a text it is the call, for messages."""

    __slots__ = (
        "_about",
        "_agreements",
        "_count",
        "_error",
        "_site",
        "_values",
        "differs",
        "number",
        "posting",
        "settled",
    )

    def __init__(self, agreements: "Agreements", posting: "_Posting", number: int, count: int, about: str) -> None:
        self._agreements, self.posting, self.number, self._count = agreements, posting, number, count
        self._about, self._site = about, call_site()
        self._values: list[int] = []
        self._error: Mismatch | None = None
        self.differs = False
        self.settled = False

    def __str__(self) -> str:
        return ", ".join([self._about or "agree", *([f"at {self._site}"] if self._site.places else [])])

    def done(self) -> bool:
        """Whether `result` returns, or raises, without waiting."""
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
        """Take the sums that arrived."""
        given, squares, number, number_squares, refusals, refused, *sums = total.tolist()
        count, at = self._count, _mark(self.number, self._about)
        if refusals:
            who = f"rank {refused}" if refusals == 1 else f"{refusals} of the {size} workers"
            self._error = Mismatch(f"agree: {who} gave what cannot be summed; its own error says what it was")
        # All n_i equal n exactly when their sum is size * n and that of their squares size * n * n.
        elif (given, squares) != (size * count, size * count * count):
            self._error = Mismatch(
                f"agree: all ranks must give the same number of values, rank {rank} gave {count}, "
                f"the {size} ranks together {given}; nothing was summed and the group can be used"
            )
        elif (number, number_squares) != (size * at, size * at * at):
            self.differs = True
        else:
            self._values = sums[:count]
        self.settled = True  # at last, as other threads do not take a lock to look at it


class Agreements:
    """Those of one group, in the order in which they were posted, which is the same on all workers.

    Args:
      operations: of the group.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self.count = 0
        self._pending: deque[Agreement] = deque()
        self._posting = threading.Lock()
        self._begun = threading.Condition()
        self._settling = threading.RLock()
        self._orders: queue.SimpleQueue[_Posting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def post(self, values: Sequence[int], about: str) -> Agreement:
        """Begin to sum; see `Collectives.agree`."""
        operations = self._operations
        operations.check_open("agree")
        with self._posting:
            number = self.count
            self.count += 1
            operations.party.begins(Need("agree", operations.name, number))
            try:
                given = _checked(values, operations.size)
            except ValueError:
                self._begin([0, 0, 0, 0, 1, operations.rank], number, 0, about)
                raise
            n, at = len(given), _mark(number, about)
            return self._begin([n, n * n, at, at * at, 0, 0, *given], number, n, about)

    def _begin(self, slots: list[int], number: int, count: int, about: str) -> Agreement:
        channel = self._operations.channel
        posting = _Posting(slots, self._begun)
        agreement = Agreement(self, posting, number, count, about)
        self._pending.append(agreement)
        if channel.adds_at_once:
            posting.begin(channel.add)
        else:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="distinput-agreements", daemon=True)
                self._thread.start()
            self._orders.put(posting)
        return agreement

    def _serve(self) -> None:
        """On the thread: begin what was posted, and take in what is complete."""
        pause: float | None = None
        while True:
            try:
                posting = self._orders.get(timeout=pause)
            except queue.Empty:
                pause = None if self.look() else min(2 * (pause or 0.0), _LOOKS[1])
                continue
            if posting is None:
                return
            posting.begin(self._operations.channel.add)
            del posting  # an idle thread keeps nothing alive
            pause = _LOOKS[0]

    def look(self) -> bool:
        """Take in, in order, those that are complete; True when nothing is left to wait for, also after a failure."""
        if not self._settling.acquire(blocking=False):
            return False  # somebody waits, and takes in what comes
        try:
            while self._pending:
                if not self._pending[0].posting.wait(0):
                    return False
                self._settle(self._pending[0].posting.value())
            return True
        except Exception:  # noqa: BLE001 - `complete` meets it again, and says what is wrong
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
            self.look()  # it is there already where the group looks ahead far enough
            wait = operations.wait(timeout)
            while not agreement.settled:
                operations.check_open("agree")
                first = self._pending[0]
                need = self._need(first)
                self._settle(operations.run(lambda handle: handle, first.posting, what=first, wait=wait, need=need))

    def _settle(self, total: Array) -> None:
        agreement = self._pending.popleft()
        agreement.settle(total, self._operations.size, self._operations.rank)
        if agreement.differs:
            self._operations.party.says(self._need(agreement), str(agreement))

    def _need(self, agreement: Agreement) -> Need:
        return Need("agree", self._operations.name, agreement.number)

    def differ(self, agreement: Agreement) -> Mismatch:
        """The error where the workers agree about different things."""
        texts = self._operations.party.said(self._need(agreement), str(agreement), _SAY)
        return Mismatch(
            f"agree: all ranks must take the same step; they are at\n{table(texts)}\nmake the same calls in the same order "
            "on all of them"
        )

    def close(self) -> bool:
        """End the thread; True when nothing is under way any more."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._orders.put(None)
            thread.join(_END)
            if thread.is_alive():
                return False
        if not self._settling.acquire(timeout=GLANCE):  # another thread waits for one
            return False
        try:
            self.look()
            return not self._pending
        finally:
            self._settling.release()


class _Posting:
    """One agreement as it is given to the engine, maybe later and on another thread.

    Args:
      slots: what to sum.
      begun: told of it; shared by all of a group, since locks are dear to make.
    """

    __slots__ = ("_begun", "_error", "_handle", "_slots")

    def __init__(self, slots: list[int], begun: threading.Condition) -> None:
        self._slots, self._begun = slots, begun
        self._handle: Handle | None = None
        self._error: Exception | None = None

    def begin(self, add: Callable[[Array], Handle]) -> None:
        """Give it to the engine; what that raises, `wait` does."""
        slots = np.zeros(_HEAD + AGREE_VALUES, np.int64)
        slots[: len(self._slots)] = self._slots
        try:
            self._handle = add(slots)
        except Exception as error:  # noqa: BLE001 - raised again by `wait`
            self._error = error
        with self._begun:
            self._begun.notify_all()

    def wait(self, seconds: float) -> bool:
        """As of a `Handle`."""
        wait = Wait(seconds)
        if self._handle is None:
            with self._begun:
                if not self._begun.wait_for(lambda: self._handle or self._error, seconds):
                    return False
            if self._error is not None:
                raise self._error
        assert self._handle is not None
        return self._handle.wait(wait.left())

    def value(self) -> Array:
        """As of a `Handle`."""
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


def _mark(number: int, about: str) -> int:
    """Stands for the place of an agreement among all, and for what it is about."""
    return (number * 0x9E3779B1 + _subject(about)) % _MARKS


@lru_cache(maxsize=1024)
def _subject(about: str) -> int:
    return int.from_bytes(blake2b(about.encode(), digest_size=8).digest(), "little")
