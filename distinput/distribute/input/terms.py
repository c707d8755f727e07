# SPDX-License-Identifier: Apache-2.0
"""The properties that all steps of a distributed dataset share, whatever their source."""

from collections.abc import Sequence
from dataclasses import dataclass

from distinput.distribute.input.tail import short
from distinput.distribute.replicas import Replicas

__all__ = ["INFINITE", "UNKNOWN", "Terms"]

INFINITE = -1
UNKNOWN = -2


@dataclass(frozen=True)
class Terms:
    """The properties that all steps of a distributed dataset share, whatever their source.

    Args:
      replicas: the replicas that take the steps.
      cardinality: the cardinality of the dataset as the user gave it.
      keeps_partial: True if `next` delivers a last step in which some replicas have no element.
      steps: the number of steps, if the workers have counted them; None if each sees its end, or they agree on it.
      tail: what happens to a step that is not full.
      full_rows: the number of rows of a full step, if each step has to be checked; else 0.
      open_ends: True if a worker that has no more elements can learn their shape only from others.
      alike: True if all workers have the same pipeline and begin the same passes.
      hints: harmless differences between the pipelines, for the error raised if their elements turn out to differ.
    """

    replicas: Replicas
    cardinality: int
    keeps_partial: bool = True
    steps: int | None = None
    tail: str = "partial"
    full_rows: int = 0
    open_ends: bool = False
    alike: bool = False
    hints: Sequence[str] = ()

    @property
    def agrees(self) -> bool:
        """True if workers can tell the end, or what stands for missing elements, only together."""
        return self.replicas.workers > 1 and self.cardinality != INFINITE and (self.steps is None or self.open_ends)

    def leaves_out(self, rows: int) -> bool:
        """True for a step that is left out because it is not full; it ends the iteration.

        Raises:
          InvalidArgumentError: the step is not full, and tail is "error".
        """
        if rows >= self.full_rows:
            return False
        if self.tail == "error":
            raise short(rows, self.full_rows)
        return True
