# SPDX-License-Identifier: Apache-2.0
"""`MirroredStrategy`, and `CrossDeviceOps`, which add the values of its replicas in an order of their own."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from distinput.distribute.core.array_arithmetic import NUMPY, ArrayOps, ReduceOp, check_numbers, mean_of_rows, row_sums
from distinput.distribute.core.options import CommunicationOptions
from distinput.distribute.core.replica_reducer import (
    REDUCE,
    Leaves,
    LocalReducer,
    ReplicaCall,
    has_slices,
    reduce_slices,
)
from distinput.distribute.core.replicas import part
from distinput.distribute.core.strategy import Strategy
from distinput.distribute.core.values import DistributedValues, Mirrored, PerReplica
from distinput.distribute.devices import chosen_devices, device_name

# ----------------------------------------------------------------------------
# `CrossDeviceOps`: what adds the values of the replicas of one process in an order of its own; users derive theirs from it.
# ----------------------------------------------------------------------------


class OnDevices(PerReplica):
    """A `PerReplica` of arrays that are on devices.

    Args:
      values: the components in replica order.
      ops: the library of the arrays.
    """

    __slots__ = ("ops",)

    def __init__(self, values: Sequence[Any], ops: ArrayOps) -> None:
        super().__init__(values)
        self.ops = ops


def library_of(*values: DistributedValues) -> ArrayOps:
    """The library that adds these values: that of the devices where one of them is on devices, else NumPy."""
    return next((value.ops for value in values if isinstance(value, OnDevices)), NUMPY)


class CrossDeviceOps:
    """Decides how the values of the replicas of one process are added; give one to `MirroredStrategy`.

    Derive your own and define `reduce_implementation`; `Strategy.reduce`, `ReplicaContext.all_reduce` and the
    aggregation of variables call it. With an axis, `Strategy.reduce` first sums over the rows of each replica, and gives
    these sums to it. The rows of `IndexedSlices` are put one after the other, without it.

    >>> import distinput as di
    >>> import numpy as np
    >>> class Loud(di.distribute.ReductionToOneDevice):
    ...     def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
    ...         print(reduce_op.name, "of", len(per_replica_value.values))
    ...         return super().reduce_implementation(reduce_op, per_replica_value, destinations, options)
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=Loud())
    >>> int(strategy.reduce("SUM", di.distribute.PerReplica([np.int32(1), np.int32(2)]), axis=None))
    SUM of 2
    3

    Source: `tf.distribute.CrossDeviceOps`.
    """

    def reduce(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: CommunicationOptions | None = None
    ) -> Mirrored:
        """The sum or mean of a value, a copy for each destination; calls `reduce_implementation` if there is something to add.

        Args:
          reduce_op: "SUM", "MEAN" or a `ReduceOp`.
          per_replica_value: a distributed value; anything else counts as the value of the only replica.
          destinations: who gets a copy: a device name or a list of them, or a distributed value, whose replicas do.
          options: handed on.

        Raises:
          ValueError: an unknown reduce_op, or no destinations.

        Source: `tf.distribute.CrossDeviceOps.reduce`.
        """
        op, value = ReduceOp.of(reduce_op), _distributed(per_replica_value)
        _copies(destinations)
        if has_slices(value.values):
            return _slices_at(op, value, destinations)
        if len(value.values) == 1:
            return mirrored_at(_copy(value), destinations)
        return self.reduce_implementation(op, value, destinations, options or CommunicationOptions())

    def batch_reduce(
        self,
        reduce_op: Any,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: CommunicationOptions | None = None,
    ) -> list[Mirrored]:
        """`reduce` of several values at once; calls `batch_reduce_implementation`.

        Args:
          reduce_op: "SUM", "MEAN" or a `ReduceOp`.
          value_destination_pairs: (value, destinations) for each value, as for `reduce`.
          options: handed on.

        Raises:
          ValueError: an unknown reduce_op, or no destinations.

        Source: `tf.distribute.CrossDeviceOps.batch_reduce`.
        """
        op = ReduceOp.of(reduce_op)
        pairs = [(_distributed(value), where) for value, where in value_destination_pairs]
        for _, where in pairs:
            _copies(where)
        dense = [(value, where) for value, where in pairs if not has_slices(value.values)]
        made = iter(self._batch(op, dense, options or CommunicationOptions()) if dense else ())
        return [_slices_at(op, *pair) if has_slices(pair[0].values) else next(made) for pair in pairs]

    def _batch(
        self, op: ReduceOp, pairs: Sequence[tuple[DistributedValues, Any]], options: CommunicationOptions
    ) -> list[Mirrored]:
        if all(len(value.values) == 1 for value, _ in pairs):
            return [mirrored_at(_copy(value), where) for value, where in pairs]
        return self.batch_reduce_implementation(op, pairs, options)

    def broadcast(self, tensor: Any, destinations: Any) -> Mirrored:
        """A copy of an array for each destination; calls `broadcast_implementation`.

        Raises:
          ValueError: no destinations.

        Source: `tf.distribute.CrossDeviceOps.broadcast`.
        """
        _copies(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        per_replica_value: DistributedValues,
        destinations: Any,
        options: CommunicationOptions,
    ) -> Mirrored:
        """Add the components of one value; define this.

        Raises:
          NotImplementedError: a derived class does not define it.

        Source: `tf.distribute.CrossDeviceOps.reduce_implementation`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: define reduce_implementation(reduce_op, per_replica_value, destinations, options)"
        )

    def batch_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[DistributedValues, Any]],
        options: CommunicationOptions,
    ) -> list[Mirrored]:
        """Add the components of several values; here one after the other, by `reduce_implementation`.

        Source: `tf.distribute.CrossDeviceOps.batch_reduce_implementation`, which every class has to define there.
        """
        return [
            self.reduce_implementation(reduce_op, value, where, options) for value, where in value_destination_pairs
        ]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Mirrored:
        """Copy one array for each destination.

        Source: `tf.distribute.CrossDeviceOps.broadcast_implementation`.
        """
        return mirrored_at(np.array(tensor)[()], destinations)


