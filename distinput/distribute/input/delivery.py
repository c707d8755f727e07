# SPDX-License-Identifier: Apache-2.0
"""The delivery of steps: their spec, padding, and placement on devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distinput.core.spec import LeafSpec, TensorSpec
from distinput.distribute.input.consumer import Consumer
from distinput.distribute.input.dealing import per_replica_spec
from distinput.distribute.input.source import Steps, StepSource
from distinput.distribute.input.steps_ahead import StepsAhead
from distinput.distribute.input.tail import StepPadding
from distinput.distribute.values import PartialPerReplica, PerReplica, marked, replica_leaves

__all__ = ["Delivery"]


@dataclass(frozen=True)
class Delivery:
    """Delivers steps to their consumer: pads them and puts them on devices.

    Args:
      consumer: takes the steps.
      padding: pads each part to the same number of rows; None leaves parts unchanged.
      fetch: put the parts on the devices.
      ahead: how many steps are put on the devices before they are needed.
    """

    consumer: Consumer
    padding: StepPadding | None = None
    fetch: bool = True
    ahead: int = 0

    @property
    def changes(self) -> bool:
        """False if steps are delivered unchanged."""
        return self.padding is not None or self._puts

    @property
    def _puts(self) -> bool:
        return self.fetch and not self.consumer.replicas.devices.host_memory

    def steps(self, source: StepSource, steps: Steps) -> Steps:
        """An iteration whose steps are as they are delivered, some of them made ahead."""
        if not self.changes:
            return steps
        # Agreements between workers must come in the order of the program, so no thread may make them.
        ahead = self.ahead if self._puts and not source.agrees else 0
        devices = self.consumer.replicas.devices
        bind, delivered = getattr(devices, "bind", None), getattr(devices, "delivered", None)
        return StepsAhead(steps, self.finished, max(0, ahead), bind=bind, delivered=delivered if self._puts else None)

    def finished(self, step: Any) -> Any:
        """The step as it is delivered."""
        if self.padding is not None:
            step = self.padding(step)
        return self._put(step) if self._puts else step

    def _put(self, step: Any) -> Any:
        structure, leaves = replica_leaves(step)
        parts = [leaf.values if isinstance(leaf, PerReplica) else (leaf,) for leaf in leaves]
        put_step = getattr(self.consumer.replicas.devices, "put_step", self._put_one_by_one)
        made = [_like(leaf, value) for leaf, value in zip(leaves, put_step(parts), strict=True)]
        return structure.build(made)

    def _put_one_by_one(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        put = self.consumer.replicas.devices.put
        return [PerReplica([put(part, i, owned=True) for i, part in enumerate(parts)]) for parts in leaves]

    def element_spec(self, source: StepSource) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica."""
        replicas, terms = self.consumer.replicas, source.terms
        spec = source.spec if self.padding is None else self.padding.spec
        if not replicas.wraps:
            return spec.nest
        if replicas.workers > 1 and terms.keeps_partial and self.padding is None:
            spec = spec.map(_open_rows)
        return per_replica_spec(spec, replicas.count)


def _like(leaf: Any, put: PerReplica) -> Any:
    """What was put, as a leaf of the same kind."""
    if isinstance(leaf, PartialPerReplica):
        return marked(put, leaf.present)
    return put if isinstance(leaf, PerReplica) else put.values[0]


def _open_rows(leaf: LeafSpec) -> LeafSpec:
    """The spec with an unknown number of rows, since a worker that has run out gets none."""
    return leaf.with_shape((None, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf
