# SPDX-License-Identifier: Apache-2.0
"""How a call ended: with a value, or with an error that has one of TensorFlow's codes."""

from concurrent.futures import Future
from typing import Any

from distinput import errors

__all__ = ["OK", "StatusOrResult", "code_of", "error_of"]

OK = 0
_UNKNOWN = 2
_CODES: dict[int, type[Exception]] = {
    1: errors.CancelledError,
    3: errors.InvalidArgumentError,
    4: errors.DeadlineExceededError,
    5: errors.NotFoundError,
    9: errors.FailedPreconditionError,
    10: errors.AbortedError,
    11: errors.OutOfRangeError,
    12: errors.UnimplementedError,
    14: errors.UnavailableError,
    15: errors.DataLossError,
}
_ALIKE: dict[type[Exception], int] = {TypeError: 3, ValueError: 3, NotImplementedError: 12}
"""Errors of Python that functions raise for what TensorFlow has codes for."""


def code_of(error: BaseException) -> int:
    """The code of an error; 2 for one that has none.

    >>> code_of(ValueError()), code_of(errors.UnavailableError()), code_of(RuntimeError())
    (3, 14, 2)
    """
    for code, kind in _CODES.items():
        if isinstance(error, kind):
            return code
    return next((code for kind, code in _ALIKE.items() if isinstance(error, kind)), _UNKNOWN)


def error_of(code: int, message: str) -> Exception:
    """The error with a code; a RuntimeError for code 2."""
    return _CODES.get(code, RuntimeError)(message)


class StatusOrResult:
    """The outcome of a call, which need not be there yet: every method waits for it.

    Args:
      outcome: (code, message, value), with code 0 for success.

    Source: what `tf.distribute.experimental.rpc.Client.call` returns.
    """

    def __init__(self, outcome: "Future[tuple[int, str, Any]]") -> None:
        self._outcome = outcome

    def is_ok(self) -> bool:
        """Whether the call succeeded."""
        return self._outcome.result()[0] == OK

    def get_error(self) -> tuple[int, str]:
        """TensorFlow's code of the error and its message; (0, "") if there was none."""
        code, message, _ = self._outcome.result()
        return code, message

    def get_value(self) -> Any:
        """What the function returned.

        Raises:
          Exception: the error of the call, of the class that its code says.
        """
        code, message, value = self._outcome.result()
        if code != OK:
            raise error_of(code, message)
        return value
