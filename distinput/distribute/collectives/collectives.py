# SPDX-License-Identifier: Apache-2.0
"""Calls in which all workers of a job take part: NumPy in, NumPy out, on any engine.

`Collectives` is the same on all engines, which only move bytes (`channel.Channel`). It compares the calls before
anything of their sizes is sent (`turn`), folds in rank order where the engine's own reduction would not give the same
bits, and finds out who is to blame when a wait does not end (`operations`, `party`). It never waits longer than its time.
"""

import atexit
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np

from distinput.distribute.collectives.agreements import Agreement, Agreements
from distinput.distribute.collectives.call import INLINE, Purpose
from distinput.distribute.collectives.channel import Array, Bytes, Channel
from distinput.distribute.collectives.failures import ChannelLost
from distinput.distribute.collectives.fold import check_reducible, fold, native_view
from distinput.distribute.collectives.operations import Operations
from distinput.distribute.collectives.party import End, Need, Party
from distinput.distribute.collectives.seat import Seat
from distinput.distribute.collectives.turn import Turn, Turns
from distinput.distribute.collectives.wire import as_array, describe, family, from_bytes, parse, to_bytes
from distinput.errors import Aborted, CollectiveError

__all__ = ["Collectives"]

_FOLD_BYTES = 4096  # up to here gathering and folding is as quick as the engine's reduction, and bit-equal everywhere
_CHUNK_BYTES = (
    1 << 22
)  # larger arrays are folded in pieces, so that it takes `size` pieces of memory and not `size` arrays
_PIECE_BYTES = 1 << 30  # more in one operation, over all workers, is beyond the 32-bit sizes of some engines
_LINGER = 1.0  # seconds that the host of the board stays, after abort, for the others to read it