def mirrored_at(value: Any, destinations: Any) -> Mirrored:
    """One value for each destination. The destinations share an array: nobody may modify it.

    Raises:
      ValueError: no destinations.
    """
    return Mirrored([value] * _copies(destinations))


def _slices_at(op: ReduceOp, value: DistributedValues, destinations: Any) -> Mirrored:
    return mirrored_at(reduce_slices(LocalReducer(), op, value.values, None, REDUCE), destinations)


def _copy(value: DistributedValues) -> Any:
    """A copy of the component of the only replica."""
    if isinstance(value, OnDevices):
        return value.ops.total(value.values, value.values[0].dtype)
    return np.array(value.values[0])[()]


def _copies(destinations: Any) -> int:
    """How many destinations there are."""
    if isinstance(destinations, DistributedValues):
        return len(destinations.values)
    if destinations is None or (isinstance(destinations, list | tuple | str) and not destinations):
        raise ValueError(
            f"destinations can not be empty: name a device, or give the distributed value whose replicas want the "
            f"result, got {destinations!r}"
        )
    return len(destinations) if isinstance(destinations, list | tuple) else 1


def _distributed(value: Any) -> DistributedValues:
    return value if isinstance(value, DistributedValues) else PerReplica([value])


# ---- The orders in which the values of replicas are added: floats round differently in each of them
#
# Pure functions from n arrays of one shape and dtype to their sum; `reduced` makes sums and means of them. The arrays may be on
# several devices; the sum is where the first one is.

Array: TypeAlias = Any
"""An array of NumPy, or of the library of the devices."""
Add: TypeAlias = Callable[[Sequence[Array], ArrayOps], Array]
"""The sum of n arrays `[...]` of one dtype, which it keeps, and of one library."""


def in_replica_order(parts: Sequence[Array], ops: ArrayOps = NUMPY) -> Array:
    """((0 + 1) + 2) + ...

    >>> in_replica_order([np.float32([1]), np.float32([2]), np.float32([3])])
    array([6.], dtype=float32)
    """
    return ops.total(parts, parts[0].dtype)


def in_halves(parts: Sequence[Array], ops: ArrayOps = NUMPY) -> Array:
    """The replicas of the first half among themselves, those of the second, and then the two sums: (0 + 1) + (2 + 3).

    The second half is the larger one if the number of replicas is odd.
    """
    half = len(parts) // 2
    if not half:
        return in_replica_order(parts, ops)
    return in_replica_order([in_replica_order(parts[:half], ops), in_replica_order(parts[half:], ops)], ops)


def in_ring(parts: Sequence[Array], ops: ArrayOps = NUMPY) -> Array:
    """Cut every array into n chunks; chunk c begins at replica c and goes round: c, c + 1, ..., n - 1, 0, ..., c - 1.

    The chunks are those of `numpy.array_split` of the flat array. NCCL, where it adds, chooses chunks and ways itself.
    """
    total = ops.total_of_devices(parts, parts[0].dtype)
    if total is not None:
        return total
    n = len(parts)
    cut = [_split(ops.array(part).reshape(-1), n) for part in parts]
    chunks = [in_replica_order([cut[(c + i) % n][c] for i in range(n)], ops) for c in range(n)]
    return ops.concatenate(chunks, 0).reshape(np.shape(parts[0]))


