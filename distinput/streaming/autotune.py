# SPDX-License-Identifier: Apache-2.0
"""What AUTOTUNE has measured about threads for one step of a pipeline, kept from pass to pass."""

from dataclasses import dataclass, field

from distinput.core.run import Run

__all__ = ["AGAIN", "ThreadTrial"]

AGAIN, _SELDOM = 0.5, 60.0
"""Seconds after which a choice is measured again; doubled after each measurement, up to the second figure."""


@dataclass
class ThreadTrial:
    """Whether elements come faster with threads: measured without, then with them, and again from time to time.

    It belongs to a step of the running tree, so a later pass continues where an earlier one stopped, even in the middle of
    a trial. No state holds it, since the elements are the same either way.

    Args:
      blocks: how many blocks are made with threads before the decision.
      gain: threads are kept if an element takes less than this fraction of its time without them.
      alone: seconds per element without threads.
      faster: the last decision.
      not_before: when threads may be tried again.
      until: when elements are measured without threads again, if threads were faster.
      lasts: seconds for which the next decision holds.
    """

    blocks: int
    gain: float
    alone: float = 0.0
    faster: bool = False
    not_before: float = 0.0
    until: float = 0.0
    lasts: float = field(default_factory=lambda: AGAIN)
    _tried: int = 0
    _rows: int = 0
    _seconds: float = 0.0

    def begin(self) -> bool:
        """Begin a pass; True if it should begin with threads, because they were faster, or on trial, in the last one."""
        return not self.again() and (self.faster or self._tried > 0)

    def again(self) -> bool:
        """Whether elements should now be measured without threads again, although threads were faster.

        The time without them may have been measured while something else had the processor.
        """
        if not self.faster or Run.clock() < self.until:
            return False
        self._tried, self._rows, self._seconds = 0, 0, 0.0
        self.hold()
        return True

    def counted(self, rows: int, seconds: float) -> bool | None:
        """Count one more block made with threads; whether they are faster, or None while that is undecided.

        If they were faster and no longer seem to be, something else may have had the processor for a while, so they may be
        tried again at once; after that, only once the decision has held for its time.
        """
        self._tried, self._rows, self._seconds = self._tried + 1, self._rows + rows, self._seconds + seconds
        if self._tried < self.blocks:
            return None
        before, self.faster = self.faster, self._seconds < self.gain * self.alone * self._rows
        self._tried, self._rows, self._seconds = 0, 0, 0.0
        if self.faster != before:
            self.lasts = AGAIN
            self.until = Run.clock() + AGAIN
        elif not self.faster:
            self.not_before = Run.clock() + self.lasts
            self.hold()
        return self.faster

    def hold(self) -> None:
        """Let the next decision hold for twice as long."""
        self.lasts = min(2 * self.lasts, _SELDOM)
        self.until = Run.clock() + self.lasts
