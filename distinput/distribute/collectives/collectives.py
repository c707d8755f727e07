# SPDX-License-Identifier: Apache-2.0
"""Calls in which all workers of a job take part: NumPy in, NumPy out, on any engine.

`Collectives` is the same on all engines, which only move bytes (`channel.Channel`). It compares calls before it sends
anything of their sizes (`call_sequence`), reduces in rank order where the engine's own reduction would not give the same
bits, and finds the worker at fault when a wait does not end (`operations`, `membership`). It never waits longer than its
timeout.
"""

import atexit
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np

from distinput.distribute.collectives.agreements import Agreement, Agreements
from distinput.distribute.collectives.call_sequence import CallSequence, CollectiveCall, DeviceCalls
from distinput.distribute.collectives.channel import (
    INLINE,
    Array,
    Bytes,
    Channel,
    ChannelLost,
    Purpose,
    as_array,
    check_reducible,
    describe,
    family,
    fold,
    from_bytes,
    native_view,
    parse,
    to_bytes,
)
from distinput.distribute.collectives.membership import (
    FailureReport,
    Membership,
    OperationId,
    Operations,
    ProcessIdentity,
)
from distinput.errors import Aborted, CollectiveError

_FOLD_BYTES = 4096  # up to here, gathering and folding is as fast as the engine's reduction, and bit-equal everywhere
# Larger arrays are folded in pieces, so that it takes the memory of `size` pieces, not `size` arrays.
_CHUNK_BYTES = 1 << 22
_PIECE_BYTES = 1 << 30  # more in one operation, over all workers, exceeds the 32-bit sizes of some engines
_STAY_SECONDS = 1.0  # after an abort, the host of the status board stays so long for the others to read it


class Collectives:
    """The workers of a job as seen by one of them.

    Every worker makes the same calls in the same order. Before anything is computed the workers compare what they call, and
    from where in the program. One thread at a time makes calls on a group; a second thread gets a group of its own by `dup`.
    After any error but `Mismatch` the group cannot be used any more, nor can those that were made from it by `dup` or that
    it was made from: each further call raises `Poisoned` at once.

    A worker that leaves the `with` block by an exception tells the others, which raise `Aborted`.

    Args:
      channel: the engine's connection to the other workers.
      name: shown in messages.
      timeout: seconds that a call waits for the others, unless it is given its own.
      membership: that of the group from which this one is made by `dup`.

    Source: the meaning is that of MPI's collectives; the names are those of `tf.distribute.ReplicaContext` where it has
    them.
    """

    def __init__(self, channel: Channel, name: str, timeout: float, membership: Membership | None = None) -> None:
        self._membership = membership or Membership(channel)
        self._channel = channel
        self._operations = Operations(channel, self._membership, name, timeout)
        self._sequence = CallSequence(self._operations)
        self._agreements = Agreements(self._operations)
        self._dups = 0
        self._membership.record_start(OperationId("call", name, -1))
        self._membership.record_start(OperationId("agree", name, -1))
        if membership is None:
            mine = self._membership.own_process.encode()
            deadline = self._operations.deadline(None)
            rows = self._operations.run(channel.all_gather, mine, what="start", deadline=deadline, operation=None)
            self._membership.processes = [ProcessIdentity.decode(row) for row in rows]
        self._membership.open_groups += 1
        if not _open_groups:
            atexit.unregister(_close_all)
            # Now, so that it runs before the exit handlers of the engine, which was loaded earlier.
            atexit.register(_close_all)
        _open_groups.add(self)

    @property
    def name(self) -> str:
        """The name of the group; `dup` joins the name of its origin and the new one by a slash."""
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
        machine = self._membership.own_process.machine
        return sum(process.machine == machine for process in self._membership.processes[: self.rank])

    @property
    def local_size(self) -> int:
        """The number of workers on this machine."""
        machine = self._membership.own_process.machine
        return sum(process.machine == machine for process in self._membership.processes)

    @property
    def timeout(self) -> float:
        """Seconds that a call waits for the others, unless it is given its own timeout."""
        return self._operations.timeout

    def __repr__(self) -> str:
        state = "closed" if self._operations.closed else "failed" if self._membership.failure else "open"
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
        """Reduce the arrays of all workers element by element; the result has the same bits on every worker.

        Args:
          x: numbers of the same dtype and shape on every worker; bool for min and max.
          op: "sum", "prod", "min" or "max"; integers wrap around, and NaN propagates.
          deterministic: reduce in rank order, ((0 op 1) op 2) ..., so that the bits are the same on every engine and in every
            run. Arrays of up to 4 KB, and dtypes that the engine does not support, are always reduced so.
          name: what the call is about, the same on every worker. The workers compare it instead of the line of the program
            that makes the call.
          purpose: what the caller makes the call for, compared, too.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: the workers made different calls.
          TypeError, ValueError: `x` cannot be reduced by `op`; the others get Mismatch.
          CollectiveError: see its kinds.
        """

        def prepare() -> Array:
            array = as_array(x, "all_reduce")
            check_reducible(array.dtype, op)
            return array

        with self._sequence.begin("all_reduce", timeout, name, purpose) as call:
            array = call.prepare(prepare)
            about = describe(array)
            how = f"{op} deterministic" if deterministic else op
            peers = call.compare(f"all_reduce {how} {about}", "", to_bytes(array))
            if peers[0].nbytes <= INLINE:
                return fold([from_bytes(peer.data, array.dtype, array.shape) for peer in peers], op)
            flat = native_view(array.reshape(-1), op)
            if (
                deterministic
                or flat.nbytes <= _FOLD_BYTES
                or flat.dtype.name not in self._channel.reducible.get(op, ())
            ):
                result = self._fold_pieces(array.reshape(-1), op, call)
            else:
                result = np.empty_like(flat)
                for piece in _pieces(flat.nbytes, _PIECE_BYTES, flat.itemsize):
                    result[piece] = call.run(self._channel.all_reduce, flat[piece], op)
                result = result.view(array.dtype)
            return result.reshape(array.shape)

    def _fold_pieces(self, flat: Array, op: str, call: CollectiveCall) -> Array:
        result = np.empty_like(flat)
        for piece in _pieces(flat.nbytes, _CHUNK_BYTES, flat.itemsize):
            parts = call.run(self._channel.all_gather, to_bytes(flat[piece]))
            result[piece] = fold([part.view(flat.dtype) for part in parts], op)
        return result

    def all_gather(
        self, x: Any, *, name: str = "", purpose: Purpose | None = None, timeout: float | None = None
    ) -> list[Array]:
        """Gather the arrays of all workers, in rank order.

        Args:
          x: an array whose dtype and shape are the same on every worker, except for the number of rows, which may be 0, and the
            width of fixed-width strings. Object arrays may hold bytes and str.
          name: what the call is about, the same on every worker. The workers compare it instead of the line of the program
            that makes the call.
          purpose: what the caller makes the call for, compared, too.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: the workers made different calls.
          TypeError: `x` holds objects other than bytes and str; the others get Mismatch.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("all_gather", timeout, name, purpose) as call:
            array = call.prepare(lambda: as_array(x, "all_gather"))
            rows = f"*,{','.join(map(str, array.shape[1:]))}" if array.ndim else "0-d"
            mine = to_bytes(array)
            peers = call.compare(f"all_gather {family(array.dtype)} {rows}", describe(array), mine)
            sizes = [peer.nbytes for peer in peers]
            if max(sizes) <= INLINE:
                parts: Sequence[Bytes] = [peer.data for peer in peers]
            elif max(sizes) <= _FOLD_BYTES:
                padded = np.zeros(max(sizes), np.uint8)
                padded[: len(mine)] = mine
                parts = [part[:n] for part, n in zip(call.run(self._channel.all_gather, padded), sizes, strict=True)]
            else:
                parts = self._gather_pieces(mine, sizes, call)
            return [from_bytes(part, *parse(peer.about)) for part, peer in zip(parts, peers, strict=True)]

    def _gather_pieces(self, mine: Bytes, sizes: Sequence[int], call: CollectiveCall) -> Sequence[Bytes]:
        pieces = list(_pieces(max(sizes), _PIECE_BYTES // self.size))
        if len(pieces) == 1:
            whole: Sequence[Bytes] = call.run(self._channel.all_gather_uneven, mine, sizes)
            return whole
        parts = [np.empty(n, np.uint8) for n in sizes]
        for piece in pieces:
            lengths = [len(part[piece]) for part in parts]
            for part, data in zip(parts, call.run(self._channel.all_gather_uneven, mine[piece], lengths), strict=True):
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
        """Send the array of one worker to all.

        Args:
          x: what the root sends; the others need not pass anything, since dtype and shape travel along.
          root: the rank that sends.
          name: what the call is about, the same on every worker. The workers compare it instead of the line of the program
            that makes the call.
          purpose: what the caller makes the call for, compared, too.
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

        with self._sequence.begin("broadcast", timeout, name, purpose) as call:
            array = call.prepare(prepare)
            mine = np.zeros(0, np.uint8) if array is None else to_bytes(array)
            peers = call.compare(f"broadcast root={root}", "" if array is None else describe(array), mine)
            sent = peers[root]
            data = sent.data
            if sent.nbytes > INLINE:
                buffer = mine.copy() if array is not None else np.empty(sent.nbytes, np.uint8)
                for piece in _pieces(sent.nbytes, _PIECE_BYTES):
                    buffer[piece] = call.run(self._channel.broadcast, buffer[piece], root)
                data = buffer
            return from_bytes(data, *parse(sent.about))

    def barrier(self, *, name: str = "", timeout: float | None = None) -> None:
        """Return once every worker has called this.

        Args:
          name: as in `all_reduce`.
          timeout: seconds to wait for the others.

        Raises:
          Mismatch: another worker called something else.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("barrier", timeout, name) as call:
            call.compare("barrier", "", np.zeros(0, np.uint8))

    def agree(self, values: Sequence[int], about: str = "") -> Agreement:
        """Start to sum integers over all workers, and return at once.

        Agreements are independent of the other calls, which may be made while one is under way. They complete in the order
        in which they were posted.

        Args:
          values: equally many on every worker, at most `AGREE_VALUES`; their sums must fit into 64 bits.
          about: what the agreement is about, the same on every worker.

        Raises:
          ValueError: too many, too large or not integers; the others get Mismatch from `result`.
          Poisoned: the group failed before.
        """
        return self._agreements.post(values, about)

    def dup(self, name: str, *, timeout: float | None = None) -> "Collectives":
        """Another group of the same workers, whose calls do not interfere with those of this one; for another thread.

        Raises:
          Mismatch: the workers did not give the same name.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("dup", timeout) as call:
            call.compare(f"dup {name}", "", np.zeros(0, np.uint8))
            self._dups += 1
            try:
                channel = self._channel.dup(f"{self.name}/{name}.{self._dups}", call.deadline.remaining())
            except ChannelLost as error:
                self._operations.raise_loss("dup", error, None)
            return Collectives(channel, f"{self.name}/{name}", self.timeout, self._membership)

    def on_devices(self, ops: Any, device: Any) -> DeviceCalls | None:
        """Calls on arrays that are on devices, which are calls of this group like all others; None if the engine has none.

        Args:
          ops: the library of the arrays, an `ArrayOps`.
          device: this worker's device.
        """
        find = getattr(self._channel, "on_devices", None)
        operations = None if find is None else find(ops, device)
        return None if operations is None else DeviceCalls(self._sequence, operations)

    def announce(self, text: str) -> None:
        """Tell all workers something that they may look at whenever they like; it replaces what was told before."""
        self._membership.publish_notice(text)

    def announced(self) -> dict[int, str]:
        """What the other workers have told by `announce`, by rank.

        Raises:
          ChannelLost: they cannot be reached.
        """
        return self._membership.notices()

    def departed(self) -> set[int]:
        """The workers that have left the job, as far as is known."""
        return self._membership.departed()

    def abort(self, reason: str) -> None:
        """Tell all workers that this one cannot go on. Whatever they wait for raises `Aborted` with the reason.

        May be called from any thread. The group and those made by `dup` cannot be used any more.
        """
        membership = self._membership
        if membership.failure is None:
            membership.fail(
                Aborted(f"this worker gave up: {reason}", self.rank, reason), FailureReport("aborted", reason)
            )
            membership.wait_until_others_left(_STAY_SECONDS)

    def close(self, timeout: float = 5.0) -> None:
        """Release connections, threads and memory. Workers that still need this one raise `PeerLost`.

        Args:
          timeout: if this process hosts what the others need to complete their own calls, it stays for them at most so long.
        """
        if self._operations.closed:
            return
        self._operations.closed = True
        _open_groups.discard(self)
        done = self._agreements.close()
        self._membership.close_group(self.name, self._sequence.count, self._agreements.count)
        if not self._membership.open_groups:
            self._membership.wait_until_others_left(
                min(timeout, _STAY_SECONDS) if self._membership.failure else timeout
            )
            self._membership.close()
        self._channel.close(broken=not done or self._membership.failure is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.abort(f"{type(error).__name__}: {error}")
        self.close()


_open_groups: set[Collectives] = set()  # also those that nothing refers to any more when the process ends


def _close_all() -> None:
    """Say that this process ends, for engines on which it would otherwise only seem to be late."""
    for group in list(_open_groups):
        with suppress(CollectiveError):
            group.close(timeout=_STAY_SECONDS)


def _pieces(total: int, limit: int, item: int = 1) -> Iterator[slice]:
    """Slices of items that have `total` bytes, each slice of at most `limit` bytes but at least one item."""
    step = max(1, limit // item)
    for at in range(0, total // item, step):
        yield slice(at, at + step)