def _split(flat: Array, n: int) -> list[Array]:
    """The chunks of `numpy.array_split`, of an array of any library."""
    small, larger = divmod(len(flat), n)
    ends = [0, *[(i + 1) * small + min(i + 1, larger) for i in range(n)]]
    return [flat[begin:end] for begin, end in pairwise(ends)]


def reduced(op: ReduceOp, parts: Sequence[Any], add: Add, ops: ArrayOps = NUMPY) -> Any:
    """The sum or mean of the values of n replicas, added by `add`. SUM keeps the dtype; MEAN of integers is float64.

    Raises:
      InvalidArgumentError: shapes or dtypes differ, or a part is not numeric.
    """
    arrays = check_numbers(parts, op, ops)
    first = arrays[0].dtype
    if op is ReduceOp.SUM or len(arrays) == 1:
        return ops.value(add(arrays, ops))
    wide = ops.wide(first)
    if wide != first:
        arrays = [ops.sum(array, (), wide) for array in arrays]
    return ops.mean(add(arrays, ops), len(arrays), first)


def packed(op: ReduceOp, values: Sequence[Sequence[Any]], add: Add, packs: int, ops: ArrayOps = NUMPY) -> list[Any]:
    """As `reduced` of each of several values, laid end to end and cut into `packs` packs that are added one by one.

    Args:
      op: SUM or MEAN.
      values: for each value the arrays of all replicas; values of one dtype share packs.
      add: adds one pack.
      packs: how many packs; 0 adds each value by itself.
      ops: the library of the arrays.
    """
    if not packs:
        return [reduced(op, parts, add, ops) for parts in values]
    checked = [check_numbers(parts, op, ops) for parts in values]
    totals: list[Any] = [None] * len(values)
    for dtype in dict.fromkeys(arrays[0].dtype for arrays in checked):
        mine = [i for i, arrays in enumerate(checked) if arrays[0].dtype == dtype]
        replicas = range(len(checked[mine[0]]))
        flat = [ops.concatenate([checked[i][replica].reshape(-1) for i in mine], 0) for replica in replicas]
        pieces = [_split(whole, packs) for whole in flat]
        total = ops.concatenate([reduced(op, [piece[p] for piece in pieces], add, ops) for p in range(packs)], 0)
        at = 0
        for i in mine:
            shape = checked[i][0].shape
            totals[i] = ops.value(total[at : at + prod(shape)].reshape(shape))
            at += prod(shape)
    return totals


# ---- One device adds the values of all replicas


