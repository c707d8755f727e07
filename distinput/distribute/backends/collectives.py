# SPDX-License-Identifier: Apache-2.0
"""Calls in which all workers of a job take part: NumPy in, NumPy out, on any engine.

`Collectives` is the same on all engines, which only move bytes (`channel.Channel`). It compares the calls before
anything of their sizes is sent, folds in rank order where the engine's own reduction would not give the same bits, and
finds out who is to blame when a wait does not end. It never waits longer than its time.
"""

import atexit
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from distinput.distribute.backends.call import ABOUT, INLINE, Call, table
from distinput.distribute.backends.channel import Array, Board, Bytes, Channel, Handle
from distinput.distribute.backends.failures import (
    Aborted,
    ChannelLost,
    CollectiveError,
    CollectiveTimeout,
    Mismatch,
    PeerLost,
    Poisoned,
)
from distinput.distribute.backends.fold import check_reducible, fold, native_view
from distinput.distribute.backends.seat import Seat
from distinput.distribute.backends.wire import as_array, describe, family, from_bytes, parse, to_bytes
from distinput.errors import FailedPreconditionError

__all__ = ["AGREE_VALUES", "Agreement", "Collectives"]

AGREE_VALUES = 26
"""How many integers one agreement can carry."""

_AGREE_HEAD = 6  # length, its square, number, its square, refusals, ranks that refused
_FOLD_BYTES = 4096  # up to here gathering and folding is as quick as the engine's reduction, and bit-equal everywhere
_CHUNK_BYTES = (
    1 << 22
)  # larger arrays are folded in pieces, so that it takes `size` pieces of memory and not `size` arrays
_PIECE_BYTES = 1 << 30  # more in one operation, over all workers, is beyond the 32-bit sizes of some engines
_NUMBER = 1 << 20  # agreement numbers are compared modulo this, so that their squares can be summed
_GLANCE = 0.05  # seconds of waiting after which a worker looks at the notice board, and again each time
_BLAME = 0.5  # seconds in which the death of a neighbour becomes visible after its connection broke
_LINGER = 1.0  # seconds that the host of the board stays, after abort, for the others to read it


