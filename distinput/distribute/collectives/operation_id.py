# SPDX-License-Identifier: Apache-2.0
"""Identifies the operation that a worker waits in, in the same way on all workers."""

from dataclasses import dataclass

__all__ = ["OperationId"]


@dataclass(frozen=True, slots=True)
class OperationId:
    """An operation of a group.

    Args:
      kind: "call" or "agree": calls and agreements are numbered separately.
      group: the name of the group.
      number: how many operations of the kind the group has started before.
    """

    kind: str
    group: str
    number: int

    @property
    def stream(self) -> str:
        """The sequence of operations that this one belongs to."""
        return f"{self.kind} {self.group}"
