# SPDX-License-Identifier: Apache-2.0
"""What holds of all the steps of a distributed dataset, wherever they come from."""

from collections.abc import Sequence
from dataclasses import dataclass

from distinput.distribute.input.tail import short
from distinput.distribute.replicas import Replicas

__all__ = ["INFINITE", "UNKNOWN", "Terms"]

INFINITE = -1
UNKNOWN = -2


@dataclass(frozen=True)
class Terms:
    """What holds of all the steps of a distributed dataset, wherever they come from.

    Args:
      replicas: which take the steps.
      cardinality: of the dataset as it was given.
      keeps_partial: whether `next` delivers a last step in which some replicas have no element.
      steps: how many steps all workers take, where they have counted them; None where each sees its end, or they agree on it.
      tail: what happens to a step that is not full.
      full_rows: rows of a full step, where each step has to be looked at; else 0.
      alike: all workers have the same pipeline, and begin the same passes.
      hints: what differs between their pipelines all the same; told where their elements turn out to differ.
    """

    replicas: Replicas
    cardinality: int
    keeps_partial: bool = True
    steps: int | None = None
    tail: str = "partial"
    full_rows: int = 0
    alike: bool = False
    hints: Sequence[str] = ()

    @property
    def agrees(self) -> bool:
        """True where workers can tell the end only together."""
        return self.replicas.workers > 1 and self.cardinality != INFINITE and self.steps is None

    def leaves_out(self, rows: int) -> bool:
        """True for a step that is left out because it is not full, which ends the steps.

        Raises:
          InvalidArgumentError: the step is not full, and that is an error.
        """
        if rows >= self.full_rows:
            return False
        if self.tail == "error":
            raise short(rows, self.full_rows)
        return True
