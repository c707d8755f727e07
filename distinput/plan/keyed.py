# SPDX-License-Identifier: Apache-2.0
"""Steps that collect elements of their input by a key."""

from dataclasses import dataclass
from typing import ClassVar

from distinput.core.state import State
from distinput.plan.node import INFINITE, UNKNOWN, Node

__all__ = ["Keyed"]


@dataclass(frozen=True, eq=False)
class Keyed(Node):
    """A step that sends something for each group of elements with one key, as soon as there are enough of them.

    State: positions only. `input` and `skip`: where the oldest element that waits stands, and `from`: its number. `row`: how
    many elements were looked at. `sent`: up to which of them those of each key were sent, where that is not `from`. At the
    end of the input `flushed`: the last key whose rest was sent. `inner`: where what is made of a group stands. `failures`: how
    many there were before that oldest element, and in all.
    """

    tolerant: ClassVar[bool] = True
    input: Node

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

    def start(self, epoch: int) -> State:
        return {
            "epoch": epoch,
            "input": self.input.start(epoch),
            "skip": 0,
            "from": 0,
            "row": 0,
            "sent": [],
            "flushed": None,
            "inner": None,
        }
