# SPDX-License-Identifier: Apache-2.0
"""Distributed values as pytrees of JAX: `jax.tree.map` reaches their components, and jitted functions take and return them.

Loaded once JAX has been imported; see `distinput.distribute`.
"""

from collections.abc import Sequence
from typing import Any

import jax

from distinput.distribute.core.values import DistributedValues, Mirrored, PartialPerReplica, PerReplica


def register_pytree(kind: type[DistributedValues], made: type[DistributedValues] | None = None) -> None:
    """Make a class of distributed values a pytree, whose children are the components in replica order.

    Args:
      kind: the class.
      made: what is made of other components, as by `jax.tree.map`; None for the same class.
    """
    cls = made or kind

    def with_keys(value: DistributedValues) -> tuple[list[tuple[Any, Any]], None]:
        return [(jax.tree_util.SequenceKey(i), part) for i, part in enumerate(value.values)], None

    def flat(value: DistributedValues) -> tuple[Sequence[Any], None]:
        return value.values, None

    jax.tree_util.register_pytree_with_keys(kind, with_keys, lambda _, parts: cls(parts), flat)


def _partial_with_keys(value: PartialPerReplica) -> tuple[list[tuple[Any, Any]], tuple[bool, ...]]:
    return [(jax.tree_util.SequenceKey(i), part) for i, part in enumerate(value.values)], value.present


register_pytree(PerReplica)
register_pytree(Mirrored)
jax.tree_util.register_pytree_with_keys(
    PartialPerReplica, _partial_with_keys, lambda present, parts: PartialPerReplica(parts, present)
)
