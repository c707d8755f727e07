# SPDX-License-Identifier: Apache-2.0
"""The read-ahead budget: how much the streams of one run may make ahead together."""

import threading

__all__ = ["ReadAheadBudget"]


class ReadAheadBudget:
    """Room for a few pieces of work that wait to be used.

    Args:
      pieces: the most at a time.
      nbytes: the most memory of all of them together; a single piece may take more.

    >>> budget = ReadAheadBudget(pieces=2, nbytes=100)
    >>> budget.enter(70), budget.enter(70), budget.enter(30), budget.enter(0)
    (True, False, True, False)
    """

    def __init__(self, pieces: int, nbytes: int) -> None:
        self.pieces, self.nbytes = pieces, nbytes
        self._pieces = self._bytes = 0
        self._lock = threading.Lock()

    def enter(self, nbytes: int, times: int = 1) -> bool:
        """True when there is room for a piece of work that takes this much memory, which then has to `leave`.

        Args:
          nbytes: its memory.
          times: so many times as many pieces may be there for this one to enter, for those that mostly wait.
        """
        with self._lock:
            if self._pieces >= times * self.pieces or (self._pieces and self._bytes + nbytes > self.nbytes):
                return False
            self._pieces += 1
            self._bytes += nbytes
            return True

    def leave(self, nbytes: int) -> None:
        """The piece is used, or given up."""
        with self._lock:
            self._pieces -= 1
            self._bytes -= nbytes
