# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between the workers of a job, as errors that every engine raises alike."""

from collections.abc import Iterable

from distinput.errors import AbortedError, DistinputError

__all__ = [
    "Aborted",
    "ChannelLost",
    "CollectiveError",
    "CollectiveTimeout",
    "EngineMissing",
    "Mismatch",
    "PeerLost",
    "Poisoned",
]


class CollectiveError(DistinputError, RuntimeError):
    """A call in which all workers take part did not succeed."""


class Mismatch(CollectiveError):
    """The workers did not make the same call. Raised on every worker; nothing was sent and the group can be used."""


class PeerLost(CollectiveError):
    """A worker died, or left while others needed it.

    Args:
      message: who waited for what, and what is known.
      rank: the worker that is gone, None when it cannot be told.
    """

    def __init__(self, message: str, rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank


class Aborted(PeerLost, AbortedError):
    """A worker told the others that it cannot go on; `rank` is that worker, `reason` what it said.

    Args:
      message: who waited for what, and the reason.
      rank: the worker that gave up.
      reason: its own words.
    """

    def __init__(self, message: str, rank: int | None = None, reason: str = "") -> None:
        super().__init__(message, rank)
        self.reason = reason


class CollectiveTimeout(CollectiveError, TimeoutError):
    """Not all workers came within the time.

    Args:
      message: who waited for what, and for how long.
      ranks: the workers that had not come, as far as is known.
    """

    def __init__(self, message: str, ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


class Poisoned(CollectiveError):
    """The group failed before and cannot be used any more; raised at once, without asking anybody."""


class EngineMissing(CollectiveError, ImportError):
    """The package of an engine is not installed, or nothing says which engine to use; the message says what to do."""


class ChannelLost(Exception):
    """What a channel raises when its engine reports a failure; `Collectives` finds out whose it is."""
