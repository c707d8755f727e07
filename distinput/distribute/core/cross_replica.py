# SPDX-License-Identifier: Apache-2.0
"""`reduce` and `gather` of nests whose leaves are distributed values, ragged tensors, or plain ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.distribute.core.reducer import ReplicaReducer
from distinput.distribute.core.reduction import ReduceOp, check_axis, mean_of_rows, reduce_undistributed, wide_dtype
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.sliced import has_slices, reduce_slices, refuse_gather
from distinput.distribute.core.values import DistributedValues, present_in, refuse_sparse_values, replica_leaves
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import is_ragged
from distinput.values.ragged_rows import splits_of
from distinput.values.ragged_tensor import RaggedTensor, counts_over, sums_over

__all__ = ["gather_nest", "gather_ragged", "reduce_nest", "reduce_ragged"]

# ---- `reduce` and `gather` of ragged tensors: of their values and row lengths, which are arrays


def gather_ragged(reducer: ReplicaReducer, parts: Sequence[Any], axis: Any, *, call: str, name: str) -> RaggedTensor:
    """The rows of all replicas, one after the other.

    Raises:
      InvalidArgumentError: another axis than 0; parts differ in dtype, in what is ragged, or in the shape of a value.
    """
    first = _alike(parts, call)
    if not isinstance(axis, int | np.integer) or int(axis) not in (0, -first.ndim):
        raise InvalidArgumentError(f"{call}: ragged tensors are gathered along axis 0, their rows, got axis {axis}")
    levels = zip(*[_lengths(part) for part in parts], strict=True)
    lengths = [reducer.gather(each, 0, call=f"{call}, row lengths", name=name) for each in levels]
    made = reducer.gather([part.flat_values for part in parts], 0, call=call, name=name)
    for each in reversed(lengths):
        made = RaggedTensor(made, splits_of(each))
    return made  # type: ignore[no-any-return]


def reduce_ragged(
    reducer: ReplicaReducer, op: ReduceOp, parts: Sequence[Any], axis: Any, *, deterministic: bool, call: str, name: str
) -> Any:
    """The sum or mean over some axes and over all replicas; the mean divides by the true number of values.

    Over all ragged dimensions it is that of the values. Over the rows alone, axis 0, it has a value for each place of the
    longest row of all replicas; over another axis, what is left must have the same shape on every replica, as for arrays.

    Raises:
      InvalidArgumentError: `axis` is None, or see `sums_over`; parts differ in kind; no numbers.
      ValueError: an axis out of range.

    Source: `tf.reduce_sum` and `tf.reduce_mean` of ragged tensors.
    """
    first = _alike(parts, call)
    if first.dtype.kind not in "iufc":
        raise InvalidArgumentError(f"{call}: {op.name} needs numbers, got a ragged tensor of {first.dtype}")
    if axis is None:
        raise InvalidArgumentError(
            f"{call}: ragged tensors of several replicas have no sum element by element, since their rows differ in length; "
            "give axis=0 for the rows, or a tuple with the ragged axes, such as axis=(0, 1), for all values"
        )
    axes, rank = check_axis(axis, first.ndim), first.ragged_rank
    if set(range(rank + 1)) <= set(axes):
        inner = tuple([axis - rank for axis in axes if axis >= rank])
        flat = [part.flat_values for part in parts]
        return reducer.reduce(op, flat, inner, deterministic=deterministic, call=call, name=name)
    if deterministic and first.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"{call}: deterministic=True of ragged tensors needs all ragged axes, {tuple(range(rank + 1))}, got {axis}"
        )
    wide = first.dtype if op is ReduceOp.SUM else wide_dtype(first.dtype)
    sums, counts = [sums_over(part, axes, wide) for part in parts], [counts_over(part, axes) for part in parts]
    if any(isinstance(part, RaggedTensor) for part in sums):
        raise InvalidArgumentError(
            f"{call}: over axis {axis} the rows of ragged tensors stay ragged, and those of replicas have no sum; add a ragged "
            "axis or axis 0"
        )
    if 0 in axes:
        longest = reducer.gather([np.array([len(part)]) for part in sums], 0, call=f"{call}, longest row", name=name)
        width = int(longest.max())
        sums, counts = [_wider(part, width) for part in sums], [_wider(part, width) for part in counts]
    total = reducer.reduce(ReduceOp.SUM, sums, None, call=call, name=name)
    if op is ReduceOp.SUM:
        return total
    return mean_of_rows(total, reducer.reduce(ReduceOp.SUM, counts, None, call=call, name=name), first.dtype)


def _alike(parts: Sequence[Any], call: str) -> RaggedTensor:
    """The first part; all must be of its kind."""
    first = parts[0]
    for i, part in enumerate(parts):
        if not isinstance(part, RaggedTensor) or not isinstance(first, RaggedTensor) or _kind(part) != _kind(first):
            raise InvalidArgumentError(
                f"{call}: ragged tensors must be of one kind on all replicas, got {_told(first)} on replica 0 and "
                f"{_told(part)} on replica {i}"
            )
    return first  # type: ignore[no-any-return]


def _kind(part: RaggedTensor) -> tuple[Any, ...]:
    return part.dtype, part.ragged_rank, part.flat_values.shape[1:]


def _told(part: Any) -> str:
    if not isinstance(part, RaggedTensor):
        return f"an array of shape {list(np.shape(part))}"
    return f"shape {part.shape} and dtype {part.dtype}"


def _lengths(part: RaggedTensor) -> list[Any]:
    """The row lengths on all levels."""
    return [splits[1:] - splits[:-1] for splits in part.nested_row_splits]


def _wider(array: Any, width: int) -> Any:
    out = np.zeros((width, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


# ---- `reduce` and `gather` of nests whose leaves are distributed values or plain ones


def reduce_nest(
    reducer: ReplicaReducer,
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
        call = f"reduce of {path}:" if path else "reduce"
        if has_slices(parts):
            return reduce_slices(reducer, op, parts, axis, present=present, call=call, name=name)
        if any(map(is_ragged, parts)):
            return reduce_ragged(
                reducer, op, parts, axis, deterministic=deterministic, call=call.rstrip(":"), name=name
            )
        return reducer.reduce(op, parts, axis, deterministic=deterministic, present=present, call=call, name=name)

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


def gather_nest(reducer: ReplicaReducer, replicas: Replicas, value: Any, axis: Any, *, name: str = "") -> Any:
    """The result of `Strategy.gather`."""
    if isinstance(value, DistributedValues) and not any(is_ragged(x) or has_slices([x]) for x in value.values):
        return reducer.gather(value.values, axis, present=present_in(value), name=name)

    def joined(leaf: Any, path: str) -> Any:
        call = f"gather of {path}" if path else "gather"
        if has_slices(leaf.values if isinstance(leaf, DistributedValues) else [leaf]):
            refuse_gather(call)
        if is_ragged(leaf) and replicas.wraps and replicas.count == 1:
            return gather_ragged(reducer, [leaf], axis, call=call, name=name)
        if isinstance(leaf, DistributedValues):
            if any(map(is_ragged, leaf.values)):
                return gather_ragged(reducer, leaf.values, axis, call=call, name=name)
            return reducer.gather(leaf.values, axis, present=present_in(leaf), call=call, name=name)
        if replicas.wraps and replicas.count == 1:
            return reducer.gather([leaf], axis, call=call, name=name)
        return leaf

    structure, leaves = replica_leaves(value)
    refuse_sparse_values("gather", structure)
    paths = structure.paths
    return structure.build([joined(leaf, paths[i]) for i, leaf in enumerate(leaves)])
