# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range


def test_a_tuple_is_unpacked_into_arguments() -> None:
    assert RANGE(2).enumerate(5).map(lambda number, x: number * 10 + x).to_list() == [50, 61]


def test_a_dict_is_one_argument() -> None:
    assert di.data.Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda d: d["a"]).to_list() == [1, 2]


def test_a_list_that_is_returned_is_a_tuple() -> None:
    assert RANGE(2).map(lambda x: [x, x + 1]).to_list() == [(0, 1), (1, 2)]


def test_none_may_be_returned() -> None:
    assert RANGE(1).map(lambda x: (x, None)).to_list() == [(0, None)]


def test_the_spec_is_found_out_with_made_up_elements() -> None:
    spec = RANGE(3).batch(2).map(lambda x: {"sum": x.sum(), "rows": np.stack([x, x], 1)}).element_spec
    assert spec == {"sum": di.TensorSpec([], "int64"), "rows": di.TensorSpec([None, 2], "int64")}


def test_a_signature_spares_the_trial() -> None:
    called = []
    dataset = RANGE(3).map(lambda x: called.append(int(x)) or x, output_signature=di.TensorSpec([], "int64"))
    assert dataset.element_spec == di.TensorSpec([], "int64")
    assert called == []


def test_a_function_that_works_on_real_elements_only_is_tried_on_the_first() -> None:
    table = {b"a": 1, b"b": 2}
    dataset = di.data.Dataset.from_tensor_slices(["a", "b"]).map(lambda x: np.int64(table[x]))
    assert dataset.element_spec == di.TensorSpec([], "int64")


def test_a_function_that_never_works_needs_a_signature() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"map: cannot tell what the function returns.* pass output_signature="
    ):
        RANGE(0).map(lambda x: {}[x]).element_spec  # asking is the act  # noqa: B018


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: x if x % 2 else (x, x), "map: the function must return one structure, got"),
        (lambda x: x if x % 2 else np.float32(x), "map: the function must return one dtype, got"),
    ],
)
def test_the_function_must_return_one_kind_of_element(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        RANGE(3).map(function).element_spec  # noqa: B018


@pytest.mark.parametrize(
    "args, error, message",
    [
        ((1,), TypeError, "map: map_func must be a function, got 1"),
        ((len, 0), InvalidArgumentError, "map: num_parallel_calls must be at least 1, or AUTOTUNE, got 0"),
        ((len, -2), InvalidArgumentError, "map: num_parallel_calls must be at least 1, or AUTOTUNE, got -2"),
        ((len, 1.5), TypeError, "map: num_parallel_calls must be an integer, got 1.5"),
    ],
)
def test_arguments_are_checked(args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RANGE(3).map(*args)


def test_what_cannot_be_an_array_is_refused() -> None:
    _, error = until_error(RANGE(1).map(lambda x: object()))
    assert "cannot make an array of a object" in str(error)


def test_rows_of_a_vector_may_differ() -> None:
    assert [plain(x) for x in RANGE(3).map(np.arange)] == [[], [0], [0, 1]]
