# SPDX-License-Identifier: Apache-2.0
"""The errors of distinput, with the names of `tf.errors` so that ported `except` clauses keep working.

Each one is also the Python error nearest to it (`InvalidArgumentError` is a `ValueError`), so code that knows nothing of
TensorFlow can catch what it expects.
"""

from collections.abc import Iterable

__all__ = [
    "Aborted",
    "AbortedError",
    "CancelledError",
    "CollectiveError",
    "CollectiveTimeout",
    "DataLossError",
    "DistinputError",
    "ElementTypeError",
    "EngineMissing",
    "FailedPreconditionError",
    "InputWarning",
    "InvalidArgumentError",
    "Mismatch",
    "NoMatchError",
    "NotFoundError",
    "OutOfRangeError",
    "PeerLost",
    "Poisoned",
    "StateError",
    "UnavailableError",
    "UnimplementedError",
]


class DistinputError(Exception):
    """Any error that distinput itself raises about data, files or their distribution."""


class InvalidArgumentError(DistinputError, ValueError):
    """An argument or an element does not have the value or shape that the op needs."""


class NotFoundError(DistinputError, FileNotFoundError):
    """A file, or a source that can be sharded, does not exist."""


class NoMatchError(NotFoundError, InvalidArgumentError):
    """No file matches a pattern: an invalid argument to TensorFlow, a missing file to Python."""


class ElementTypeError(InvalidArgumentError, TypeError):
    """An element, or the result of a function, has another type than the op needs; an invalid argument to TensorFlow."""


class DataLossError(DistinputError, ValueError):
    """A file is damaged: a checksum differs, or it ends in the middle of a record."""


class OutOfRangeError(DistinputError, IndexError):
    """A call needs one more element, and the data has ended."""


class FailedPreconditionError(DistinputError, RuntimeError):
    """A precondition of the call does not hold."""


class CancelledError(DistinputError, RuntimeError):
    """The iteration was closed while a call was waiting."""


class AbortedError(DistinputError, RuntimeError):
    """Another replica failed, so this one cannot go on."""


class UnavailableError(DistinputError, ConnectionError):
    """A worker process that has work to do has ended."""


class UnimplementedError(DistinputError, NotImplementedError):
    """TensorFlow supports this case and distinput does not; the message says what to use instead."""


class StateError(DistinputError, ValueError):
    """A saved state does not belong to this pipeline, or was written by an unknown version."""


class InputWarning(UserWarning):
    """Elements are probably lost, repeated, or always in the same order; the message says why, and what to do.

    Filters of the module `warnings` silence it or turn it into an error.
    """


class CollectiveError(DistinputError, RuntimeError):
    """A call in which all workers take part did not succeed."""


class Mismatch(CollectiveError):
    """The workers, or the replicas of one, did not make the same call. Raised on every worker, with what each one called.

    Nothing was added up. Further calls work, unless workers wait for one another in different calls, as the message says then.
    """


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
