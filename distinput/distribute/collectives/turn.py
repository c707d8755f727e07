# SPDX-License-Identifier: Apache-2.0
"""The calls of a group, one at a time: all workers compare what they call before anything of its size is sent."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from distinput.distribute.collectives.call import ABOUT, INLINE, Call, Purpose, from_words, table, words
from distinput.distribute.collectives.call_site import CURE, UNKNOWN, CallSite, Ways, call_site
from distinput.distribute.collectives.channel import Bytes, Handle
from distinput.distribute.collectives.operations import Operations, Wait
from distinput.distribute.collectives.party import Need
from distinput.distribute.collectives.wire import describe
from distinput.errors import FailedPreconditionError, Mismatch

__all__ = ["Compared", "Turn", "Turns"]


class Turns:
    """The calls of one group, which are numbered alike on all workers.

    Args:
      operations: of the group.
    """

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.count = 0
        self.lock = threading.Lock()
        self.ways = {strict: Ways(one_place=strict) for strict in (False, True)}

    def begin(self, what: str, timeout: float | None, name: str = "", purpose: Purpose | None = None) -> "Turn":
        """The next call, for a `with` block.

        Args:
          what: its name, for messages.
          timeout: seconds to wait for the others in it, None for the group's own.
          name: compared in the place of the line that calls.
          purpose: what it is made for.
        """
        return Turn(self, what, self.operations.wait(timeout), name, purpose)


class Turn:
    """One call on a group, from the comparison to the result; only one at a time. As a text it is the call, for messages."""

    __slots__ = ("_name", "_number", "_purpose", "_same", "_site", "_turns", "_what", "wait")

    def __init__(self, turns: Turns, what: str, wait: Wait, name: str, purpose: Purpose | None) -> None:
        self._turns, self._what, self.wait = turns, what, wait
        self._name, self._purpose = name, purpose
        self._number = turns.count
        self._same = what
        self._site: CallSite = UNKNOWN

    def __enter__(self) -> Self:
        turns, operations = self._turns, self._turns.operations
        operations.check_open(self._what)
        if not turns.lock.acquire(blocking=False):
            raise FailedPreconditionError(
                f"{self._what}: the group {operations.name!r} serves one thread at a time, and another one is in a call; "
                "make a group for each thread with dup"
            )
        self._number = turns.count
        turns.count += 1
        operations.party.begins(Need("call", operations.name, self._number))
        return self

    def __exit__(self, *_: object) -> None:
        self._turns.lock.release()

    def __str__(self) -> str:
        what = self._what if self._purpose is None else self._purpose.text
        return f"{what} ({self._place(f'call {self._number + 1}')})"

    def _place(self, *more: str) -> str:
        """The name or the place of the call, as far as there is one."""
        name = f"name={self._name!r}" if self._name else ""
        return ", ".join(filter(None, [*more, name, f"at {self._site}" if self._site.places else ""]))

    def prepare(self, make: Callable[[], Any]) -> Any:
        """What `make` returns; when it raises, the others are told first that this call cannot be made."""
        try:
            array = make()
            if array is not None and len(describe(array)) > ABOUT:
                raise ValueError(f"{self._what}: dtype and shape must fit into {ABOUT} letters, got {describe(array)}")
            return array
        except (TypeError, ValueError) as error:
            self._site = call_site()
            self._gather(Call(self._number, self._what, refused=True).encode())
            self._tell(f"{self._said('')}, refused: {error}")
            raise

    def compare(self, same: str, about: str, mine: Bytes) -> "list[Compared]":
        """Tell the others what this worker calls, and get what they call.

        Raises:
          Mismatch: not all say the same.
        """
        inline = mine.tobytes() if len(mine) <= INLINE else b""
        self._same = same
        if self._turns.operations.size > 1:
            self._site = call_site()
        if self._purpose is not None:
            same = f"{self._purpose.text} | {same}"
        if self._name:
            same = f"{self._name} | {same}"
        near, path = (0, 0) if self._name else (self._site.near, self._site.path)
        records = self._gather(Call(self._number, same, about, len(mine), False, inline, near, path).encode())
        calls = [Call.decode(record) for record in records]
        first = calls[0]
        if any(call.refused or call.same != first.same or call.number != first.number for call in calls):
            self._differ("must make the same call, with the same dtype and shape", about, "make the calls equal")
        if why := self._turns.ways[self._purpose is not None].unlike([(call.near, call.path) for call in calls]):
            self._differ(why, about, CURE)
        return [Compared(call) for call in calls]

    def _differ(self, why: str, about: str, cure: str) -> NoReturn:
        texts = self._tell(self._said(about))
        raise Mismatch(
            f"{self._what if self._purpose is None else self._purpose.text}: all ranks {why}; they called\n"
            f"{table(texts)}\nNothing was sent, and the group {self._turns.operations.name!r} can be used; {cure}"
        )

    def _said(self, about: str) -> str:
        """The call in words."""
        if self._purpose is None:
            text, given = self._same, about
        else:
            text, given = self._purpose.text, self._purpose.given()
        return ", ".join(filter(None, [text, f"given {given}" if given else "", self._place()]))

    def _tell(self, text: str) -> list[str]:
        """What all workers say, in rank order; they do that when their calls differ."""
        return [from_words(row) for row in self._gather(words(text))]

    def _gather(self, mine: Bytes) -> Sequence[Bytes]:
        rows: Sequence[Bytes] = self.run(self._turns.operations.channel.gather, mine)
        return rows

    def run(self, start: Callable[..., Handle], *args: Any) -> Any:
        """The value of an operation of this call."""
        operations = self._turns.operations
        need = Need("call", operations.name, self._number)
        return operations.run(start, *args, what=self, wait=self.wait, need=need)


class Compared:
    """What one worker called, with its bytes if they came along."""

    __slots__ = ("about", "data", "nbytes")

    def __init__(self, call: Call) -> None:
        self.about, self.nbytes = call.about, call.nbytes
        self.data: Bytes = np.frombuffer(call.inline, np.uint8)
