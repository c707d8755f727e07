# SPDX-License-Identifier: Apache-2.0
"""`range` takes integers alone, where it used to cut off what follows the point; and errors that are of two kinds."""

from typing import Any

import numpy as np
import pytest

import distinput as di

D = di.data.Dataset


@pytest.mark.parametrize("wrong", [1.5, np.float32(2.5), "3", None, True, [3], float("nan")])
def test_what_is_no_integer_is_refused(wrong: Any) -> None:
    for args in ((wrong,), (0, wrong), (0, 9, wrong)):
        with pytest.raises(TypeError, match="range: each number must be an integer, got"):
            D.range(*args)


@pytest.mark.parametrize("number", [3, 3.0, np.int32(3), np.float64(3), np.array(3)])
def test_a_number_that_is_one_is_taken(number: Any) -> None:
    assert D.range(number).to_list() == [0, 1, 2]


@pytest.mark.parametrize("error", [di.errors.InvalidArgumentError, ValueError, TypeError])
def test_an_element_of_another_type_is_an_invalid_argument_too(error: type[Exception]) -> None:
    with pytest.raises(error, match="unique: elements must have a single component"):
        D.from_tensors((1, 2)).unique()


@pytest.mark.parametrize("args", [(2**63 - 5, 2**63 - 1, 3), (2**63 - 3, 2**63 - 2), (-(2**63), 2**63 - 2, 2**62)])
def test_numbers_at_the_end_of_int64_are_exact(args: tuple[int, ...]) -> None:
    # They were computed with an end behind the last int64, in floats.
    assert D.range(*args).to_list() == list(range(*args))
    assert [D.range(*args)[row] for row in range(len(range(*args)))] == list(range(*args))


@pytest.mark.parametrize("args", [(2**63,), (0, -(2**63) - 1), (0, 5, 2**70)])
def test_numbers_beyond_int64_are_refused(args: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"range: each number must fit into int64, got {args[-1]}"):
        D.range(*args)


@pytest.mark.parametrize("dtype", [di.bool, di.string, "M8[s]", "complex64"])
def test_a_range_has_a_dtype_of_numbers(dtype: Any) -> None:
    # A range of bools was False, True, True, and so on, and one of strings had Python's integers.
    with pytest.raises(TypeError, match="range: output_type must be a dtype of integers or floats, got"):
        D.range(5, output_type=dtype)
