# SPDX-License-Identifier: Apache-2.0
"""Passes over a dataset, counted so that each one can be shuffled differently."""

import os
from typing import Any

from distinput.plan.node import Node

__all__ = ["Passes"]


class Passes:
    """Counts the passes begun over a dataset."""

    def __init__(self) -> None:
        self.begun = 0
        self.process = os.getpid()
        self.taken_over: tuple[Node, Node, Any] | None = None
        """A tree whose seeds a restored state has others for; the tree with those, and what runs for it."""

    def begin(self, node: Node, number: int | None = None) -> int:
        """The number of the pass over `node` that begins now: `number`, or the one after the latest pass."""
        if self.process != os.getpid():  # the counter of another process does not apply here
            from distinput.data.loader import first_pass, look_around

            self.process = os.getpid()
            look_around(node)
            if number is None:
                self.begun = first_pass(node, self.begun)
        elif number is not None and number == self.begun - 1:
            from distinput.data.loader import look_again

            look_again(node, number)
        self.begun = (self.begun if number is None else number) + 1
        return self.begun - 1

    def goes_on(self, number: int) -> None:
        """Pass `number` continues from a saved state; the next pass is the one after it."""
        self.begun = number + 1
