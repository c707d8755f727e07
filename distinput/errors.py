# SPDX-License-Identifier: Apache-2.0
"""The errors of distinput, with the names of `tf.errors` so that ported `except` clauses keep working.

Each one is also the Python error nearest to it (`InvalidArgumentError` is a `ValueError`), so code that never heard of
TensorFlow can catch what it expects.
"""

__all__ = [
    "AbortedError",
    "CancelledError",
    "DataLossError",
    "DistinputError",
    "FailedPreconditionError",
    "InputWarning",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "StateError",
    "UnavailableError",
    "UnimplementedError",
]


class DistinputError(Exception):
    """Any error that distinput itself raises about data, files or their distribution."""


class InvalidArgumentError(DistinputError, ValueError):
    """An argument or an element does not have the value or shape that the op needs."""


class NotFoundError(DistinputError, FileNotFoundError):
    """A file, or a source that can be sharded, is not there."""


class DataLossError(DistinputError, ValueError):
    """A file is damaged: a checksum differs, or it ends in the middle of a record."""


class OutOfRangeError(DistinputError, IndexError):
    """The end of the data was reached by a call that needs one more element."""


class FailedPreconditionError(DistinputError, RuntimeError):
    """Something that must hold before the call does not hold."""


class CancelledError(DistinputError, RuntimeError):
    """The iteration was closed while a call was waiting."""


class AbortedError(DistinputError, RuntimeError):
    """Another replica failed, so this one cannot go on."""


class UnavailableError(DistinputError, ConnectionError):
    """A worker process that has work to do has ended."""


class UnimplementedError(DistinputError, NotImplementedError):
    """TensorFlow has this, distinput does not have it for this case; the message says what to use."""


class StateError(DistinputError, ValueError):
    """A saved state does not belong to this pipeline, or was written by an unknown version."""


class InputWarning(UserWarning):
    """Elements are probably lost, repeated, or always in the same order; the message says why, and what to do.

    Not an error: it can be silenced, or made one, by the filters of the module `warnings`.
    """