class ReductionToOneDevice(CrossDeviceOps):
    """Adds in replica order, ((0 + 1) + 2) + ..., which is also what strategies do without `cross_device_ops`.

    Args:
      reduce_to_device: the name of the device that adds; None for the first destination. Names are labels only.
      accumulation_fn: called with the list of the replicas' values, `[...] * n`, and returns their sum, `[...]`; None
        for the sum in replica order. A mean divides what it returns by n.

    Raises:
      ValueError: `reduce_to_device` is not the name of a device.
      TypeError: `accumulation_fn` cannot be called.

    >>> import distinput as di
    >>> ops = di.distribute.ReductionToOneDevice(accumulation_fn=lambda values: max(values))
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    >>> strategy.reduce("SUM", di.distribute.PerReplica([1.0, 3.0]), axis=None)
    np.float64(3.0)

    Source: `tf.distribute.ReductionToOneDevice`.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[[Sequence[Any]], Any] | None = None
    ) -> None:
        self.reduce_to_device = None if reduce_to_device is None else device_name(reduce_to_device)
        if accumulation_fn is not None and not callable(accumulation_fn):
            raise TypeError(
                f"ReductionToOneDevice: accumulation_fn must be a function of a list of values, got {accumulation_fn!r}"
            )
        self.accumulation_fn = accumulation_fn

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        per_replica_value: DistributedValues,
        destinations: Any,
        options: CommunicationOptions,
    ) -> Mirrored:
        made = self._reduced(reduce_op, per_replica_value.values, library_of(per_replica_value))
        return mirrored_at(made, destinations)

    def _reduced(self, op: ReduceOp, parts: Sequence[Any], ops: ArrayOps) -> Any:
        if self.accumulation_fn is None:
            return reduced(op, parts, in_replica_order, ops)
        arrays = check_numbers(parts, op, ops)
        total = ops.array(self.accumulation_fn([ops.value(array) for array in ops.together(arrays)]))
        return ops.value(total) if op is ReduceOp.SUM else ops.mean(total, len(arrays), arrays[0].dtype)


# ---- All replicas take part in adding: around a ring, or in two halves


class AllReduce(CrossDeviceOps):
    """The base of `NcclAllReduce` and `HierarchicalCopyAllReduce`."""

    _who: ClassVar[str]

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"{self._who} requires num_packs >= 0, but {num_packs} is specified")
        self._num_packs = num_packs

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        per_replica_value: DistributedValues,
        destinations: Any,
        options: CommunicationOptions,
    ) -> Mirrored:
        return self.batch_reduce_implementation(reduce_op, [(per_replica_value, destinations)], options)[0]

    def batch_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[DistributedValues, Any]],
        options: CommunicationOptions,
    ) -> list[Mirrored]:
        values = [value.values for value, _ in value_destination_pairs]
        ops = library_of(*[value for value, _ in value_destination_pairs])
        made = packed(reduce_op, values, self._add, self._num_packs, ops)
        return [mirrored_at(total, where) for total, (_, where) in zip(made, value_destination_pairs, strict=True)]

    @staticmethod
    def _add(parts: Sequence[Array], ops: ArrayOps) -> Array:
        raise NotImplementedError


class NcclAllReduce(AllReduce):
    """Adds by NCCL where all values are PyTorch's, each on another GPU of CUDA; elsewhere in the order of a ring.

    In the ring, chunk c of n begins at replica c and goes round, on every machine alike. NCCL chooses its order by the machine,
    and so the last bits of sums of floats. The result is on the first device.

    Args:
      num_packs: values reduced together are laid end to end and cut into this many packs, each of which goes round by
        itself; 0 sends each value by itself.

    Raises:
      ValueError: `num_packs` is negative.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=di.distribute.NcclAllReduce())
    >>> strategy.reduce("MEAN", di.distribute.PerReplica([1.0, 3.0]), axis=None)
    np.float64(2.0)

    Source: `tf.distribute.NcclAllReduce`.
    """

    _who = "NCCL all-reduce"
    _add = staticmethod(in_ring)


class HierarchicalCopyAllReduce(AllReduce):
    """Adds the replicas within each half first, then the two sums: (0 + 1) + (2 + 3).

    Args:
      num_packs: accepted for compatibility with TensorFlow; packs do not change the order of these additions.

    Raises:
      ValueError: `num_packs` is negative.

    >>> import distinput as di
    >>> ops = di.distribute.HierarchicalCopyAllReduce(num_packs=2)
    >>> strategy = di.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    >>> strategy.reduce("SUM", di.distribute.PerReplica([1.0, 3.0]), axis=None)
    np.float64(4.0)

    Source: `tf.distribute.HierarchicalCopyAllReduce`, which loses the last replica if their number is odd.
    """

    _who = "HierarchicalCopy"
    _add = staticmethod(in_halves)


# ---- The arithmetic of a strategy that was given `cross_device_ops`


class OrderedReducer(LocalReducer):
    """`reduce` and its counterparts by a `CrossDeviceOps`; exact sums and concatenations stay as they are.

    Args:
      ops: adds the values of replicas.
      devices: those of this process's replicas.
    """

    def __init__(self, ops: CrossDeviceOps, devices: Any) -> None:
        super().__init__(devices)
        self.ops = ops

    def reduce(
        self, op: ReduceOp, parts: Sequence[Any], axis: Any, call: ReplicaCall = REDUCE, *, deterministic: bool = False
    ) -> Any:
        if deterministic:
            return super().reduce(op, parts, axis, call, deterministic=True)
        kept = call.kept(parts)
        ops = self._library(kept)
        if ops is None:
            return self._added(op, kept, axis, NUMPY)
        return ops.move(self._added(op, [ops.array(part) for part in kept], axis, ops), self._devices.devices[0])

    def _added(self, op: ReduceOp, parts: Sequence[Any], axis: Any, ops: ArrayOps) -> Any:
        if axis is None:
            return self._reduced(op, parts)
        sums, counts, dtype = row_sums(op, parts, axis, ops)
        total = self._reduced(ReduceOp.SUM, sums)
        return total if op is ReduceOp.SUM else mean_of_rows(total, sum(counts), dtype, ops)

    def reduce_each(self, op: ReduceOp, given: Leaves, options: CommunicationOptions | None = None) -> list[Any]:
        values = [self._value(parts) for parts, _ in given]
        return [_local(made) for made in self.ops.batch_reduce(op, [(value, value) for value in values], options)]

    def _reduced(self, op: ReduceOp, parts: Sequence[Any]) -> Any:
        value = self._value(parts)
        return _local(self.ops.reduce(op, value, value))

    def _value(self, parts: Sequence[Any]) -> PerReplica:
        ops = self._library(parts)
        return PerReplica(parts) if ops is None else OnDevices(parts, ops)


def _local(made: Any) -> Any:
    """The copy of this process; users' classes may return it bare."""
    return made.values[0] if isinstance(made, DistributedValues) else made


