# SPDX-License-Identifier: Apache-2.0
"""Replicas in several processes, with equal copies of every variable, and reductions over all of them."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress
from math import prod
from typing import Any, Self

import numpy as np

from distinput.cluster.resolve import resolve, resolver_of
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.collectives.call_sequence import DeviceCalls
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.collectives.peers import OpenPeers
from distinput.distribute.core.array_arithmetic import (
    NUMPY,
    ArrayOps,
    Bands,
    ReduceOp,
    added_as,
    added_as_integers,
    check_alike,
    check_gather,
    check_numbers,
    check_sums,
    exact_rows,
    exact_total,
    gather_parts,
    reduce_parts,
    row_sums,
    total_of_rows,
)
from distinput.distribute.core.options import CommunicationImplementation, CommunicationOptions
from distinput.distribute.core.replica_reducer import GATHER, REDUCE, LocalReducer, ReplicaCall
from distinput.distribute.core.replicas import CallDescription, Replicas
from distinput.distribute.core.strategy import Strategy
from distinput.distribute.devices import chosen_devices
from distinput.distribute.engines import engine_runs, find_engine, open_collectives
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.leaves import dtype_code

# ----------------------------------------------------------------------------
# Reductions and concatenations over the replicas of several workers.
#
# Every worker checks the same exchanged facts, so all workers raise the same error. Small values are gathered and added in
# replica order on every worker; large ones are added by the engine's own all-reduce.
#
# Values that are on devices stay there. The workers first exchange what they have: numbers of values, shapes and dtypes.
# These facts pass the host; every worker checks all of them, before anything of their sizes is sent. Then the engine moves
# the arrays.
# ----------------------------------------------------------------------------


_LARGE = 64 * 1024
"""Arrays of at least this many bytes are added by the engine, not gathered and added in replica order."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of an array on another worker.

    Args:
      shape: its shape.
      dtype: the name of its dtype.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class DeviceExchange:
    """Values of replicas of several workers.

    Args:
      peers: all workers.
      calls: what moves arrays between them.
      ops: the library of the arrays.
      device: the first one of this worker, which results are on.
    """

    def __init__(self, peers: OpenPeers, calls: DeviceCalls, ops: ArrayOps, device: Any) -> None:
        self._peers, self._calls, self._ops, self._device = peers, calls, ops, device
        self.kind = calls.kind

    def reduce(
        self, description: CallDescription, op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]
    ) -> Any:
        """The sum or mean over all replicas; see `Strategy.reduce`.

        Args:
          description: the call.
          op: SUM or MEAN.
          parts: the values of this worker's replicas.
          axis: None, an int or a tuple of ints.
          there: which of them are data.
        """
        ops = self._ops
        values: list[Any] = []
        counts: list[int] = []
        dtype: Any = None

        def local() -> tuple[Sequence[Any], Sequence[int]]:
            nonlocal values, counts, dtype
            if axis is None:  # what is wrong with these values shows when all are known
                arrays = [ops.array(part) for part in parts]
                sums, counts, dtype = arrays, [1] * len(arrays), arrays[0].dtype
            else:
                sums, counts, dtype = row_sums(op, parts, axis, ops)
            values, counts = list(compress(sums, there)), list(compress(counts, there))
            return values, counts

        notes = self._facts(description, lambda: ops.name(dtype), local)
        every = [one for note in notes for one in note.known]
        if axis is not None:
            _check_same([note.dtype for note in notes])
        check_sums(every, axis)
        if axis is None:
            check_numbers(values or parts[:1], op, ops)
        shape, counts = every[0].shape, [count for note in notes for count in note.counts]
        held = [len(note.known) for note in notes]
        if axis is None and prod(shape) * dtype.itemsize >= _LARGE:
            summed = self._summed(description, values, shape, added_as(op, dtype, ops))
            if summed is not None:
                return summed if op is ReduceOp.SUM else ops.mean(summed, len(counts), dtype)
        stacked = ops.concatenate([value[None] for value in values], 0) if values else None
        sizes = [n * prod(shape) for n in held]
        added = dtype if axis is None else added_as(op, dtype, ops)
        found = self._gathered(description, stacked, sizes, added)
        rows = [row for flat, n in zip(found, held, strict=True) for row in flat.reshape(n, *shape)]
        if axis is None:
            return reduce_parts(op, rows, ops)
        return total_of_rows(op, rows, counts, dtype, axis, ops)

    def gather(self, description: CallDescription, parts: Sequence[Any], axis: Any) -> Any:
        """The values of all replicas, one after the other along an axis; see `Strategy.gather`.

        Args:
          description: the call.
          parts: the values of this worker's replicas that are data.
          axis: the axis.
        """
        ops = self._ops
        arrays = [ops.array(part) for part in parts]
        notes = self._facts(description, str, lambda: (arrays, ()))
        every = [one for note in notes for one in note.known]
        where = check_gather(every, axis)
        shapes: list[tuple[int, ...]] = []
        for note in notes:
            size = sum([one.shape[where] for one in note.known])
            shapes.append((*every[0].shape[:where], size, *every[0].shape[where + 1 :]))
        mine = ops.concatenate(arrays, where) if arrays else None
        found = self._gathered(description, mine, [prod(shape) for shape in shapes], ops.dtype(every[0].dtype))
        made = [flat.reshape(shape) for flat, shape, note in zip(found, shapes, notes, strict=True) if note.known]
        return ops.concatenate(made, where)

    def first(self, description: CallDescription, value: Any) -> Any:
        """The value of replica 0 of worker 0."""
        ops, rank = self._ops, self._peers.rank
        array = ops.array(value)
        notes = self._facts(description, lambda: ops.name(array.dtype), lambda: ([array], ()))
        _check_same([note.dtype for note in notes])
        shape = notes[0].known[0].shape
        sizes = [prod(shape), *[0] * (self._peers.size - 1)]
        found = self._gathered(description, None if rank else array, sizes, array.dtype)
        return found[0].reshape(shape)

    def _facts(
        self,
        description: CallDescription,
        dtype: Callable[[], str],
        local: Callable[[], tuple[Sequence[Any], Sequence[int]]],
    ) -> "list[_Note]":
        """What all workers have; an error of `local` is raised on all of them."""

        def make() -> tuple[Any, Sequence[Any]]:
            values, counts = local()
            known = [[list(value.shape), self._ops.name(value.dtype)] for value in values]
            return {"dtype": dtype(), "known": known, "counts": list(counts)}, []

        notes = [note for note, _ in self._peers.exchange(description, make)]
        known = [tuple([_Known(tuple(shape), name) for shape, name in note["known"]]) for note in notes]
        return [_Note(note["dtype"], each, note["counts"]) for note, each in zip(notes, known, strict=True)]

    def _summed(self, description: CallDescription, values: Sequence[Any], shape: Sequence[int], dtype: Any) -> Any:
        """The sum of large values; None if the engine does not add such numbers."""
        ops, name = self._ops, self._ops.name(dtype)
        if not self._calls.reducible(name):
            return None
        mine = ops.total(values, dtype) if values else ops.zeros(shape, dtype, self._device)
        flat = ops.move(mine, self._device).reshape(-1)
        return self._calls.all_reduce(flat, name, **self._peers.said(description)).reshape(tuple(shape))

    def _gathered(self, description: CallDescription, mine: Any, sizes: Sequence[int], dtype: Any) -> list[Any]:
        """The arrays of all workers, each `[sizes[i]]`; None for nothing."""
        ops = self._ops
        if mine is None:
            mine = ops.zeros((0,), dtype, self._device)
        flat = ops.move(mine, self._device).reshape(-1)
        return self._calls.all_gather(flat, sizes, ops.name(dtype), **self._peers.said(description))


@dataclass(frozen=True, slots=True)
class _Note:
    """What one worker has.

    Args:
      dtype: the name of the dtype of what the values are the sums of.
      known: its values.
      counts: how many items each value is the sum of.
    """

    dtype: str
    known: tuple[_Known, ...]
    counts: Sequence[int]


def _check_same(dtypes: Sequence[Any]) -> None:
    for worker, dtype in enumerate(dtypes):
        if dtype != dtypes[0]:
            raise InvalidArgumentError(
                f"reduce: all values must have the same dtype, got {dtypes[0]} on worker 0 and {dtype} on worker {worker}"
            )


class WorkersReducer(LocalReducer):
    """The `LocalReducer` of a strategy of several workers.

    Args:
      peers: all workers.
      devices: those of this process's replicas.
    """

    def __init__(self, peers: OpenPeers, devices: Any) -> None:
        super().__init__(devices)
        self._peers = peers

    @cached_property
    def _exchange(self) -> DeviceExchange | None:
        """Exchanges values on devices with the other workers where they are; None if the engine cannot."""
        ops, peers, device = self.arrays, self._peers, self._devices.devices[0]
        assert ops is not None
        calls = peers.group.on_devices(ops, device)
        return None if calls is None else DeviceExchange(peers, calls, ops, device)

    def _described(self, text: str, call: ReplicaCall, parts: Sequence[Any], where: str = "") -> CallDescription:
        """A call as the workers compare it, with the dtypes and shapes of the replicas' values for messages."""
        ops = self._library(parts) or NUMPY

        def given() -> str:
            arrays = [ops.array(part) for part in parts]
            return ", ".join(dict.fromkeys(f"{ops.name(array.dtype)}{list(array.shape)}" for array in arrays))

        return CallDescription(f"{text}, on {where}" if where else text, call.name, given)

    def reduce(
        self, op: ReduceOp, parts: Sequence[Any], axis: Any, call: ReplicaCall = REDUCE, *, deterministic: bool = False
    ) -> Any:
        """The sum or mean over all replicas; see `LocalReducer.reduce`."""
        there = tuple([True] * len(parts) if call.present is None else call.present)
        text = f"{call.text} {op.name}, axis={axis}{', deterministic' * deterministic}"
        if self.arrays is not None and self._library(parts) is not None:
            if not deterministic and (exchange := self._exchange) is not None:
                return exchange.reduce(self._described(text, call, parts, exchange.kind), op, parts, axis, there)
            made = self.reduce(op, self.on_host(parts), axis, call, deterministic=deterministic)
            return self._devices.put(made, 0, owned=True)
        description = self._described(text, call, parts)
        if deterministic:
            return self._exact(description, op, parts, axis, there)
        if axis is None:
            return self._whole(description, op, list(compress(parts, there)))
        return _total(op, axis, self._peers.exchange(description, lambda: _sums(op, parts, axis, there)))

    def gather(self, parts: Sequence[Any], axis: Any, call: ReplicaCall = GATHER) -> Any:
        """The values of all replicas, one after the other; see `LocalReducer.gather`."""
        there, text = call.kept(parts), f"{call.text}, axis={axis}"
        if self.arrays is not None and self._library(parts) is not None:  # also where this worker has no data
            if (exchange := self._exchange) is not None:
                return exchange.gather(self._described(text, call, parts, exchange.kind), there, axis)
            return self._devices.put(self.gather(self.on_host(parts), axis, call), 0, owned=True)
        return gather_parts(self._peers.everywhere(self._described(text, call, parts), there), axis)

    def prepared(self, make: Callable[[], Any], call: ReplicaCall) -> Any:
        """What `make` makes here, unless it raises on some worker; see `LocalReducer.prepared`."""
        made: Any = None

        def tell() -> tuple[Any, Sequence[Any]]:
            nonlocal made
            made = make()
            return None, []

        self._peers.exchange(CallDescription(call.text, call.name), tell)
        return made

    def first(self, parts: Sequence[Any], call: ReplicaCall) -> Any:
        """The value of replica 0 of worker 0; see `LocalReducer.first`."""
        peers = self._peers
        text = f"{call.text} of replica 0"
        if self._library(parts[:1]) is not None:
            if (exchange := self._exchange) is not None:
                return exchange.first(self._described(text, call, parts[:1], exchange.kind), parts[0])
            return self._devices.put(self.first(self.on_host(parts[:1]), call), 0, owned=True)
        description = self._described(text, call, parts[:1])
        found = peers.exchange(description, lambda: (None, [] if peers.rank else [np.asarray(parts[0])]))
        return found[0][1][0]

    def _whole(self, description: CallDescription, op: ReduceOp, kept: Sequence[Any]) -> Any:
        total: Any = None

        def local() -> tuple[Any, Sequence[Any]]:
            nonlocal total
            arrays = [np.asarray(part) for part in kept]
            if not arrays or arrays[0].nbytes < _LARGE:
                return None, arrays
            check_numbers(arrays, op)
            wide = added_as(op, arrays[0].dtype)
            total = np.asarray(reduce_parts(ReduceOp.SUM, [array.astype(wide, copy=False) for array in arrays]))
            return {"dtype": dtype_code(arrays[0].dtype), "shape": list(total.shape), "count": len(arrays)}, []

        found = self._peers.exchange(description, local)
        large = [note for note, _ in found if note is not None]
        if not large:
            return reduce_parts(op, [array for _, arrays in found for array in arrays])
        every: list[_Known] = []
        for note, arrays in found:
            every += [_Known(array.shape, array.dtype.name) for array in arrays]
            if note is not None:
                every += [_Known(tuple(note["shape"]), np.dtype(note["dtype"]).name)] * note["count"]
        check_alike(every)
        dtype = np.dtype(large[0]["dtype"])
        if total is None:  # this worker has no data
            total = np.zeros(large[0]["shape"], added_as(op, dtype))
        summed = self._peers.group.all_reduce(total, "sum", **self._peers.said(description))
        return summed[()] if op is ReduceOp.SUM else NUMPY.mean(summed, len(every), dtype)

    def _exact(
        self, description: CallDescription, op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]
    ) -> Any:
        def local() -> tuple[Any, list[Any]]:
            if added_as_integers(op, parts):
                return _sums(op, parts, axis, there)
            sums, counts, dtype = exact_rows(op, parts, axis)
            sums, counts = list(compress(sums, there)), list(compress(counts, there))
            special = [part.special is not None for part in sums]
            first = [part.first for part in sums]
            note = {"counts": counts, "dtype": dtype_code(dtype), "first": first, "special": special}
            arrays = [part.digits for part in sums] + [part.special for part in sums if part.special is not None]
            return note, arrays

        bands: list[Bands] = []
        counts: list[int] = []
        found = self._peers.exchange(description, local)
        dtype = _dtype_of([note for note, _ in found])
        if added_as(op, dtype).kind in "iu":
            return _total(op, axis, found)
        for note, arrays in found:
            specials = iter(arrays[len(note["first"]) :])
            for first, digits, special in zip(note["first"], arrays, note["special"], strict=False):
                bands.append(Bands(first, digits, next(specials) if special else None))
            counts += note["counts"]
        return exact_total(op, bands, counts, dtype)


