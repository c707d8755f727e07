# SPDX-License-Identifier: Apache-2.0
"""The errors of distinput, with the names of `tf.errors` so that ported `except` clauses keep working.

Each one is also the Python error nearest to it (`InvalidArgumentError` is a `ValueError`), so code that knows nothing of
TensorFlow can catch what it expects.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from distinput.names.lazy import without_secrets

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class DistinputError(Exception):
    """Any error that distinput itself raises about data, files or their distribution; `OpError` is its name in TensorFlow.

    Every error is made from one message, as libraries that carry errors between processes make them. TensorFlow's order,
    `(node_def, op, message)`, is taken too, so that `raise tf.errors.NotFoundError(None, None, "no such user")` can stay.

    Args:
      *args: the message, or the arguments of TensorFlow, or those of the error of Python that this one is as well.
      message: the message, by name.

    Attributes:
      error_code: TensorFlow's number for errors of this class.
      node_def, op: None: there is no graph; the message says which step failed, and where it was made.

    >>> str(InvalidArgumentError(message="no")), str(InvalidArgumentError(None, None, "no"))
    ('no', 'no')
    """

    error_code: int = UNKNOWN
    node_def: None = None
    op: None = None

    def __init__(self, *args: Any, message: str | None = None) -> None:
        if message is not None:
            args = (message,)
        elif len(args) in (3, 4) and not isinstance(args[0], int):  # TensorFlow's; Python's begin with an errno
            args = (args[2],)
        super().__init__(*[without_secrets(each) if isinstance(each, str) else each for each in args])

    def add_note(self, note: str) -> None:
        """Add a sentence, which is printed after the message. Secrets in URLs are cut out of both."""
        super().add_note(without_secrets(note))

    @property
    def message(self) -> str:
        """The message, without notes."""
        return str(self)

    @property
    def experimental_payloads(self) -> dict[str, bytes]:
        """Empty."""
        return {}


OpError = DistinputError


class InvalidArgumentError(DistinputError, ValueError):
    """An argument or an element does not have the value or shape that the op needs."""

    error_code = INVALID_ARGUMENT


class NotFoundError(DistinputError, FileNotFoundError):
    """A file, or a source that can be sharded, does not exist."""

    error_code = NOT_FOUND


class NoMatchError(NotFoundError, InvalidArgumentError):
    """No file matches a pattern: an invalid argument to TensorFlow, a missing file to Python."""

    # Some libraries make errors by `__new__` alone, and Python finds that of ValueError, which refuses this class.
    __new__ = FileNotFoundError.__new__  # type: ignore[assignment]


class ElementTypeError(InvalidArgumentError, TypeError):
    """An element, or the result of a function, has another type than the op needs; an invalid argument to TensorFlow."""


class DataLossError(DistinputError, ValueError):
    """A file is damaged: a checksum differs, or it ends in the middle of a record."""

    error_code = DATA_LOSS


class OutOfRangeError(DistinputError, IndexError):
    """A call needs one more element, and the data has ended."""

    error_code = OUT_OF_RANGE


class FailedPreconditionError(DistinputError, RuntimeError):
    """A precondition of the call does not hold."""

    error_code = FAILED_PRECONDITION


class CancelledError(DistinputError, RuntimeError):
    """The iteration was closed while a call was waiting, or a scheduled function was cancelled before it ran."""

    error_code = CANCELLED


class DeadlineExceededError(DistinputError, TimeoutError):
    """A call did not return within its time."""

    error_code = DEADLINE_EXCEEDED


class AbortedError(DistinputError, RuntimeError):
    """Another replica failed, so this one cannot go on; or a scheduled function lost its worker too often."""

    error_code = ABORTED


class UnavailableError(DistinputError, ConnectionError):
    """A worker process that has work to do has ended, or a parameter server is lost."""

    error_code = UNAVAILABLE


class UnimplementedError(DistinputError, NotImplementedError):
    """TensorFlow supports this case and distinput does not; the message says what to use instead."""

    error_code = UNIMPLEMENTED


class AlreadyExistsError(DistinputError, FileExistsError):
    """Something that is to be made is there already."""

    error_code = ALREADY_EXISTS


class PermissionDeniedError(DistinputError, PermissionError):
    """The caller may not do that; nothing here raises it, but functions of users may."""

    error_code = PERMISSION_DENIED


class UnauthenticatedError(DistinputError, PermissionError):
    """It is not known who the caller is; nothing here raises it, but functions of users may."""

    error_code = UNAUTHENTICATED


class ResourceExhaustedError(DistinputError, MemoryError):
    """There is no memory for an array of the shape that was stated; functions of users may raise it for another resource."""

    error_code = RESOURCE_EXHAUSTED
    __new__ = Exception.__new__  # type: ignore[assignment]  # as in NoMatchError


class InternalError(DistinputError, RuntimeError):
    """A system broke its own rules; nothing here raises it, but functions of users may."""

    error_code = INTERNAL


class OperatorNotAllowedInGraphError(DistinputError, TypeError):
    """An operator was used where a graph is built: never, since functions run as plain Python."""


class UnknownError(DistinputError, RuntimeError):
    """An error of no known kind; nothing here raises it, but functions of users may."""


class StateError(DistinputError, ValueError):
    """A saved state does not belong to this pipeline, or was written by an unknown version."""


class InputWarning(UserWarning):
    """Elements are probably lost, repeated, or always in the same order; the message says why, and what to do.

    Filters of the module `warnings` silence it or turn it into an error.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*[without_secrets(each) if isinstance(each, str) else each for each in args])


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

    def __init__(self, message: str = "", rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank


class Aborted(PeerLost, AbortedError):
    """A worker told the others that it cannot go on; `rank` is that worker, `reason` what it said.

    Args:
      message: who waited for what, and the reason.
      rank: the worker that gave up.
      reason: its own words.
    """

    def __init__(self, message: str = "", rank: int | None = None, reason: str = "") -> None:
        super().__init__(message, rank)
        self.reason = reason


class CollectiveTimeout(CollectiveError, TimeoutError):
    """Not all workers came within the time.

    Args:
      message: who waited for what, and for how long.
      ranks: the workers that had not come, as far as is known.
    """

    __new__ = TimeoutError.__new__  # type: ignore[assignment]  # as in NoMatchError

    def __init__(self, message: str = "", ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


class Poisoned(CollectiveError):
    """The group failed before and cannot be used any more; raised at once, without asking anybody."""


class EngineMissing(CollectiveError, ImportError):
    """The package of an engine is not installed, or nothing says which engine to use; the message says what to do."""

    __new__ = ImportError.__new__  # type: ignore[assignment]  # as in NoMatchError


@contextmanager
def importing(cure: str, kinds: tuple[type[Exception], ...] = (ImportError,)) -> Iterator[None]:
    """Imports inside of it raise `EngineMissing` where they fail.

    Args:
      cure: the message: what is missing, and what to do; "{error}" in it stands for what Python said.
      kinds: the errors by which the package says that it cannot be used.

    >>> with importing("to_abc: abc_ is not installed ({error}); `pip install abc_`"):
    ...     import abc_
    Traceback (most recent call last):
    distinput.errors.EngineMissing: to_abc: abc_ is not installed (No module named 'abc_'); `pip install abc_`
    """
    try:
        yield
    except kinds as error:
        raise EngineMissing(cure.replace("{error}", str(error))) from error


__all__: list[str] = []
for _name, _value in [*vars().items()]:  # numbers and errors
    if isinstance(_value, int | type) and getattr(_value, "__module__", __name__) == __name__:
        __all__ += [_name]
