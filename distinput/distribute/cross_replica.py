# SPDX-License-Identifier: Apache-2.0
"""`reduce` and `gather` of nests whose leaves are distributed values or plain ones."""

from collections.abc import Sequence
from typing import Any

from distinput.core.leaves import is_ragged
from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.ragged_values import gather_ragged, reduce_ragged
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import reduce_undistributed
from distinput.distribute.replicas import Replicas
from distinput.distribute.sliced_values import has_slices, reduce_slices, refuse_gather
from distinput.distribute.values import DistributedValues, present_in, refuse_sparse_values, replica_leaves
from distinput.distribute.variables.indexed_slices import IndexedSlices
from distinput.distribute.variables.policy import VariableAggregation, reduce_op_of

__all__ = ["aggregate", "gather_nest", "reduce_nest"]


def reduce_nest(
    arithmetic: Arithmetic,
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
            return reduce_slices(arithmetic, op, parts, axis, present=present, call=call, name=name)
        if any(map(is_ragged, parts)):
            return reduce_ragged(
                arithmetic, op, parts, axis, deterministic=deterministic, call=call.rstrip(":"), name=name
            )
        return arithmetic.reduce(op, parts, axis, deterministic=deterministic, present=present, call=call, name=name)

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


def gather_nest(arithmetic: Arithmetic, replicas: Replicas, value: Any, axis: Any, *, name: str = "") -> Any:
    """The result of `Strategy.gather`."""
    if isinstance(value, DistributedValues) and not any(is_ragged(x) or has_slices([x]) for x in value.values):
        return arithmetic.gather(value.values, axis, present=present_in(value), name=name)

    def joined(leaf: Any, path: str) -> Any:
        call = f"gather of {path}" if path else "gather"
        if has_slices(leaf.values if isinstance(leaf, DistributedValues) else [leaf]):
            refuse_gather(call)
        if is_ragged(leaf) and replicas.wraps and replicas.count == 1:
            return gather_ragged(arithmetic, [leaf], axis, call=call, name=name)
        if isinstance(leaf, DistributedValues):
            if any(map(is_ragged, leaf.values)):
                return gather_ragged(arithmetic, leaf.values, axis, call=call, name=name)
            return arithmetic.gather(leaf.values, axis, present=present_in(leaf), call=call, name=name)
        if replicas.wraps and replicas.count == 1:
            return arithmetic.gather([leaf], axis, call=call, name=name)
        return leaf

    structure, leaves = replica_leaves(value)
    refuse_sparse_values("gather", structure)
    paths = structure.paths
    return structure.build([joined(leaf, paths[i]) for i, leaf in enumerate(leaves)])


def aggregate(
    arithmetic: Arithmetic, replicas: Replicas, aggregation: VariableAggregation, given: Sequence[Any]
) -> Any:
    """The aggregate of the values that the replicas of this process, and those of the other workers, write to a variable.

    The very same object on all replicas is its own mean; a sum of it is refused, since it may be meant to count once.

    Raises:
      ValueError: a sum of a plain value other than zero.
    """
    call = "write to a variable"
    if isinstance(given[0], IndexedSlices):
        return _aggregate_slices(arithmetic, replicas, aggregation, given)
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return given[0] if replicas.peers is None else arithmetic.first(given, call=call)
    op = reduce_op_of(aggregation)
    if replicas.peers is None and all(part is given[0] for part in given):
        return reduce_undistributed(op, given[0], replicas.total, _NUMBERS)
    return arithmetic.reduce(op, given, None, call=call)


_NUMBERS = (
    "write a NumPy value, such as np.float32(x), if that of each replica counts, or use MEAN or ONLY_FIRST_REPLICA"
)


def _aggregate_slices(
    arithmetic: Arithmetic, replicas: Replicas, aggregation: VariableAggregation, given: Sequence[Any]
) -> Any:
    """The rows of all replicas one after the other; for a mean, divided by the number of replicas."""
    call = "write to a variable"
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return given[0] if replicas.peers is None else given[0].map(lambda array: arithmetic.first([array], call=call))
    parts = [IndexedSlices(*arithmetic.on_host([part.values, part.indices])) for part in given]
    return reduce_slices(arithmetic, reduce_op_of(aggregation), parts, None, call=call)
