# SPDX-License-Identifier: Apache-2.0
"""The read-ahead budget: how much the streams of one run may make ahead together."""

import threading

__all__ = ["ReadAheadBudget"]


_WAITING_PIECES, _WAITING_BYTES, _UNDER_WAY = 8, 4, 5
"""How many times as many pieces, and as much memory, there may be of those that wait for a network, and how many times as many
of these are under way, in half of the memory: a core has nothing to do meanwhile, and 64 MB are what a network of 1.2 GB/s
sends within the 50 ms that a request to an object store takes.

Pieces that share a network arrive together. If all that there is room for were under way, the network would be idle from then
on until the first of them are used. So the others wait to be requested, each when another has arrived.
"""


class ReadAheadBudget:
    """Room for a few pieces of work that wait to be used.

    Args:
      pieces: the most at a time.
      nbytes: the most memory of all of them together; a single piece may take more.

    >>> budget = ReadAheadBudget(pieces=2, nbytes=100)
    >>> budget.enter(70), budget.enter(70), budget.enter(30), budget.enter(0)
    (True, False, True, False)
    >>> [budget.under_way(size, waits=True) for size in (10, 40, 400)]
    [10, 5, 2]
    """

    def __init__(self, pieces: int, nbytes: int) -> None:
        self.pieces, self.nbytes = pieces, nbytes
        self._pieces = self._bytes = 0
        self._lock = threading.Lock()

    def most(self, *, waits: bool) -> int:
        """The most pieces at a time; there may be more that wait for a network."""
        return self.pieces * _WAITING_PIECES if waits else self.pieces

    def under_way(self, nbytes: int, *, waits: bool) -> int:
        """How many pieces of this memory are made at the same time; the others wait for their turn."""
        if not waits:
            return self.pieces
        return min(self.pieces * _UNDER_WAY, max(self.pieces, self.nbytes * _WAITING_BYTES // (2 * max(1, nbytes))))

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
