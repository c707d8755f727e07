# SPDX-License-Identifier: Apache-2.0
"""The spec of a leaf that has one component for each replica."""

from typing import Any

__all__ = ["PerReplicaSpec"]


class PerReplicaSpec:
    """Describes a `PerReplica` leaf: one spec for each local replica.

    Args:
      value_specs: the specs in replica order.

    >>> import distinput as di
    >>> di.distribute.PerReplicaSpec(di.TensorSpec([None], "int64"), di.TensorSpec([None], "int64"))
    PerReplicaSpec(TensorSpec(shape=(None,), dtype=int64) × 2 replicas)

    Source: the type spec of the per-replica values of `tf.distribute`.
    """

    __slots__ = ("value_specs",)

    value_specs: tuple[Any, ...]

    def __init__(self, *value_specs: Any) -> None:
        self.value_specs = value_specs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerReplicaSpec) and self.value_specs == other.value_specs

    def __hash__(self) -> int:
        return hash(self.value_specs)

    def __repr__(self) -> str:
        specs = self.value_specs
        if len(specs) > 1 and all(spec == specs[0] for spec in specs):
            return f"PerReplicaSpec({specs[0]!r} × {len(specs)} replicas)"
        return f"PerReplicaSpec({', '.join(map(repr, specs))})"