class Collectives:
    """The workers of a job as seen by one of them.

    Every worker makes the same calls in the same order. What a call is, and whether it is made where it was made before, is
    compared before anything is computed. Calls on one group are made by one thread; a second thread gets
    its own group by `dup`. After any error but `Mismatch` the group, and all that were dup'ed from it or share its
    origin, is used up: each further call raises `Poisoned` at once.

    Leaving a `with` block by an exception tells the others, who get `Aborted`.

    Args:
      channel: what the engine offers.
      name: shown in messages.
      timeout: seconds that a call waits for the others, unless it is given its own.
      party: the workers, as the group knows them from which this one is dup'ed.

    Source: the meaning is that of MPI's collectives; the names are those of `tf.distribute.ReplicaContext` where it has
    them.
    """

    def __init__(self, channel: Channel, name: str, timeout: float, party: Party | None = None) -> None:
        self._party = party or Party(channel)
        self._channel = channel
        self._operations = Operations(channel, self._party, name, timeout)
        self._turns = Turns(self._operations)
        self._agreements = Agreements(self._operations)
        self._dups = 0
        self._party.begins(Need("call", name, -1))
        self._party.begins(Need("agree", name, -1))
        if party is None:
            wait = self._operations.wait(None)
            seats = self._operations.run(channel.gather, self._party.seat.encode(), what="start", wait=wait, need=None)
            self._party.seats = [Seat.decode(seat) for seat in seats]
        self._party.open += 1
        if not _open_groups:
            atexit.unregister(_close_all)
            atexit.register(_close_all)  # now, so that it runs before the ends of the engine, which was loaded before
        _open_groups.add(self)

    @property
    def name(self) -> str:
        """The name that was given; a dup's is that of its origin, a slash, and its own."""
        return self._operations.name

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
        return self._operations.timeout

    def __repr__(self) -> str:
        state = "closed" if self._operations.closed else "failed" if self._party.failure else "open"
        return f"<Collectives {self.name!r} rank {self.rank} of {self.size}, {state}>"

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        *,
        deterministic: bool = False,
        name: str = "",
        purpose: Purpose | None = None,
        timeout: float | None = None,
    ) -> Array:
        """One array from those of all workers, element by element; the same bits on every worker.

        Args:
          x: numbers, of the same dtype and shape on every worker; bool for min and max.
          op: "sum", "prod", "min" or "max"; integers wrap around, NaN wins.
          deterministic: fold in rank order, ((0 op 1) op 2) ..., so that the bits are the same on every engine and in
            every run. It is what happens anyway for up to 4 KB and for dtypes the engine does not know.
          name: what the call is about, the same on every worker. The workers compare it instead of the place in the program
            where they make the call.
          purpose: what the caller makes it for, compared too.
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

        with self._turns.begin("all_reduce", timeout, name, purpose) as turn:
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

    def _fold_pieces(self, flat: Array, op: str, turn: Turn) -> Array:
        result = np.empty_like(flat)
        for piece in _pieces(flat.nbytes, _CHUNK_BYTES, flat.itemsize):
            parts = turn.run(self._channel.gather, to_bytes(flat[piece]))
            result[piece] = fold([part.view(flat.dtype) for part in parts], op)
        return result

    def all_gather(
        self, x: Any, *, name: str = "", purpose: Purpose | None = None, timeout: float | None = None
    ) -> list[Array]:
        """The arrays of all workers, in rank order.

        Args:
          x: an array whose dtype and shape are the same on every worker, but for the number of rows, which may be 0,
            and for the width of fixed-width strings. Object arrays may hold bytes and str.
          name: what the call is about, the same on every worker. The workers compare it instead of the place in the program
            where they make the call.
          purpose: what the caller makes it for, compared too.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: the workers did not call the same.
          TypeError: `x` holds objects other than bytes and str; the others get Mismatch.
          CollectiveError: see its kinds.
        """
        with self._turns.begin("all_gather", timeout, name, purpose) as turn:
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

    def _gather_pieces(self, mine: Bytes, sizes: Sequence[int], turn: Turn) -> Sequence[Bytes]:
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

    def broadcast(
        self,
        x: Any = None,
        root: int = 0,
        *,
        name: str = "",
        purpose: Purpose | None = None,
        timeout: float | None = None,
    ) -> Array:
        """The array of one worker, on all of them.

        Args:
          x: what the root sends; the others need not give anything, its dtype and shape travel with it.
          root: the rank that sends.
          name: what the call is about, the same on every worker. The workers compare it instead of the place in the program
            where they make the call.
          purpose: what the caller makes it for, compared too.
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

        with self._turns.begin("broadcast", timeout, name, purpose) as turn:
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

    def barrier(self, *, name: str = "", timeout: float | None = None) -> None:
        """Return once every worker has come here.

        Args:
          name: as in `all_reduce`.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: another worker called something else.
          CollectiveError: see its kinds.
        """
        with self._turns.begin("barrier", timeout, name) as turn:
            turn.compare("barrier", "", np.zeros(0, np.uint8))

    def agree(self, values: Sequence[int], about: str = "") -> Agreement:
        """Begin to sum integers over all workers, and return at once.

        Agreements are apart from the other calls, so that one may be under way while those are made. They complete in
        the order in which they were posted.

        Args:
          values: as many on every worker, at most `AGREE_VALUES`; their sum must fit into 64 bits.
          about: what it is about, the same on every worker.

        Raises:
          ValueError: too many, too large or not integers; the others get Mismatch from `result`.
          Poisoned: the group failed before.
        """
        return self._agreements.post(values, about)

    def dup(self, name: str, *, timeout: float | None = None) -> "Collectives":
        """Another group of the same workers, whose calls do not meet those of this one; for another thread.

        Raises:
          Mismatch: the workers did not give the same name.
          CollectiveError: see its kinds.
        """
        with self._turns.begin("dup", timeout) as turn:
            turn.compare(f"dup {name}", "", np.zeros(0, np.uint8))
            self._dups += 1
            try:
                channel = self._channel.dup(f"{self.name}/{name}.{self._dups}", turn.wait.left())
            except ChannelLost as error:
                self._operations.blame("dup", error, None)
            return Collectives(channel, f"{self.name}/{name}", self.timeout, self._party)

    def abort(self, reason: str) -> None:
        """Tell all workers that this one cannot go on. Whatever they wait for raises `Aborted` with the reason.

        May be called from any thread. The group and its dups are used up.
        """
        party = self._party
        if party.failure is None:
            party.fail(Aborted(f"this worker gave up: {reason}", self.rank, reason), End("aborted", reason))
            party.linger(_LINGER)

    def close(self, timeout: float = 5.0) -> None:
        """Give back connections, threads and memory. Others that still need this worker get `PeerLost`.

        Args:
          timeout: where this process hosts what the others need to end their own calls, how long it stays for them.
        """
        if self._operations.closed:
            return
        self._operations.closed = True
        _open_groups.discard(self)
        done = self._agreements.close()
        self._party.leave(self.name, self._turns.count, self._agreements.count)
        if not self._party.open:
            self._party.linger(min(timeout, _LINGER) if self._party.failure else timeout)
            self._party.end()
        self._channel.close(broken=not done or self._party.failure is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort(f"{type(error).__name__}: {error}")
        self.close()


_open_groups: set[Collectives] = set()  # also those that nobody refers to any more when the process ends


def _close_all() -> None:
    """A process that ends says so, for engines where it would otherwise seem to be just late."""
    for group in list(_open_groups):
        with suppress(CollectiveError):
            group.close(timeout=_LINGER)


def _pieces(total: int, limit: int, item: int = 1) -> Iterator[slice]:
    """Slices of `total` bytes of items, each of at most `limit` bytes but at least one item."""
    step = max(1, limit // item)
    for at in range(0, total // item, step):
        yield slice(at, at + step)
