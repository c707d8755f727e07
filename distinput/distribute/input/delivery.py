# SPDX-License-Identifier: Apache-2.0
"""The delivery of steps: their spec, padding, and placement on devices."""

from dataclasses import dataclass
from typing import Any

from distinput.core.nest import map_leaves
from distinput.core.spec import LeafSpec, TensorSpec
from distinput.distribute.input.consumer import Consumer
from distinput.distribute.input.dealing import per_replica_spec
from distinput.distribute.input.source import Source
from distinput.distribute.input.tail import Padding
from distinput.distribute.values import PerReplica

__all__ = ["Delivery"]


@dataclass(frozen=True)
class Delivery:
    """Delivers steps to their consumer: pads them and puts them on devices.

    Args:
      consumer: takes the steps.
      padding: pads each part to the same number of rows; None leaves parts unchanged.
      fetch: put the parts on the devices.
    """

    consumer: Consumer
    padding: Padding | None = None
    fetch: bool = True

    @property
    def changes(self) -> bool:
        """False if steps are delivered unchanged."""
        return self.padding is not None or self._puts

    @property
    def _puts(self) -> bool:
        return self.fetch and not self.consumer.replicas.devices.host_memory

    def finished(self, step: Any) -> Any:
        """The step as it is delivered."""
        if self.padding is not None:
            step = self.padding(step)
        return map_leaves(self._put, step, lists=True) if self._puts else step

    def _put(self, value: Any) -> Any:
        put = self.consumer.replicas.devices.put
        if isinstance(value, PerReplica):
            return PerReplica([put(part, i, owned=True) for i, part in enumerate(value.values)])
        return put(value, 0, owned=True)

    def element_spec(self, source: Source) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica."""
        replicas, terms = self.consumer.replicas, source.terms
        spec = source.spec if self.padding is None else self.padding.spec
        if not replicas.wraps:
            return spec.nest
        if replicas.workers > 1 and terms.keeps_partial and self.padding is None:
            spec = spec.map(_open_rows)
        return per_replica_spec(spec, replicas.count)


def _open_rows(leaf: LeafSpec) -> LeafSpec:
    """The spec with an unknown number of rows, since a worker that has run out gets none."""
    return leaf.with_shape((None, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf
