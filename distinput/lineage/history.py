# SPDX-License-Identifier: Apache-2.0
"""The steps that a model has seen, from the entries of a ledger: what was made in vain before a restart is left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from distinput.core.state import State
from distinput.lineage.entries import Entry

__all__ = ["History", "PassSegment"]


@dataclass(frozen=True)
class PassSegment:
    """Consecutive steps of one pass, taken by one job.

    Args:
      epoch: of which pass.
      first: the number of the first step in that pass.
      steps: how many there are.
      told: what the ledger holds about the job: "workers", "replicas", its "state", and the "inputs" before step "at", which is
        an earlier one than its first if steps in between were left out.
      began: at which step of the pass the job began or went on.
      inputs: the states after each step since then, if the ledger keeps them.
    """

    epoch: int
    first: int
    steps: int
    told: Mapping[str, Any]
    began: int
    inputs: Sequence[list[State]] = ()

    @property
    def stop(self) -> int:
        """The number of the step behind the last one."""
        return self.first + self.steps

    def inputs_before(self, step: int) -> tuple[int, list[State]]:
        """The states that the ledger keeps of the last place before a step of the pass, and before which step that is."""
        if step == self.began or not self.inputs:
            return self.told.get("at", self.began), list(self.told["inputs"])
        return step, self.inputs[step - self.began - 1]


@dataclass(frozen=True)
class History:
    """The parts that make up what a model has seen, in order.

    Args:
      parts: none of them empty.
    """

    parts: tuple[PassSegment, ...]

    @staticmethod
    def of(entries: Iterable[Entry]) -> "History":
        """What counts of these entries: a part takes the place of what was written from its beginning on."""
        parts: list[PassSegment] = []
        kept: list[list[State]] = []
        for entry in entries:
            if entry.begin is not None:
                epoch, step = entry.begin["epoch"], entry.begin["step"]
                parts = [short for part in parts if (short := _before(part, epoch, step)) is not None]
                kept = []
                parts.append(PassSegment(epoch, step, 0, entry.begin, step, kept))
            elif parts:
                parts[-1] = replace(parts[-1], steps=parts[-1].steps + 1)
                if entry.inputs is not None:
                    kept.append(entry.inputs)
        return History(tuple([part for part in parts if part.steps]))

    def __len__(self) -> int:
        return sum(part.steps for part in self.parts)

    def part_of(self, number: int) -> tuple[PassSegment, int]:
        """The part that holds a step, and the number of the step in its pass.

        Args:
          number: of the step among all, from 0 on; negative: from the end.

        Raises:
          IndexError: there is no such step.
        """
        left = number + len(self) if number < 0 else number
        if left >= 0:
            for part in self.parts:
                if left < part.steps:
                    return part, part.first + left
                left -= part.steps
        raise IndexError(f"ledger: there is no step {number} among the {len(self)} that it holds")


def _before(part: PassSegment, epoch: int, step: int) -> PassSegment | None:
    """What is left of a part in front of a place."""
    if (part.epoch, part.stop) <= (epoch, step) or part.epoch < epoch:
        return part
    if (part.epoch, part.first) >= (epoch, step):
        return None
    return replace(part, steps=step - part.first)
