# SPDX-License-Identifier: Apache-2.0
"""The calls of a group, one at a time: all workers compare what they call before they send anything of its size."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from distinput.distribute.collectives.channel import (
    ABOUT,
    INLINE,
    Bytes,
    CallRecord,
    DeviceOperations,
    Handle,
    Purpose,
    decode_text,
    describe,
    encode_text,
    list_by_rank,
)
from distinput.distribute.collectives.membership import Deadline, OperationId, Operations
from distinput.distribute.core.rendezvous import CURE, UNKNOWN, CallPaths, CallSite, call_site
from distinput.errors import FailedPreconditionError, Mismatch


class CallSequence:
    """The calls of one group, numbered alike on all workers.

    Args:
      operations: those of the group.
    """

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.count = 0
        self.lock = threading.Lock()
        self.paths = {strict: CallPaths(one_place=strict) for strict in (False, True)}

    def begin(
        self, what: str, timeout: float | None, name: str = "", purpose: Purpose | None = None
    ) -> "CollectiveCall":
        """The next call, for a `with` block.

        Args:
          what: the method, for messages.
          timeout: seconds to wait for the others, None for the group's own timeout.
          name: compared instead of the line of the program that makes the call.
          purpose: what the call is made for.
        """
        return CollectiveCall(self, what, self.operations.deadline(timeout), name, purpose)


class CollectiveCall:
    """One call on a group, from the comparison to the result; one at a time. Its `str` describes it, for messages."""

    __slots__ = ("_name", "_number", "_purpose", "_same", "_sequence", "_site", "_what", "deadline")

    def __init__(
        self, sequence: CallSequence, what: str, deadline: Deadline, name: str, purpose: Purpose | None
    ) -> None:
        self._sequence, self._what, self.deadline = sequence, what, deadline
        self._name, self._purpose = name, purpose
        self._number = sequence.count
        self._same = what
        self._site: CallSite = UNKNOWN

    def __enter__(self) -> Self:
        sequence, operations = self._sequence, self._sequence.operations
        operations.check_open(self._what)
        if not sequence.lock.acquire(blocking=False):
            raise FailedPreconditionError(
                f"{self._what}: the group {operations.name!r} serves one thread at a time, and another one is in a call; "
                "make a group for each thread with dup"
            )
        self._number = sequence.count
        sequence.count += 1
        operations.membership.record_start(OperationId("call", operations.name, self._number))
        return self

    def __exit__(self, *_: object) -> None:
        self._sequence.lock.release()

    def __str__(self) -> str:
        what = self._what if self._purpose is None else self._purpose.text
        return f"{what} ({self._where(f'call {self._number + 1}')})"

    def _where(self, *more: str) -> str:
        """The name of the call and its call site, as far as known."""
        name = f"name={self._name!r}" if self._name else ""
        return ", ".join(filter(None, [*more, name, f"at {self._site}" if self._site.places else ""]))

    def prepare(self, make: Callable[[], Any]) -> Any:
        """What `make` returns; if it raises, the others are first told that this call cannot be made."""
        try:
            array = make()
            if array is not None and len(describe(array)) > ABOUT:
                raise ValueError(f"{self._what}: dtype and shape must fit into {ABOUT} letters, got {describe(array)}")
            return array
        except (TypeError, ValueError) as error:
            self._site = call_site()
            self._gather(CallRecord(self._number, self._what, refused=True).encode())
            self._exchange_texts(f"{self._description('')}, refused: {error}")
            raise

    def compare(self, same: str, about: str, mine: Bytes) -> "list[PeerCall]":
        """Exchange the calls of all workers, and compare them.

        Args:
          same: what has to be equal on all workers.
          about: the dtype and shape of this worker's array.
          mine: its bytes, which travel along if they are few.

        Raises:
          Mismatch: the workers do not make the same call.
        """
        inline = mine.tobytes() if len(mine) <= INLINE else b""
        self._same = same
        if self._sequence.operations.size > 1:
            self._site = call_site()
        if self._purpose is not None:
            same = f"{self._purpose.text} | {same}"
        if self._name:
            same = f"{self._name} | {same}"
        near, path = (0, 0) if self._name else (self._site.near, self._site.path)
        mine_encoded = CallRecord(self._number, same, about, len(mine), False, inline, near, path).encode()
        records = [CallRecord.decode(record) for record in self._gather(mine_encoded)]
        first = records[0]
        if any(each.refused or each.same != first.same or each.number != first.number for each in records):
            self._fail("must make the same call, with the same dtype and shape", about, "make the calls equal")
        paths = self._sequence.paths[self._purpose is not None]
        if difference := paths.difference([(each.near, each.path) for each in records]):
            self._fail(difference, about, CURE)
        return [PeerCall(each) for each in records]

    def _fail(self, why: str, about: str, cure: str) -> NoReturn:
        texts = self._exchange_texts(self._description(about))
        raise Mismatch(
            f"{self._what if self._purpose is None else self._purpose.text}: all ranks {why}; they called\n"
            f"{list_by_rank(texts)}\nNothing was sent, and the group {self._sequence.operations.name!r} can be used; {cure}"
        )

    def _description(self, about: str) -> str:
        """The call as others read it in an error."""
        if self._purpose is None:
            text, given = self._same, about
        else:
            text, given = self._purpose.text, self._purpose.given()
        return ", ".join(filter(None, [text, f"given {given}" if given else "", self._where()]))

    def _exchange_texts(self, text: str) -> list[str]:
        """The texts of all workers, in rank order; every worker calls this once it has seen that the calls differ."""
        return [decode_text(row) for row in self._gather(encode_text(text))]

    def _gather(self, mine: Bytes) -> Sequence[Bytes]:
        rows: Sequence[Bytes] = self.run(self._sequence.operations.channel.all_gather, mine)
        return rows

    def run(self, start: Callable[..., Handle], *args: Any) -> Any:
        """The value of an operation that this call needs."""
        operations = self._sequence.operations
        operation = OperationId("call", operations.name, self._number)
        return operations.run(start, *args, what=self, deadline=self.deadline, operation=operation)


class PeerCall:
    """The call of one worker: dtype and shape of its array, its size, and its bytes if they were sent along."""

    __slots__ = ("about", "data", "nbytes")

    def __init__(self, record: CallRecord) -> None:
        self.about, self.nbytes = record.about, record.nbytes
        self.data: Bytes = np.frombuffer(record.inline, np.uint8)


# ---- Calls of a group on arrays that are on devices: compared like all others, and moved by the engine's own collectives

_NOTHING = np.zeros(0, np.uint8)


class DeviceCalls:
    """The calls of one group on arrays of one library.

    Args:
      sequence: the calls of the group.
      operations: what the engine does with such arrays.
    """

    def __init__(self, sequence: CallSequence, operations: DeviceOperations) -> None:
        self._sequence, self._operations = sequence, operations
        self.kind = operations.kind
        """The library and the kind of device, such as "torch cpu"."""

    def reducible(self, dtype: str) -> bool:
        """True if `all_reduce` adds arrays of a dtype."""
        return self._operations.reducible(dtype)

    def all_gather(
        self, flat: Any, sizes: Sequence[int], dtype: str, *, name: str = "", purpose: Purpose | None = None
    ) -> list[Any]:
        """The arrays of all workers, in rank order, on this worker's device.

        Args:
          flat: [sizes[rank]].
          sizes: how many items each worker has.
          dtype: the name of the dtype.
          name: as in `Collectives.all_reduce`.
          purpose: likewise.

        Raises:
          Mismatch: the workers made different calls; nothing was sent.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("all_gather", None, name, purpose) as call:
            call.compare(f"all_gather {dtype} {','.join(map(str, sizes))} on {self.kind}", "", _NOTHING)
            parts: list[Any] = call.run(self._operations.all_gather, flat, sizes)
            return parts

    def all_reduce(self, flat: Any, dtype: str, *, name: str = "", purpose: Purpose | None = None) -> Any:
        """The sum of the arrays of all workers, `[n]`, on this worker's device.

        Args:
          flat: [n].
          dtype: the name of the dtype.
          name: as in `Collectives.all_reduce`.
          purpose: likewise.

        Raises:
          Mismatch: the workers made different calls; nothing was sent.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("all_reduce", None, name, purpose) as call:
            call.compare(f"all_reduce sum {dtype} {len(flat)} on {self.kind}", "", _NOTHING)
            return call.run(self._operations.all_reduce, flat)
