# SPDX-License-Identifier: Apache-2.0
"""`reduce` and `gather`: what adds and joins the values of all replicas, in nests, tensors of many kinds and slices."""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from distinput.distribute.core.array_arithmetic import (
    NUMPY,
    ArrayOps,
    ReduceOp,
    added_as,
    added_as_integers,
    arrays_of,
    check_axis,
    exact_rows,
    exact_total,
    gather_parts,
    mean_of_rows,
    reduce_parts,
    reduce_rows,
    reduce_undistributed,
)
from distinput.distribute.core.options import CommunicationOptions
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.values import DistributedValues, present_in, refuse_sparse_values, replica_leaves
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.values.leaves import is_ragged

if TYPE_CHECKING:
    from distinput.values import ragged_rows, ragged_tensor
    from distinput.values.ragged_tensor import RaggedTensor
else:
    # Few values are ragged.
    ragged_rows, ragged_tensor = later("distinput.values.ragged_rows"), later("distinput.values.ragged_tensor")

# ----------------------------------------------------------------------------
# What adds and joins the values of all replicas: here for the replicas of one process.
#
# Values that are on devices stay there: the library of their arrays adds them, and the result is such an array on the
# device of the first replica. Values on the host, such as text, stay on the host.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplicaCall:
    """A call that all replicas make, and whose values in it are data.

    Args:
      text: the method that the user called, and for what part of a nest, as messages say it; compared between workers.
      name: the name that the user gave to the call.
      present: for each replica of this process, whether its value is data; None: all are. The others are left out.
    """

    text: str
    name: str = ""
    present: Sequence[bool] | None = None

    def kept(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values that are data."""
        return values if self.present is None else tuple(compress(values, self.present))

    def part(self, more: str) -> "ReplicaCall":
        """One of the calls that this one is made of; `more` stands behind its text."""
        return ReplicaCall(self.text + more, self.name, self.present)


REDUCE, GATHER = ReplicaCall("reduce"), ReplicaCall("gather")
Leaves: TypeAlias = Sequence[tuple[Sequence[Any], ReplicaCall]]
"""For each leaf of a nest, the values of the replicas of this process, and the call of which it is a part."""


class LocalReducer:
    """Computes `reduce`, `gather` and their counterparts in replica context, of the replicas of one process.

    A strategy has one. Three are derived from it: `OrderedReducer` by a `CrossDeviceOps`, `WorkersReducer` for several workers,
    and `DeviceReducer` for arrays over all devices of JAX.

    Args:
      devices: those of this process's replicas; None if all values are NumPy's.

    Attributes:
      arrays: the library whose arrays the replicas compute with; None for NumPy.
    """

    def __init__(self, devices: Any = None) -> None:
        self._devices = devices
        self.arrays = arrays_of(devices)

    def _library(self, parts: Sequence[Any]) -> ArrayOps | None:
        """The library of values that are on devices; None for values on the host."""
        ops = self.arrays
        return ops if ops is not None and any(map(ops.owns, parts)) else None

    def on_host(self, parts: Sequence[Any]) -> list[Any]:
        """The values as NumPy has them."""
        ops = self.arrays
        return [part if ops is None or not ops.owns(part) else ops.to_host(part) for part in parts]

    def own_copy(self, value: Any, local: int) -> Any:
        """A copy for a replica of this process, on its device, of a result that all replicas share.

        Args:
          value: what `reduce` or `gather` returned.
          local: the number of the replica among those of this process.
        """
        ops, devices = self.arrays, self._devices
        if ops is not None and ops.owns(value):
            return ops.copy(value, devices.devices[local])
        return devices.put(np.array(value)[()], local, owned=True)

    def reduce(
        self, op: ReduceOp, parts: Sequence[Any], axis: Any, call: ReplicaCall = REDUCE, *, deterministic: bool = False
    ) -> Any:
        """The sum or mean over all replicas; see `Strategy.reduce`.

        Args:
          op: SUM or MEAN.
          parts: the values of this process's replicas.
          axis: None, an int or a tuple of ints.
          call: the call, and which of `parts` are data.
          deterministic: round exact sums once, so that the result does not depend on how the rows were divided.
        """
        kept = call.kept(parts)
        if self.arrays is not None and (ops := self._library(kept)) is not None:
            return self._on_devices(ops, op, kept, axis, deterministic)
        added = ReduceOp.SUM if axis is None and len(kept) == 1 else op  # the mean of one value is itself
        if deterministic and not added_as_integers(added, kept):
            return exact_total(op, *exact_rows(op, kept, axis))
        return reduce_parts(op, kept) if axis is None else reduce_rows(op, kept, axis)

    def reduce_each(self, op: ReduceOp, given: Leaves, options: CommunicationOptions | None = None) -> list[Any]:
        """`reduce` with `axis=None` of several values; see `ReplicaContext.all_reduce`."""
        return [self.reduce(op, parts, None, call) for parts, call in given]

    def gather(self, parts: Sequence[Any], axis: Any, call: ReplicaCall = GATHER) -> Any:
        """The values of all replicas, one after the other along `axis`; see `Strategy.gather`."""
        there = call.kept(parts)
        ops = None if self.arrays is None else self._library(there)
        if ops is None:
            return gather_parts(there, axis)
        return ops.move(gather_parts(there, axis, ops), self._devices.devices[0])

    def prepared(self, make: Callable[[], Any], call: ReplicaCall) -> Any:
        """What `make` makes of this process's values; if it raises, it raises on all workers.

        Args:
          make: makes it without the other workers.
          call: as in `reduce`.
        """
        return make()

    def first(self, parts: Sequence[Any], call: ReplicaCall) -> Any:
        """The value of replica 0, of worker 0 if there are several, as an array."""
        return parts[0] if self._library(parts[:1]) is not None else np.asarray(parts[0])

    def _on_devices(self, ops: ArrayOps, op: ReduceOp, parts: Sequence[Any], axis: Any, deterministic: bool) -> Any:
        if deterministic:
            return self._devices.put(self.reduce(op, self.on_host(parts), axis, deterministic=True), 0, owned=True)
        total = reduce_parts(op, parts, ops) if axis is None else reduce_rows(op, parts, axis, ops)
        return ops.move(total, self._devices.devices[0])


# ----------------------------------------------------------------------------
# `IndexedSlices`, such as the gradient of an embedding, and their `reduce`: rows one after the other, still sparse.
# ----------------------------------------------------------------------------


# ---- Some rows of an array, and where they are: the argument of the scatter methods of a variable


class IndexedSlices:
    """Rows `values[i]` of a larger array at the places `indices[i]` of its first axis.

    Args:
      values: the rows, [n, ...].
      indices: their places, integers [n].
      dense_shape: the shape of the larger array; None if it does not matter.

    >>> import distinput as di
    >>> v = di.Variable([1.0, 2.0, 3.0])
    >>> v.scatter_add(di.IndexedSlices(values=[10.0, 20.0], indices=[0, 2])).numpy()
    array([11.,  2., 23.], dtype=float32)

    Source: `tf.IndexedSlices`.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices = values, indices
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> Any:
        """The dtype of the rows."""
        return self.values.dtype if hasattr(self.values, "dtype") else np.asarray(self.values).dtype

    @property
    def shape(self) -> Any:
        """The shape of the larger array; None if it was not given."""
        return self.dense_shape

    def to_dense(self) -> Any:
        """The larger array: zeros, and at each place the sum of its rows.

        Raises:
          ValueError: `dense_shape` was not given.

        >>> import distinput as di
        >>> di.IndexedSlices(values=[1.0, 2.0, 4.0], indices=[0, 2, 0], dense_shape=[3]).to_dense()
        array([5., 0., 2.])
        """
        if self.dense_shape is None:
            raise ValueError(
                f"IndexedSlices without dense_shape cannot become an array, got rows {list(np.shape(self.values))}; give it "
                "dense_shape"
            )
        rows = np.asarray(self.values)
        whole = np.zeros(tuple([int(size) for size in self.dense_shape]), rows.dtype)
        np.add.at(whole, np.asarray(self.indices), rows)
        return whole

    def map(self, function: Callable[[Any], Any]) -> "IndexedSlices":
        """The slices with the function applied to their rows and their indices."""
        return IndexedSlices(function(self.values), function(self.indices), self.dense_shape)

    def __neg__(self) -> "IndexedSlices":
        return IndexedSlices(-np.asarray(self.values), self.indices, self.dense_shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"


# ---- `reduce` of indexed slices, such as the gradient of an embedding: their rows one after the other, still sparse


def has_slices(parts: Sequence[Any]) -> bool:
    """True if one of the values is an `IndexedSlices`."""
    return any(isinstance(part, IndexedSlices) for part in parts)


def reduce_slices(reducer: LocalReducer, op: ReduceOp, parts: Sequence[Any], axis: Any, call: ReplicaCall) -> Any:
    """The sum or mean over all replicas: rows and places of all of them, one after the other, in replica order.

    A place may occur several times; it means the sum of its rows. A mean divides the rows by the number of replicas. With
    an axis, or if some parts are arrays, the slices count as the whole array that they stand for, and the result is an array.

    Raises:
      InvalidArgumentError: rows of different shapes or dtypes.
      ValueError: the whole array is needed and `dense_shape` was not given.

    Source: `tf.distribute.Strategy.reduce` of `tf.IndexedSlices`.
    """
    if axis is not None or not all(isinstance(part, IndexedSlices) for part in parts):

        def dense() -> list[Any]:
            return [part.to_dense() if isinstance(part, IndexedSlices) else part for part in parts]

        return reducer.reduce(op, reducer.prepared(dense, call.part(" as arrays")), axis, call)
    reducer.prepared(lambda: _check_rows(parts, call.text), call.part(" as slices"))

    def joined(arrays: list[Any], what: str) -> Any:
        return reducer.gather(arrays, 0, call.part(f", {what}"))

    rows = joined([part.values if np.ndim(part.values) else np.atleast_1d(part.values) for part in parts], "rows")
    indices = joined(
        [part.indices if np.ndim(part.indices) else np.atleast_1d(part.indices) for part in parts], "places"
    )
    shapes = [part.dense_shape for part in parts if part.dense_shape is not None]
    if op is ReduceOp.MEAN:
        replicas = len(joined([np.ones(1)] * len(parts), "replicas"))
        library = NUMPY if reducer.arrays is None or not reducer.arrays.owns(rows) else reducer.arrays
        rows = rows if replicas == 1 else library.mean(rows, replicas, rows.dtype)
    return IndexedSlices(rows, indices, shapes[0] if shapes else None)


def _check_rows(parts: Sequence[IndexedSlices], call: str) -> None:
    kinds = [(part.dtype, tuple(np.shape(part.values)[1:])) for part in parts]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InvalidArgumentError(
                f"{call}: the rows of IndexedSlices must have the same dtype and shape on every replica, got {kinds[0][0]}"
                f"{list(kinds[0][1])} on replica 0 and {kind[0]}{list(kind[1])} on replica {i}"
            )


def refuse_gather(call: str) -> NoReturn:
    """Raise the error for a gather of slices.

    Raises:
      NotImplementedError: always; the type that TensorFlow raises.
    """
    raise NotImplementedError(
        f"{call} does not support IndexedSlices: reduce them with SUM, which puts their rows one after the other, or gather "
        "`values` and `indices`"
    )


# ----------------------------------------------------------------------------
# `reduce` and `gather` of nests whose leaves are distributed values, ragged tensors, or plain ones.
# ----------------------------------------------------------------------------


# ---- `reduce` and `gather` of ragged tensors: of their values and row lengths, which are arrays


def gather_values(reducer: LocalReducer, parts: Sequence[Any], axis: Any, call: ReplicaCall) -> Any:
    """The values of all replicas, arrays or ragged tensors, one after the other.

    Raises:
      InvalidArgumentError: another axis than 0; parts differ in dtype, in what is ragged, or in the shape of a value.
    """
    if not any(map(is_ragged, parts)):
        return reducer.gather(parts, axis, call)

    def checked() -> None:
        first = _alike(parts, call.text)
        if not isinstance(axis, int | np.integer) or int(axis) not in (0, -first.ndim):
            raise InvalidArgumentError(
                f"{call.text}: ragged tensors are gathered along axis 0, their rows, got axis {axis}"
            )

    reducer.prepared(checked, call.part(" of ragged tensors"))
    levels = zip(*[_lengths(part) for part in parts], strict=True)
    lengths = [reducer.gather(each, 0, call.part(", row lengths")) for each in levels]
    made = reducer.gather([part.flat_values for part in parts], 0, call)
    for each in reversed(lengths):
        made = ragged_tensor.RaggedTensor(made, ragged_rows.splits_of(each))
    return made


def reduce_ragged(
    reducer: LocalReducer, op: ReduceOp, parts: Sequence[Any], axis: Any, call: ReplicaCall, *, deterministic: bool
) -> Any:
    """The sum or mean over some axes and over all replicas; the mean divides by the true number of values.

    Over all ragged dimensions it is that of the values. Over the rows alone, axis 0, it has a value for each place of the
    longest row of all replicas; over another axis, what is left must have the same shape on every replica, as for arrays.

    Raises:
      InvalidArgumentError: `axis` is None, or see `sums_over`; parts differ in kind; no numbers.
      ValueError: an axis out of range.

    Source: `tf.reduce_sum` and `tf.reduce_mean` of ragged tensors.
    """
    who = call.text

    def local() -> tuple["RaggedTensor", tuple[int, ...], list[Any], list[Any] | None]:
        """The first part, the axes, and the sums and counts of rows; or all values, if no ragged axis is left."""
        first = _alike(parts, who)
        if first.dtype.kind not in "iufc":
            raise InvalidArgumentError(f"{who}: {op.name} needs numbers, got a ragged tensor of {first.dtype}")
        if axis is None:
            raise InvalidArgumentError(
                f"{who}: ragged tensors of several replicas have no sum element by element, since their rows differ in "
                "length; give axis=0 for the rows, or a tuple with the ragged axes, such as axis=(0, 1), for all values"
            )
        axes, rank = check_axis(axis, first.ndim), first.ragged_rank
        if set(range(rank + 1)) <= set(axes):
            inner = tuple([axis - rank for axis in axes if axis >= rank])
            return first, inner, [part.flat_values for part in parts], None
        wide = added_as(op, first.dtype)
        if deterministic and wide.kind not in "iu":
            raise InvalidArgumentError(
                f"{who}: deterministic=True of ragged tensors needs all ragged axes, {tuple(range(rank + 1))}, got {axis}"
            )
        sums = [ragged_tensor.sums_over(part, axes, wide) for part in parts]
        counts = [ragged_tensor.counts_over(part, axes) for part in parts]
        if any(is_ragged(part) for part in sums):
            raise InvalidArgumentError(
                f"{who}: over axis {axis} the rows of ragged tensors stay ragged, and those of replicas have no sum; add a "
                "ragged axis or axis 0"
            )
        return first, axes, sums, counts

    first, axes, sums, counts = reducer.prepared(local, call.part(" of ragged tensors"))
    if counts is None:
        return reducer.reduce(op, sums, axes, call, deterministic=deterministic)
    if 0 in axes:
        lengths = [np.array([len(part)]) for part in sums]
        width = int(reducer.gather(lengths, 0, call.part(", longest row")).max())
        sums, counts = [_wider(part, width) for part in sums], [_wider(part, width) for part in counts]
    total = reducer.reduce(ReduceOp.SUM, sums, None, call)
    if op is ReduceOp.SUM:
        return total
    rows = reducer.reduce(ReduceOp.SUM, counts, None, call)
    return mean_of_rows(total, rows, first.dtype)


def _alike(parts: Sequence[Any], call: str) -> "RaggedTensor":
    """The first part; all must be of its kind."""
    first = parts[0]
    for i, part in enumerate(parts):
        if not is_ragged(part) or not is_ragged(first) or _kind(part) != _kind(first):
            raise InvalidArgumentError(
                f"{call}: ragged tensors must be of one kind on all replicas, got {_told(first)} on replica 0 and "
                f"{_told(part)} on replica {i}"
            )
    return first  # type: ignore[no-any-return]


def _kind(part: "RaggedTensor") -> tuple[Any, ...]:
    return part.dtype, part.ragged_rank, part.flat_values.shape[1:]


def _told(part: Any) -> str:
    if not is_ragged(part):
        return f"an array of shape {list(np.shape(part))}"
    return f"shape {part.shape} and dtype {part.dtype}"


def _lengths(part: "RaggedTensor") -> list[Any]:
    """The row lengths on all levels."""
    return [splits[1:] - splits[:-1] for splits in part.nested_row_splits]


def _wider(array: Any, width: int) -> Any:
    out = np.zeros((width, *array.shape[1:]), array.dtype)
    out[: len(array)] = array[:width]  # that of a placeholder, which does not count, may have more
    return out


# ---- `reduce` and `gather` of nests whose leaves are distributed values or plain ones


def reduce_nest(
    reducer: LocalReducer,
    replicas: Replicas,
    op: ReduceOp,
    value: Any,
    axis: Any,
    *,
    deterministic: bool = False,
    name: str = "",
) -> Any:
    """The result of `Strategy.reduce`."""

    def total(leaf: Any, path: str) -> Any:
        present = None
        if isinstance(leaf, DistributedValues):
            if leaf.mirrored and axis is None:
                return _mean_of_copies(op, leaf)
            parts, present = leaf.values, present_in(leaf)
        elif axis is not None:
            parts = (leaf,) * replicas.count  # a plain value counts on every replica
        elif replicas.wraps and replicas.count == 1:  # as `run` returns it on a worker with one replica
            parts = (leaf,)
        else:
            return reduce_undistributed(op, leaf, replicas.total)
        whole = ReplicaCall(f"reduce of {path}" if path else "reduce", name, present)
        call = whole.part(":") if path else whole
        if has_slices(parts):
            return reduce_slices(reducer, op, parts, axis, call)
        if any(map(is_ragged, parts)):
            return reduce_ragged(reducer, op, parts, axis, whole, deterministic=deterministic)
        return reducer.reduce(op, parts, axis, call, deterministic=deterministic)

    if isinstance(value, DistributedValues) or value is None:  # of a function that returned nothing
        return total(value, "")
    structure, leaves = replica_leaves(value)
    refuse_sparse_values("reduce", structure)
    paths = structure.paths
    return structure.build([total(leaf, paths[i]) for i, leaf in enumerate(leaves)])


def _mean_of_copies(op: ReduceOp, value: Any) -> Any:
    """The mean of equal copies is any of them; their sum would count the replicas.

    Raises:
      AssertionError: a sum.
    """
    if op is ReduceOp.MEAN:
        return value.value()
    raise AssertionError(
        f"reduce: {value!r} has equal copies, so that their sum would count one value {len(value.values)} times; use MEAN, or "
        "the value itself"
    )


def gather_nest(reducer: LocalReducer, replicas: Replicas, value: Any, axis: Any, *, name: str = "") -> Any:
    """The result of `Strategy.gather`."""
    if isinstance(value, DistributedValues) and not any(is_ragged(x) or has_slices([x]) for x in value.values):
        return reducer.gather(value.values, axis, ReplicaCall("gather", name, present_in(value)))

    def joined(leaf: Any, path: str) -> Any:
        text = f"gather of {path}" if path else "gather"
        several = isinstance(leaf, DistributedValues)
        parts = leaf.values if several else (leaf,)
        if has_slices(parts):
            refuse_gather(text)
        if not several and not (replicas.wraps and replicas.count == 1):
            return leaf
        return gather_values(reducer, parts, axis, ReplicaCall(text, name, present_in(leaf) if several else None))

    structure, leaves = replica_leaves(value)
    refuse_sparse_values("gather", structure)
    paths = structure.paths
    return structure.build([joined(leaf, paths[i]) for i, leaf in enumerate(leaves)])
