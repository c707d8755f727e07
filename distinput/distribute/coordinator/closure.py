# SPDX-License-Identifier: Apache-2.0
"""A scheduled function with its arguments, until it has a result."""

from typing import Any

from distinput.distribute.coordinator.remote_value import RemoteValue
from distinput.errors import CancelledError

__all__ = ["Closure"]


class Closure:
    """A scheduled function, packed once for any number of attempts.

    Args:
      name: the name of the function, for messages.
      packed: the packed `Call`.
      keys: the numbers of the per-worker values among its arguments.
      keep: kept alive until there is a result: the coordinator, and what the function refers to.
    """

    __slots__ = ("epoch", "keep", "keys", "lost", "name", "packed", "result")

    def __init__(self, name: str, packed: Any, keys: tuple[int, ...] = (), keep: Any = None) -> None:
        self.name, self.packed, self.keys, self.keep = name, packed, keys, keep
        self.result = RemoteValue()
        self.lost: list[str] = []
        """The workers that were lost while they ran it."""
        self.epoch = 0

    def cancel(self, reason: str) -> None:
        """Settle it without running it."""
        self.result._fail(
            CancelledError(
                f"The corresponding function is cancelled. Please reschedule the function. ({self.name}: {reason})"
            )
        )
        self.keep = None