class Collectives:
    """The workers of a job as seen by one of them.

    Every worker makes the same calls in the same order. Calls on one group are made by one thread; a second thread gets
    its own group by `dup`. After any error but `Mismatch` the group, and all that were dup'ed from it or share its
    origin, is used up: each further call raises `Poisoned` at once.

    Leaving a `with` block by an exception tells the others, who get `Aborted`.

    Args:
      channel: what the engine offers.
      name: shown in messages.
      timeout: seconds that a call waits for the others, unless it is given its own.

    Source: the meaning is that of MPI's collectives; the names are those of `tf.distribute.ReplicaContext` where it has
    them.
    """

    def __init__(self, channel: Channel, name: str, timeout: float, party: "_Party | None" = None) -> None:
        self._channel, self._name, self._timeout = channel, name, timeout
        self._calls = 0
        self._dups = 0
        self._agreements = 0
        self._pending: deque[Agreement] = deque()
        self._lock = threading.Lock()
        self._settling = threading.RLock()
        self._closed = False
        if party is None:
            party = _Party(channel)
            self._party = party
            seats = self._run(channel.gather, party.seat.encode(), what="start", wait=_Wait(timeout), need=None)
            party.seats = [Seat.decode(seat) for seat in seats]
        self._party = party
        party.open += 1
        if not _open_groups:
            atexit.unregister(_close_all)
            atexit.register(_close_all)  # now, so that it runs before the ends of the engine, which was loaded before
        _open_groups.add(self)

    @property
    def name(self) -> str:
        """The name that was given; a dup's is that of its origin, a slash, and its own."""
        return self._name

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self._channel.rank

    @property
    def size(self) -> int:
        """The number of workers."""
        return self._channel.size

    @property
    def local_rank(self) -> int:
        """The number of this worker among those on its machine."""
        machine = self._party.seat.machine
        return sum(seat.machine == machine for seat in self._party.seats[: self.rank])

    @property
    def local_size(self) -> int:
        """The number of workers on this machine."""
        return sum(seat.machine == self._party.seat.machine for seat in self._party.seats)

    @property
    def timeout(self) -> float:
        """Seconds that a call waits unless it is given its own time."""
        return self._timeout

    def __repr__(self) -> str:
        state = "closed" if self._closed else "failed" if self._party.failure else "open"
        return f"<Collectives {self._name!r} rank {self.rank} of {self.size}, {state}>"

    def all_reduce(
        self, x: Any, op: str = "sum", *, deterministic: bool = False, timeout: float | None = None
    ) -> Array:
        """One array from those of all workers, element by element; the same bits on every worker.

        Args:
          x: numbers, of the same dtype and shape on every worker; bool for min and max.
          op: "sum", "prod", "min" or "max"; integers wrap around, NaN wins.
          deterministic: fold in rank order, ((0 op 1) op 2) ..., so that the bits are the same on every engine and in
            every run. It is what happens anyway for up to 4 KB and for dtypes the engine does not know.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: the workers did not call the same.
          TypeError, ValueError: `x` cannot be reduced by `op`; the others get Mismatch.
          CollectiveError: see its kinds.
        """

        def prepare() -> Array:
            array = as_array(x, "all_reduce")
            check_reducible(array.dtype, op)
            return array

        with _Turn(self, "all_reduce", timeout) as turn:
            array = turn.prepare(prepare)
            about = describe(array)
            how = f"{op} deterministic" if deterministic else op
            calls = turn.compare(f"all_reduce {how} {about}", "", to_bytes(array))
            if calls[0].nbytes <= INLINE:
                return fold([from_bytes(call.data, array.dtype, array.shape) for call in calls], op)
            flat = native_view(array.reshape(-1), op)
            if (
                deterministic
                or flat.nbytes <= _FOLD_BYTES
                or flat.dtype.name not in self._channel.reducible.get(op, ())
            ):
                result = self._fold_pieces(array.reshape(-1), op, turn)
            else:
                result = np.empty_like(flat)
                for piece in _pieces(flat.nbytes, _PIECE_BYTES, flat.itemsize):
                    result[piece] = turn.run(self._channel.reduce, flat[piece], op)
                result = result.view(array.dtype)
            return result.reshape(array.shape)

    def _fold_pieces(self, flat: Array, op: str, turn: "_Turn") -> Array:
        result = np.empty_like(flat)
        for piece in _pieces(flat.nbytes, _CHUNK_BYTES, flat.itemsize):
            parts = turn.run(self._channel.gather, to_bytes(flat[piece]))
            result[piece] = fold([part.view(flat.dtype) for part in parts], op)
        return result

    def all_gather(self, x: Any, *, timeout: float | None = None) -> list[Array]:
        """The arrays of all workers, in rank order.

        Args:
          x: an array whose dtype and shape are the same on every worker, but for the number of rows, which may be 0,
            and for the width of fixed-width strings. Object arrays may hold bytes and str.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: the workers did not call the same.
          TypeError: `x` holds objects other than bytes and str; the others get Mismatch.
          CollectiveError: see its kinds.
        """
        with _Turn(self, "all_gather", timeout) as turn:
            array = turn.prepare(lambda: as_array(x, "all_gather"))
            rows = f"*,{','.join(map(str, array.shape[1:]))}" if array.ndim else "0-d"
            mine = to_bytes(array)
            calls = turn.compare(f"all_gather {family(array.dtype)} {rows}", describe(array), mine)
            sizes = [call.nbytes for call in calls]
            if max(sizes) <= INLINE:
                parts: Sequence[Bytes] = [call.data for call in calls]
            elif max(sizes) <= _FOLD_BYTES:
                padded = np.zeros(max(sizes), np.uint8)
                padded[: len(mine)] = mine
                parts = [part[:n] for part, n in zip(turn.run(self._channel.gather, padded), sizes, strict=True)]
            else:
                parts = self._gather_pieces(mine, sizes, turn)
            return [from_bytes(part, *parse(call.about)) for part, call in zip(parts, calls, strict=True)]

    def _gather_pieces(self, mine: Bytes, sizes: Sequence[int], turn: "_Turn") -> Sequence[Bytes]:
        pieces = list(_pieces(max(sizes), _PIECE_BYTES // self.size))
        if len(pieces) == 1:
            whole: Sequence[Bytes] = turn.run(self._channel.gather_uneven, mine, sizes)
            return whole
        parts = [np.empty(n, np.uint8) for n in sizes]
        for piece in pieces:
            lengths = [len(part[piece]) for part in parts]
            for part, data in zip(parts, turn.run(self._channel.gather_uneven, mine[piece], lengths), strict=True):
                part[piece] = data
        return parts

    def broadcast(self, x: Any = None, root: int = 0, *, timeout: float | None = None) -> Array:
        """The array of one worker, on all of them.

        Args:
          x: what the root sends; the others need not give anything, its dtype and shape travel with it.
          root: the rank that sends.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: the workers did not name the same root.
          TypeError, ValueError: the root cannot send `x`, or is not a rank; the others get Mismatch.
          CollectiveError: see its kinds.
        """

        def prepare() -> Array | None:
            if isinstance(root, bool) or not isinstance(root, int | np.integer) or not 0 <= root < self.size:
                raise ValueError(f"broadcast: root must be a rank from 0 to {self.size - 1}, got {root!r}")
            if self.rank != root:
                return None
            if x is None:
                raise TypeError("broadcast: the root must give an array, got None")
            return as_array(x, "broadcast")

        with _Turn(self, "broadcast", timeout) as turn:
            array = turn.prepare(prepare)
            mine = np.zeros(0, np.uint8) if array is None else to_bytes(array)
            calls = turn.compare(f"broadcast root={root}", "" if array is None else describe(array), mine)
            sent = calls[root]
            data = sent.data
            if sent.nbytes > INLINE:
                buffer = mine.copy() if array is not None else np.empty(sent.nbytes, np.uint8)
                for piece in _pieces(sent.nbytes, _PIECE_BYTES):
                    buffer[piece] = turn.run(self._channel.broadcast, buffer[piece], root)
                data = buffer
            return from_bytes(data, *parse(sent.about))

    def barrier(self, *, timeout: float | None = None) -> None:
        """Return once every worker has come here.

        Raises:
          Mismatch: another worker called something else.
          CollectiveError: see its kinds.
        """
        with _Turn(self, "barrier", timeout) as turn:
            turn.compare("barrier", "", np.zeros(0, np.uint8))

    def agree(self, values: Sequence[int]) -> "Agreement":
        """Begin to sum integers over all workers, and return at once.

        Agreements are apart from the other calls, so that one may be under way while those are made. They complete in
        the order in which they were posted.

        Args:
          values: as many on every worker, at most `AGREE_VALUES`; their sum must fit into 64 bits.

        Raises:
          ValueError: too many, too large or not integers; the others get Mismatch from `result`.
          Poisoned: the group failed before.
        """
        self._check_open("agree")
        with self._settling:
            number = self._agreements
            self._agreements += 1
            try:
                given = self._agree_values(values)
            except ValueError:
                slots = np.zeros(_AGREE_HEAD + AGREE_VALUES, np.int64)
                slots[4:6] = 1, self.rank
                self._pending.append(Agreement(self, self._post(slots), number, None))
                raise
            n, at = len(given), number % _NUMBER
            rest = [0] * (AGREE_VALUES - n)
            slots = np.array([n, n * n, at, at * at, 0, 0, *given, *rest], np.int64)
            agreement = Agreement(self, self._post(slots), number, n)
            self._pending.append(agreement)
            return agreement

    def _agree_values(self, values: Sequence[int]) -> list[int]:
        given = [int(value) for value in values if isinstance(value, int | np.integer | np.bool_)]
        if len(given) != len(values) or len(given) > AGREE_VALUES:
            raise ValueError(f"agree: needs at most {AGREE_VALUES} integers, got {list(values)!r:.200}")
        limit = (1 << 63) // self.size
        if any(not -limit < value < limit for value in given):
            raise ValueError(f"agree: the sum over {self.size} workers must fit into 64 bits, got {given}")
        return given

    def _post(self, slots: Array) -> Handle:
        try:
            return self._channel.add(slots)
        except ChannelLost as error:
            self._blame("agree", error, None)

    def dup(self, name: str, *, timeout: float | None = None) -> "Collectives":
        """Another group of the same workers, whose calls do not meet those of this one; for another thread.

        Raises:
          Mismatch: the workers did not give the same name.
          CollectiveError: see its kinds.
        """
        with _Turn(self, "dup", timeout) as turn:
            turn.compare(f"dup {name}", "", np.zeros(0, np.uint8))
            self._dups += 1
            try:
                channel = self._channel.dup(f"{self._name}/{name}.{self._dups}", turn.wait.left())
            except ChannelLost as error:
                self._blame("dup", error, None)
            return Collectives(channel, f"{self._name}/{name}", self._timeout, self._party)

    def abort(self, reason: str) -> None:
        """Tell all workers that this one cannot go on. Whatever they wait for raises `Aborted` with the reason.

        May be called from any thread. The group and its dups are used up.
        """
        party = self._party
        if party.failure is None:
            party.fail(Aborted(f"this worker gave up: {reason}", self.rank, reason), _End("aborted", reason))
            party.linger(_LINGER)

    def close(self, timeout: float = 5.0) -> None:
        """Give back connections, threads and memory. Others that still need this worker get `PeerLost`.

        Args:
          timeout: where this process hosts what the others need to end their own calls, how long it stays for them.
        """
        if self._closed:
            return
        self._closed = True
        _open_groups.discard(self)
        broken = self._party.failure is not None
        if self._settling.acquire(timeout=_GLANCE):
            try:
                broken = broken or not all(agreement.done() for agreement in list(self._pending))
            finally:
                self._settling.release()
        else:  # another thread waits for an agreement
            broken = True
        self._party.leave(self._name, self._calls, self._agreements)
        if not self._party.open:
            self._party.linger(min(timeout, _LINGER) if self._party.failure else timeout)
            self._party.end()
        self._channel.close(broken=broken)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort(f"{type(error).__name__}: {error}")
        self.close()

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise FailedPreconditionError(f"{what}: the group {self._name!r} was closed; open another one")
        if self._party.failure is not None:
            raise Poisoned(
                f"{what}: rank {self.rank} cannot use the group {self._name!r}, which failed before: "
                f"{self._party.failure}; open another one"
            )

    def _run(self, start: Callable[..., Handle], *args: Any, what: str, wait: "_Wait", need: "_Need | None") -> Any:
        """The value of an operation, or the error that says why there is none.

        Args:
          start: begins the operation.
          *args: what it takes.
          what: the call, for messages.
          wait: how long.
          need: which operation it is, so that a late worker can be told from one that is waiting too.
        """
        try:
            return self._value(start(*args), what, wait, need)
        except ChannelLost as error:
            self._blame(what, error, need)
        except CollectiveError:
            raise
        except BaseException as error:  # interrupted: what is under way has an answer that belongs to nobody now
            text = f"{what}: rank {self.rank} was interrupted by {type(error).__name__}"
            self._party.fail(Aborted(text, self.rank), _End("aborted", text))
            raise

    def _value(self, handle: Handle, what: str, wait: "_Wait", need: "_Need | None") -> Any:
        if handle.wait(min(_GLANCE, wait.left())):
            return handle.value()
        self._party.waits(need)
        while not handle.wait(min(_GLANCE, wait.left())):
            if self._party.failure is not None:  # found by another thread
                self._check_open(what)
            found = self._party.culprit(need)
            if found is not None:
                self._fail(what, *found)
            if wait.left() <= 0:
                self._give_up(what, wait, need)
        return handle.value()

    def _blame(self, what: str, error: ChannelLost, need: "_Need | None") -> NoReturn:
        """The engine says that a connection is gone: find out whose, for a short time."""
        if self._party.failure is not None:
            self._check_open(what)
        found = None
        deadline = time.monotonic() + _BLAME
        while found is None and time.monotonic() < deadline:
            try:
                found = self._party.culprit(need)
            except ChannelLost:
                found = (self._party.dead() or self._party.board_host, _End("lost"))
            if found is None:
                time.sleep(0.01)
        if found is None:
            found = (1 - self.rank if self.size == 2 else None, _End("lost"))
        rank, end = found
        try:
            self._fail(what, rank, end if end.reason else _End(end.state, f"the engine says: {error}", end.ranks))
        except CollectiveError as failure:
            raise failure from error

    def _fail(self, what: str, rank: int | None, end: "_End") -> NoReturn:
        who = "a worker" if rank is None else f"rank {rank}"
        text = f": {end.reason}" if end.reason else ""
        failure: CollectiveError
        if end.state == "timeout" and end.ranks and self.rank not in end.ranks:
            late = ", ".join(map(str, end.ranks))
            failure = CollectiveTimeout(f"{what}: {who} gave up waiting for rank {late}{text}", end.ranks)
        elif end.state == "lost":
            failure = PeerLost(f"{what}: {who} is gone while rank {self.rank} waited for it{text}", rank)
            end = _End("lost", end.reason, () if rank is None else (rank,))
        else:
            failure = Aborted(f"{what}: {who} gave up while rank {self.rank} waited for it{text}", rank, end.reason)
            end = _End("told", end.reason, () if rank is None else (rank,))
        self._party.fail(failure, end)
        raise failure

    def _give_up(self, what: str, wait: "_Wait", need: "_Need | None") -> NoReturn:
        late, notes = self._party.late(need)
        who = f"rank{'s' * (len(late) > 1)} {', '.join(map(str, late))}" if late else "the others"
        text = f"{what}: rank {self.rank} waited {wait.seconds:g} s for {who}{notes}"
        failure = CollectiveTimeout(
            f"{text}; the group {self._name!r} cannot be used any more. Give a longer timeout if they may be that late",
            late,
        )
        self._party.fail(failure, _End("timeout", text, late))
        raise failure

    def _settle(self, agreement: "Agreement", wait: "_Wait | None") -> bool:
        """Complete the pending agreements up to this one, in order; without `wait` those that are done by now."""
        while self._pending and not agreement.settled:
            first = self._pending[0]
            if wait is None:
                try:
                    if not first.handle.wait(0):
                        return False
                except ChannelLost:
                    return True  # `result` says what is wrong
                total = first.handle.value()
            else:
                self._check_open("agree")
                need = _Need("agree", self._name, first.number)
                total = self._run(lambda handle: handle, first.handle, what="agree", wait=wait, need=need)
            self._pending.popleft()
            first.settle(total, self.size, self.rank)
        return True


_open_groups: set[Collectives] = set()  # also those that nobody refers to any more when the process ends


def _close_all() -> None:
    """A process that ends says so, for engines where it would otherwise seem to be just late."""
    for group in list(_open_groups):
        with suppress(CollectiveError):
            group.close(timeout=_LINGER)


class Agreement:
    """A sum of integers over all workers, under way; made by `Collectives.agree`."""

    __slots__ = ("_count", "_error", "_group", "_values", "handle", "number", "settled")

    def __init__(self, group: Collectives, handle: Handle, number: int, count: int | None) -> None:
        self._group, self.handle, self.number, self._count = group, handle, number, count
        self._values: list[int] = []
        self._error: Mismatch | None = None
        self.settled = False

    def done(self) -> bool:
        """Whether `result` returns, or raises, without waiting."""
        if self.settled:
            return True
        if not self._group._settling.acquire(blocking=False):
            return False
        try:
            return self._group._settle(self, None)
        finally:
            self._group._settling.release()

    def result(self, timeout: float | None = None) -> list[int]:
        """The sums, the same on every worker; all agreements posted before are completed first.

        Args:
          timeout: seconds to wait, from now.

        Raises:
          Mismatch: the workers did not give the same number of values; further agreements are not harmed.
          CollectiveError: see its kinds.
        """
        if not self.settled:
            group = self._group
            with group._settling:
                group._settle(self, None)  # it is there already where the group looks ahead far enough
                if not self.settled:
                    group._settle(self, _Wait(group.timeout if timeout is None else timeout))
        if self._error is not None:
            raise self._error
        return list(self._values)

    def settle(self, total: Array, size: int, rank: int) -> None:
        """Take the sums that arrived."""
        self.settled = True
        given, squares, number, number_squares, refusals, refused, *sums = total.tolist()
        count = self._count or 0
        at = self.number % _NUMBER
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
            self._error = Mismatch(f"agree: rank {rank} is at agreement {self.number}, others are not")
        else:
            self._values = sums[:count]


def _pieces(total: int, limit: int, item: int = 1) -> Iterator[slice]:
    """Slices of `total` bytes of items, each of at most `limit` bytes but at least one item."""
    step = max(1, limit // item)
    for at in range(0, total // item, step):
        yield slice(at, at + step)


class _Wait:
    """A time that runs."""

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not seconds >= 0:
            raise ValueError(f"timeout must be a number of seconds, at least 0, got {seconds!r}")
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())


class _Compared:
    """What one worker called, with its bytes if they came along."""

    __slots__ = ("about", "data", "nbytes")

    def __init__(self, call: Call) -> None:
        self.about, self.nbytes = call.about, call.nbytes
        self.data: Bytes = np.frombuffer(call.inline, np.uint8)


class _Turn:
    """One call on a group, from the comparison to the result; only one at a time."""

    __slots__ = ("_group", "_number", "_what", "wait")

    def __init__(self, group: Collectives, what: str, timeout: float | None) -> None:
        self._group, self._what = group, what
        self.wait = _Wait(group.timeout if timeout is None else timeout)
        self._number = group._calls

    def __enter__(self) -> Self:
        group = self._group
        group._check_open(self._what)
        if not group._lock.acquire(blocking=False):
            raise FailedPreconditionError(
                f"{self._what}: the group {group.name!r} serves one thread at a time, and another one is in a call; "
                "make a group for each thread with dup"
            )
        self._number = group._calls
        group._calls += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._group._lock.release()

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

    def compare(self, same: str, about: str, mine: Bytes) -> list[_Compared]:
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
                f"{table(calls)}\nNothing was sent, and the group {self._group.name!r} can be used; make the calls equal"
            )
        return [_Compared(call) for call in calls]

    def _exchange(self, call: Call) -> Sequence[Bytes]:
        rows: Sequence[Bytes] = self.run(self._group._channel.gather, call.encode())
        return rows

    def run(self, start: Callable[..., Handle], *args: Any) -> Any:
        """The value of an operation of this call."""
        need = _Need("call", self._group.name, self._number)
        return self._group._run(start, *args, what=self._what, wait=self.wait, need=need)


@dataclass(frozen=True, slots=True)
class _Need:
    """Which operation a worker waits in: the number of a call or of an agreement on a group."""

    kind: str
    group: str
    number: int


@dataclass(frozen=True, slots=True)
class _End:
    """Why a worker does not go on.

    Args:
      state: `aborted` by its own word, `told` so by another one, `timeout` after waiting, or `lost` another one.
      reason: for messages.
      ranks: the other one, or those that it waited for.
    """

    state: str
    reason: str = ""
    ranks: tuple[int, ...] = ()


class _Party:
    """What all groups of one origin share: who takes part, whether it failed, and the notice of this worker.

    A notice is a JSON object: `at` says in which operations the worker waits or waited, `left` how many calls and
    agreements it made on groups it closed, `end` why it does not go on, `gone` that it closed all.
    """

    def __init__(self, channel: Channel) -> None:
        self._board: Board = channel.board
        self.rank, self.size = channel.rank, channel.size
        self.board_host = channel.board.host
        self.seat = Seat.mine()
        self.seats: list[Seat] = []
        self.failure: CollectiveError | None = None
        self.open = 0
        self._lock = threading.Lock()
        self._notice: dict[str, Any] = {"at": {}, "left": {}}

    def _write(self) -> None:
        with suppress(ChannelLost):  # it only helps the others to say who is to blame
            self._board.write(json.dumps(self._notice))

    def waits(self, need: _Need | None) -> None:
        """Tell the others that this worker has come, and waits."""
        if need is not None:
            with self._lock:
                self._notice["at"][f"{need.kind} {need.group}"] = need.number
                self._write()

    def fail(self, failure: CollectiveError, end: _End) -> None:
        """The first failure counts; the others are told."""
        with self._lock:
            if self.failure is None:
                self.failure = failure
                self._notice["end"] = [end.state, end.reason[:500], end.ranks]
                self._write()

    def leave(self, group: str, calls: int, agreements: int) -> None:
        """This worker closed a group after so many calls."""
        with self._lock:
            self.open -= 1
            self._notice["left"][f"call {group}"] = calls
            self._notice["left"][f"agree {group}"] = agreements
            self._notice["gone"] = not self.open
            self._write()

    def linger(self, seconds: float) -> None:
        """Where this process hosts the board, stay until the others do not need it any more."""
        if self.board_host != self.rank:
            return
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            notices = self._read()
            dead = [r for r in range(self.size) if self._state(r) == "dead"]
            if all(r in dead or notices.get(r, {}).get("gone") for r in range(self.size) if r != self.rank):
                return
            time.sleep(0.01)

    def end(self) -> None:
        """The last group is closed."""
        self._board.end()

    def _read(self) -> dict[int, dict[str, Any]]:
        return {rank: json.loads(text) for rank, text in self._board.read().items() if text}

    def _state(self, rank: int) -> str:
        return self.seat.state(self.seats[rank]) if self.seats and rank != self.rank else "alive"

    def dead(self) -> int | None:
        """The first worker on this machine whose process has ended."""
        return next(self._all_dead(), None)

    def _all_dead(self) -> Iterator[int]:
        return (rank for rank in range(self.size) if self._state(rank) == "dead")

    def culprit(self, need: _Need | None) -> tuple[int | None, _End] | None:
        """The worker because of which waiting is in vain, and why; None while there is hope.

        Raises:
          ChannelLost: the board cannot be read.
        """
        lost = self.dead()
        try:
            notices = self._read()
        except ChannelLost:
            if lost is not None:
                return lost, _End("lost")
            raise
        ends: dict[int, _End] = {}
        for rank, notice in notices.items():
            if "end" in notice:
                state, reason, ranks = notice["end"]
                ends[rank] = _End(state, reason, tuple(ranks))
        # A worker that said why it goes knows best; then what can be seen; then what others have seen.
        for state in ("aborted", "timeout", "told"):
            for rank, end in ends.items():
                if end.state == state:
                    return (end.ranks[0], _End("aborted", end.reason)) if state == "told" and end.ranks else (rank, end)
        # One that ended in order took part in what it called before; its share may be on its way.
        key = "" if need is None else f"{need.kind} {need.group}"
        number = 0 if need is None else need.number
        for rank in self._all_dead():
            if notices.get(rank, {"left": {}})["left"].get(key, 0) <= number:
                return rank, _End("lost")
        for end in ends.values():
            if end.state == "lost":
                return (end.ranks[0] if end.ranks else None), _End("lost", end.reason)
        if need is not None:
            for rank, notice in notices.items():
                if notice["left"].get(f"{need.kind} {need.group}", need.number + 1) <= need.number:
                    return rank, _End("lost", "it closed the group")
        return None

    def late(self, need: _Need | None) -> tuple[tuple[int, ...], str]:
        """The workers that are not known to wait in the same operation, and what can be seen of them."""
        try:
            notices = self._read()
        except ChannelLost:
            notices = {}
        key = "" if need is None else f"{need.kind} {need.group}"
        number = 0 if need is None else need.number
        others = [rank for rank in range(self.size) if rank != self.rank]
        late = [rank for rank in others if notices.get(rank, {"at": {}})["at"].get(key, -1) < number]
        stopped = [rank for rank in others if self._state(rank) == "stopped"]
        notes = f" (the process of rank {', '.join(map(str, stopped))} is stopped)" if stopped else ""
        return tuple(stopped or late), notes
