# SPDX-License-Identifier: Apache-2.0
"""The time by which a call must end."""

import time

__all__ = ["Deadline"]


class Deadline:
    """A point in time, `seconds` from now.

    Args:
      seconds: at least 0.

    Raises:
      ValueError: it is not such a number.
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not seconds >= 0:
            raise ValueError(f"timeout must be a number of seconds, at least 0, got {seconds!r}")
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())
