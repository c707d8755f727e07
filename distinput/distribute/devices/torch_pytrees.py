# SPDX-License-Identifier: Apache-2.0
"""Distributed values as pytrees of PyTorch: `torch.utils._pytree.tree_map` reaches their components.

Loaded once PyTorch has been imported; see `distinput.distribute`.
"""

from contextlib import suppress

from torch.utils import _pytree

from distinput.distribute.core.values import DistributedValues, Mirrored, PartialPerReplica, PerReplica

__all__: list[str] = []


def _register(kind: type[DistributedValues]) -> None:
    _pytree.register_pytree_node(
        kind,
        lambda value: (list(value.values), None),
        lambda parts, _: kind(tuple(parts)),
        serialized_type_name=f"distinput.distribute.{kind.__name__}",
    )


# A release of PyTorch that registers in another way must still be imported.
with suppress(AttributeError, TypeError):
    _register(PerReplica)
    _register(Mirrored)
    _pytree.register_pytree_node(
        PartialPerReplica,
        lambda value: (list(value.values), value.present),
        lambda parts, present: PartialPerReplica(tuple(parts), present),
        serialized_type_name="distinput.distribute.values.PartialPerReplica",
    )
