# SPDX-License-Identifier: Apache-2.0
"""The calls of a group, one at a time: all workers compare what they call before anything of its size is sent."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from distinput.distribute.backends.call import ABOUT, INLINE, Call, table
from distinput.distribute.backends.channel import Bytes, Handle
from distinput.distribute.backends.operations import Operations, Wait
from distinput.distribute.backends.party import Need
from distinput.distribute.backends.wire import describe
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

    def begin(self, what: str, timeout: float | None) -> "Turn":
        """The next call, for a `with` block.

        Args:
          what: its name, for messages.
          timeout: seconds to wait for the others in it, None for the group's own.
        """
        return Turn(self, what, self.operations.wait(timeout))


class Turn:
    """One call on a group, from the comparison to the result; only one at a time."""

    __slots__ = ("_number", "_turns", "_what", "wait")

    def __init__(self, turns: Turns, what: str, wait: Wait) -> None:
        self._turns, self._what, self.wait = turns, what, wait
        self._number = turns.count

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
        return self

    def __exit__(self, *_: object) -> None:
        self._turns.lock.release()

    def prepare(self, make: Callable[[], Any]) -> Any:
        """What `make` returns; when it raises, the others are told first that this call cannot be made."""
        try:
            array = make()
            if array is not None and len(describe(array)) > ABOUT:
                raise ValueError(f"{self._what}: dtype and shape must fit into {ABOUT} letters, got {describe(array)}")
            return array
        except (TypeError, ValueError) as error:
            self._exchange(Call(self._number, self._what, str(error), refused=True))
            raise

    def compare(self, same: str, about: str, mine: Bytes) -> "list[Compared]":
        """Tell the others what this worker calls, and get what they call.

        Raises:
          Mismatch: not all say the same.
        """
        inline = mine.tobytes() if len(mine) <= INLINE else b""
        records = self._exchange(Call(self._number, same, about, len(mine), inline=inline))
        calls = [Call.decode(record) for record in records]
        first = calls[0]
        if any(call.refused or call.same != first.same or call.number != first.number for call in calls):
            raise Mismatch(
                f"{self._what}: all ranks must make the same call, with the same dtype and shape; they called\n"
                f"{table(calls)}\nNothing was sent, and the group {self._turns.operations.name!r} can be used; "
                "make the calls equal"
            )
        return [Compared(call) for call in calls]

    def _exchange(self, call: Call) -> Sequence[Bytes]:
        rows: Sequence[Bytes] = self.run(self._turns.operations.channel.gather, call.encode())
        return rows

    def run(self, start: Callable[..., Handle], *args: Any) -> Any:
        """The value of an operation of this call."""
        operations = self._turns.operations
        need = Need("call", operations.name, self._number)
        return operations.run(start, *args, what=self._what, wait=self.wait, need=need)


class Compared:
    """What one worker called, with its bytes if they came along."""

    __slots__ = ("about", "data", "nbytes")

    def __init__(self, call: Call) -> None:
        self.about, self.nbytes = call.about, call.nbytes
        self.data: Bytes = np.frombuffer(call.inline, np.uint8)
