# SPDX-License-Identifier: Apache-2.0
"""Builds a step from one element per replica, with placeholders for replicas that have none."""

from collections.abc import Sequence
from typing import Any

from distinput.core.spec import Spec, TensorSpec
from distinput.distribute.input.dealing import Placeholders, dealer
from distinput.distribute.input.drawing import END
from distinput.distribute.replicas import Replicas
from distinput.distribute.values import PartialPerReplica, PerReplica

__all__ = ["StepBuilder"]


class StepBuilder:
    """Builds steps from one element for each replica of this process.

    Args:
      spec: the spec of the elements.
      replicas: the replicas that they are for.
      seen: the shapes of the last element of a restored iteration.
    """

    __slots__ = ("_deal", "_last", "_replicas", "_seen", "_spec", "_watches", "stand_in")

    def __init__(self, spec: Spec, replicas: Replicas, seen: list[list[int]] | None) -> None:
        self._spec, self._replicas, self._seen = spec, replicas.count, seen
        self._deal = dealer(spec.structure, replicas.count) if replicas.wraps else None
        self.stand_in = Placeholders(spec)
        """Makes the placeholders."""
        self._watches = self.stand_in.watches
        self._last: Any = None

    def __call__(self, parts: list[Any], missing: int, seen: list[list[int]] | None = None) -> Any:
        """Build a step from these elements.

        Args:
          parts: the elements in replica order; `END`, or a missing one at the end, for a replica that has none. The
            list is completed with placeholders.
          missing: how many replicas have none.
          seen: the shapes of the rows of another worker in this step; placeholders take theirs.
        """
        present = self._fill(parts, seen) if missing else None
        if self._watches:
            self._last = parts[-1]
        step = parts[0] if self._deal is None else self._deal(*parts)
        return step if present is None else self._marked(step, present)

    @property
    def seen(self) -> list[list[int]] | None:
        """The shapes of the leaves of the last element; None if placeholders can be made from the spec alone."""
        if self._last is not None:
            self._seen, self._last = self.stand_in.shapes(self._last), None
        return self._seen

    def close(self) -> None:
        """Release the last element."""
        self._last = None

    def _fill(self, parts: list[Any], seen: list[list[int]] | None) -> list[bool]:
        """Put placeholders where there are no elements; return which components are data."""
        present = [part is not END for part in parts] + [False] * (self._replicas - len(parts))
        there = [part for part in parts if part is not END]
        if seen is not None:
            self._seen, self._last = seen, None
        elif self._last is not None or (there and self._watches):
            last = there[-1] if there else self._last
            self._seen, self._last = self.stand_in.shapes(last), None
        empty = self.stand_in.element(self._seen if self._watches else None)
        for i, part in enumerate(parts):
            if part is END:
                parts[i] = empty
        parts.extend([empty] * (self._replicas - len(parts)))
        return present

    def _marked(self, step: Any, present: Sequence[bool]) -> Any:
        """The step, with leaves that have no rows to leave out marked with where there is no data."""
        spec = self._spec
        leaves = [
            PartialPerReplica(value.values, present)
            if isinstance(value, PerReplica) and isinstance(leaf, TensorSpec) and leaf.shape == ()
            else value
            for value, leaf in zip(spec.structure.flatten(step), spec.leaves, strict=True)
        ]
        return spec.structure.build(leaves)