def _sums(op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]) -> tuple[Any, list[Any]]:
    """What this worker contributes to a sum or mean: the sums over the axes of its values."""
    sums, counts, dtype = row_sums(op, parts, axis)
    return {"counts": list(compress(counts, there)), "dtype": dtype_code(dtype)}, list(compress(sums, there))


def _total(op: ReduceOp, axis: Any, found: Sequence[tuple[Any, list[Any]]]) -> Any:
    """The sum or mean of what all workers contribute."""
    dtype = _dtype_of([note for note, _ in found])
    counts = [count for note, _ in found for count in note["counts"]]
    return total_of_rows(op, [array for _, arrays in found for array in arrays], counts, dtype, axis)


def _dtype_of(notes: Sequence[dict[str, Any]]) -> np.dtype[Any]:
    """The dtype common to all workers.

    Raises:
      InvalidArgumentError: the dtypes differ.
    """
    dtypes: list[np.dtype[Any]] = [np.dtype(note["dtype"]) for note in notes]
    _check_same(dtypes)
    return dtypes[0]


# ----------------------------------------------------------------------------
# Replicas in several processes, with equal copies of every variable.
# ----------------------------------------------------------------------------


_TIMEOUT = 300.0


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous replicas in several processes, each of which creates the same strategy.

    Every worker must make the same calls in the same order: distributing, iterating, `reduce`, `gather`, `all_reduce`.
    All workers take the same number of steps, however much data each of them has.

    Use it in a `with` block: if an exception leaves the block, the other workers are told and raise `AbortedError` with
    the reason instead of waiting.

    Args:
      cluster_resolver: describes the workers; None looks at the environment: TF_CONFIG, torchrun, MPI, Slurm,
        Kubernetes. Without a cluster there is one worker.
      communication_options: the engine and its time-out. The engine "torch" moves tensors between workers where they are,
        by gloo on CPUs and NCCL on CUDA, and "jax" arrays of JAX by compiled programs; with any other engine, values on devices
        pass the host.
      devices: a name for each replica of this process, or device objects of JAX or PyTorch; None for one CPU. Workers may
        have different numbers of replicas.
      backend: what the replicas of this process run on; None to choose by the devices, as `MirroredStrategy` does.
      collectives: a group that is already open; its owner closes it.

    Raises:
      ValueError: contradictory descriptions of the cluster.
      ImportError: several workers, and no engine is installed; the message says what to install.

    >>> import distinput as di
    >>> with di.distribute.MultiWorkerMirroredStrategy() as strategy:
    ...     strategy.num_replicas_in_sync
    1

    Source: `tf.distribute.MultiWorkerMirroredStrategy`.
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
        *,
        devices: Sequence[Any] | None = None,
        backend: str | None = None,
        collectives: Collectives | None = None,
    ) -> None:
        labels, backend = chosen_devices(devices, backend, ["CPU:0"])
        options = communication_options or CommunicationOptions()
        cluster = resolve(resolver=cluster_resolver)
        self._resolver = cluster_resolver or resolver_of(cluster)
        self._owned: Collectives | None = None
        self._calls: Collectives | None = None
        if collectives is None and cluster.size > 1:
            timeout = options.timeout_seconds or _TIMEOUT
            engine = _engine(options.implementation, backend)
            address = cluster.coordinator or next(iter(cluster.addresses), None)
            collectives = open_collectives(
                engine, rank=cluster.rank, size=cluster.size, address=address, timeout=timeout
            )
            self._owned = collectives
        try:
            super().__init__(labels, backend=backend)  # after the engine: JAX wants to know of the others first
        except BaseException as error:
            if self._owned is not None:
                self._owned.abort(f"{type(error).__name__}: {error}")
                self._owned.close()
            raise
        if collectives is None:
            return
        # Leaving the strategy's block does not close this group: its owner may go on using it.
        self._calls = self._owned or collectives.dup("strategy")
        control = collectives.dup("control")
        peers = OpenPeers(self._calls, control, self._replicas.count, compare_call_sites=options.compare_call_sites)
        self._replicas = Replicas.of(self._replicas.devices, peers)
        self._reducer = WorkersReducer(peers, self._replicas.devices)

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The description of the workers; `task_type` and `task_id` say which one this is.

        Source: `tf.distribute.MultiWorkerMirroredStrategy.cluster_resolver`.
        """
        return self._resolver

    def close(self) -> None:
        """Leave the group of workers; the strategy cannot be used any more."""
        if self._replicas.peers is not None:
            self._replicas.peers.close()
        if self._calls is not None:
            self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        agreed = getattr(error, "agreed", False)  # all workers end in the same way
        if error is not None and self._owned is not None and not agreed:
            self._owned.abort(f"{type(error).__name__}: {error}")
        self.close()

    def __repr__(self) -> str:
        replicas = self._replicas
        where = "one worker" if replicas.peers is None else f"worker {replicas.rank} of {replicas.workers}"
        return f"MultiWorkerMirroredStrategy({where}, {', '.join(replicas.devices.local)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "MultiWorkerMirroredStrategy":
        raise RuntimeError(
            "MultiWorkerMirroredStrategy cannot be copied, because its group belongs to this object; pass the object itself"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise RuntimeError(
            "MultiWorkerMirroredStrategy cannot be sent to another process: make it there, from that process's own resolver"
        )


class _OldName(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, MultiWorkerMirroredStrategy)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy, metaclass=_OldName):
    """`MultiWorkerMirroredStrategy` with the arguments of its older name; `isinstance` takes the two for the same.

    Args:
      communication: the engine, a `CommunicationImplementation` or a name.
      cluster_resolver: as for `MultiWorkerMirroredStrategy`.
      devices: as for `MultiWorkerMirroredStrategy`.
      backend: what the replicas of this process run on; None to choose by the devices, as `MirroredStrategy` does.
      collectives: a group that is already open; its owner closes it.

    >>> import distinput as di
    >>> with di.distribute.experimental.MultiWorkerMirroredStrategy() as strategy:
    ...     strategy.num_replicas_in_sync
    1

    Source: `tf.distribute.experimental.MultiWorkerMirroredStrategy`.
    """

    def __init__(
        self,
        communication: CommunicationImplementation | str = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
        *,
        devices: Sequence[Any] | None = None,
        backend: str | None = None,
        collectives: Collectives | None = None,
    ) -> None:
        if isinstance(communication, ClusterResolver):
            raise TypeError(
                "experimental.MultiWorkerMirroredStrategy: the first argument is the communication, as in TensorFlow; "
                "write cluster_resolver=..., or use distribute.MultiWorkerMirroredStrategy"
            )
        options = CommunicationOptions(implementation=communication)
        super().__init__(cluster_resolver, options, devices=devices, backend=backend, collectives=collectives)


# Messages, which workers compare, name the strategy by the name that users know.
ExperimentalMultiWorkerMirroredStrategy.__name__ = MultiWorkerMirroredStrategy.__name__
ExperimentalMultiWorkerMirroredStrategy.__qualname__ = MultiWorkerMirroredStrategy.__qualname__


def _engine(implementation: CommunicationImplementation | str, backend: str) -> str:
    """The engine with this name; AUTO finds an installed one, JAX's own for devices of JAX if no other one is running."""
    if implementation is CommunicationImplementation.AUTO:
        found = find_engine()
        return "jax" if (backend, found) == ("jax", "torch") and not engine_runs("torch") else found
    return "torch" if isinstance(implementation, CommunicationImplementation) else implementation