# ----------------------------------------------------------------------------
# Several replicas in one process, with equal copies of every variable, or with one copy.
# ----------------------------------------------------------------------------


class MirroredStrategy(Strategy):
    """Synchronous replicas in this process, each on a thread of its own.

    Args:
      devices: a name for each replica, such as "CPU:0" or "GPU:1", or device objects of JAX or PyTorch. With the threads
        backend names are labels only, so any number of replicas can be made; with the others each names a device. None or
        empty for one CPU, or with the other backends for all devices that JAX has, all accelerators that PyTorch has.
      cross_device_ops: adds the values of replicas, a `CrossDeviceOps`; None adds them in replica order.
      backend: what the replicas run on: "threads" for NumPy arrays on the host, "jax" for JAX devices and `jax.Array`s, or
        "torch" for PyTorch devices and tensors. None to choose by the devices: device objects choose their framework, so do
        "JAX:0" and "cuda:0", and "GPU:0" chooses the installed framework that has GPUs; everything else runs on threads.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device, the backend has no such device, or devices belong to two frameworks.
      EngineMissing: the framework of the backend is not installed.
      TypeError: `cross_device_ops` is not a `CrossDeviceOps`.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(devices=["CPU:0", "CPU:1"])
    >>> strategy.num_replicas_in_sync
    2
    >>> dataset = di.data.Dataset.range(4).batch(4)
    >>> [strategy.reduce("SUM", step, axis=0).item() for step in strategy.experimental_distribute_dataset(dataset)]
    [6]

    Source: `tf.distribute.MirroredStrategy`.
    """

    per_replica_input = "made"

    def __init__(
        self,
        devices: Sequence[Any] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        *,
        backend: str | None = None,
    ) -> None:
        labels, backend = chosen_devices(devices, backend)
        super().__init__(labels, backend=backend)
        if cross_device_ops is None:
            return
        if not isinstance(cross_device_ops, CrossDeviceOps):
            raise TypeError(
                "MirroredStrategy: cross_device_ops must be a CrossDeviceOps, such as ReductionToOneDevice(), got "
                f"{cross_device_ops!r}"
            )
        self._reducer = OrderedReducer(cross_device_ops, self._replicas.devices)

    def __reduce__(self) -> tuple[Any, ...]:
        made = super().__reduce__()
        return (*made, self._reducer.ops) if isinstance(self._reducer, OrderedReducer) else made

    def __setstate__(self, cross_device_ops: CrossDeviceOps) -> None:
        self._reducer = OrderedReducer(cross_device_ops, self._replicas.devices)


# ---- Several replicas in one process, with one copy of every variable


class CentralStorageStrategy(Strategy):
    """Synchronous replicas in this process whose variables live on one device.

    A variable has one value; what replicas write to it must be aggregated. With one replica it is an ordinary variable.

    Args:
      compute_devices: a name for each replica, or device objects of JAX or PyTorch; None for one CPU.
      parameter_device: the device of the variables; None for the only compute device, or the CPU if there are several.
      backend: what the replicas run on; None to choose by the devices, as `MirroredStrategy` does.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device.

    >>> import distinput as di
    >>> strategy = di.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
    >>> strategy.num_replicas_in_sync
    2

    Source: `tf.distribute.experimental.CentralStorageStrategy`.
    """

    per_replica_input = "ignored"
    _mirrors = False

    def __init__(
        self,
        compute_devices: Sequence[Any] | None = None,
        parameter_device: str | None = None,
        *,
        backend: str | None = None,
    ) -> None:
        names, backend = chosen_devices(compute_devices, backend, ["CPU:0"])
        super().__init__(names, backend=backend)
        self._parameter_devices = (device_name(parameter_device or (names[0] if len(names) == 1 else "CPU:0")),)

    def _create_variable(self, make_value: Callable[[], Any], policy: Any, *, name: str, dtype: Any, shape: Any) -> Any:
        make = "single" if self._replicas.count == 1 else "aggregating"
        return part(make)(self, make_value, policy, name, shape)
