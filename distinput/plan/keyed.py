# SPDX-License-Identifier: Apache-2.0
"""Steps that collect elements of their input by key."""

from dataclasses import dataclass
from typing import ClassVar

from distinput.core.state import State
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.plan.state_form import is_count

__all__ = ["Keyed"]


@dataclass(frozen=True, eq=False)
class Keyed(Node):
    """A step that sends something for each group of elements with the same key, as soon as there are enough of them.

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

    def state_misfit(self, state: State) -> str | None:
        sent, failures = state["sent"], state.get("failures", [0, 0])
        pairs = all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_integer, pair)) for pair in sent)
        fits = isinstance(failures, list | tuple) and len(failures) == 2 and all(map(is_count, failures))
        keys = state["flushed"] is None or _is_integer(state["flushed"])
        made = state["inner"] is None or isinstance(state["inner"], dict)
        return (
            None
            if pairs and fits and keys and made
            else f"{self.op}: 'sent', 'flushed', 'failures' or 'inner' is damaged"
        )

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


def _is_integer(value: object) -> bool:
    return is_count(value, -(1 << 63))
