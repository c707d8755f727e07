# SPDX-License-Identifier: Apache-2.0
"""The read-ahead budget: how much the streams of one run may make ahead together."""

import threading

__all__ = ["ReadAheadBudget"]


_WAITING_PIECES, _WAITING_BYTES = 5, 2
"""How many times as many pieces, and as much memory, there may be of those that wait for a network: a core has nothing to do
meanwhile, and 64 MB are what a network of 1.2 GB/s sends within the 50 ms that a request to an object store takes."""


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

    def most(self, *, waits: bool) -> int:
        """The most pieces at a time; there may be more that wait for a network."""
        return self.pieces * _WAITING_PIECES if waits else self.pieces

    def enter(self, nbytes: int, *, waits: bool = False) -> bool:
        """True when there is room for a piece of work that takes this much memory, which then has to `leave`.

        Args:
          nbytes: its memory.
          waits: true if it mostly waits for a network, so that there may be more of its kind.
        """
        room = self.nbytes * _WAITING_BYTES if waits else self.nbytes
        with self._lock:
            if self._pieces >= self.most(waits=waits) or (self._pieces and self._bytes + nbytes > room):
                return False
            self._pieces += 1
            self._bytes += nbytes
            return True

    def leave(self, nbytes: int) -> None:
        """The piece is used, or given up."""
        with self._lock:
            self._pieces -= 1
            self._bytes -= nbytes
