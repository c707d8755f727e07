# SPDX-License-Identifier: Apache-2.0
"""`reduce` and `gather` of nests whose leaves are distributed values or plain ones."""

from typing import Any

from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import reduce_undistributed
from distinput.distribute.replicas import Replicas
from distinput.distribute.values import DistributedValues, present_in, replica_leaves

__all__ = ["gather_nest", "reduce_nest"]


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
    """The result of `Strategy.reduce`.

    Raises:
      TypeError: a nest together with an axis.
    """
    if isinstance(value, DistributedValues):
        return arithmetic.reduce(
            op, value.values, axis, deterministic=deterministic, present=present_in(value), name=name
        )
    structure, leaves = replica_leaves(value)
    if axis is not None:
        if not structure.is_leaf:
            raise TypeError(f"reduce: with an axis the value must be a single one, got the structure {structure}")
        return arithmetic.reduce(op, [value] * replicas.count, axis, deterministic=deterministic, name=name)

    def total(leaf: Any, path: str) -> Any:
        if isinstance(leaf, DistributedValues):
            parts, present = leaf.values, present_in(leaf)
        elif replicas.wraps and replicas.count == 1:  # as `run` returns it on a worker with one replica
            parts, present = (leaf,), None
        else:
            return reduce_undistributed(op, leaf, replicas.total)
        call = f"reduce of {path}:" if path else "reduce"
        return arithmetic.reduce(op, parts, None, deterministic=deterministic, present=present, call=call, name=name)

    paths = structure.paths
    return structure.build([total(leaf, paths[i]) for i, leaf in enumerate(leaves)])


def gather_nest(arithmetic: Arithmetic, replicas: Replicas, value: Any, axis: Any, *, name: str = "") -> Any:
    """The result of `Strategy.gather`."""
    if isinstance(value, DistributedValues):
        return arithmetic.gather(value.values, axis, present=present_in(value), name=name)

    def joined(leaf: Any, path: str) -> Any:
        call = f"gather of {path}" if path else "gather"
        if isinstance(leaf, DistributedValues):
            return arithmetic.gather(leaf.values, axis, present=present_in(leaf), call=call, name=name)
        if replicas.wraps and replicas.count == 1:
            return arithmetic.gather([leaf], axis, call=call, name=name)
        return leaf

    structure, leaves = replica_leaves(value)
    paths = structure.paths
    return structure.build([joined(leaf, paths[i]) for i, leaf in enumerate(leaves)])
