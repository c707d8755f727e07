# SPDX-License-Identifier: Apache-2.0
"""Codes of errors are TensorFlow's, and lead back to the class of the error."""

from concurrent.futures import Future

import pytest

import distinput as di
from distinput.distribute.rpc.client import OK, StatusOrResult, code_of, error_of

CODES = {
    1: "CancelledError",
    3: "InvalidArgumentError",
    4: "DeadlineExceededError",
    5: "NotFoundError",
    9: "FailedPreconditionError",
    10: "AbortedError",
    11: "OutOfRangeError",
    12: "UnimplementedError",
    14: "UnavailableError",
    15: "DataLossError",
}


@pytest.mark.parametrize("code", CODES)
def test_an_error_comes_back_as_itself(code: int) -> None:
    kind = getattr(di.errors, CODES[code])
    assert code_of(kind("x")) == code
    assert type(error_of(code, "x")) is kind


@pytest.mark.parametrize(
    "error, code", [(TypeError(), 3), (ValueError(), 3), (NotImplementedError(), 12), (ZeroDivisionError(), 2)]
)
def test_errors_of_python_have_the_nearest_code(error: Exception, code: int) -> None:
    assert code_of(error) == code


def outcome(*values: object) -> StatusOrResult:
    future: Future = Future()
    future.set_result(values)
    return StatusOrResult(future)


def test_a_result_and_an_error() -> None:
    good, bad = outcome(OK, "", 7), outcome(2, "why", None)
    assert (good.is_ok(), good.get_error(), good.get_value()) == (True, (0, ""), 7)
    assert (bad.is_ok(), bad.get_error()) == (False, (2, "why"))
    with pytest.raises(RuntimeError, match=r"^why$"):
        bad.get_value()
