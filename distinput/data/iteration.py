# SPDX-License-Identifier: Apache-2.0
"""An iteration: the stream that is being read, and the run that its threads share."""

from distinput.core.ending import Ending
from distinput.core.run import Run
from distinput.core.state import State
from distinput.plan.node import Node

__all__ = ["Iteration"]


class Iteration(Ending):
    """What an iterator reads from. It does not refer to the iterator, so dropping the iterator ends the iteration.

    Args:
      node: the tree that runs.
      state: the position to begin at.
      run: its threads and counters.
    """

    __slots__ = ("run", "stream")

    def __init__(self, node: Node, state: State, run: Run) -> None:
        self.run = run
        self.stream = node.open(state, run)
        self.begun()

    def end(self, patience: float | None) -> None:
        self.run.cancel()
        try:
            if not getattr(self.stream, "gi_running", False):  # otherwise the thread that is in it finds it cancelled
                self.stream.close()  # type: ignore[attr-defined]
        finally:
            self.run.close(patience)
