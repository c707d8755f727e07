# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.ops.map import Map
from distinput.rewrite import rewrite
from distinput.testing import check_restart, check_rewrites, check_spec
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range


def fourfold(x: Any) -> Any:
    return 4 * x - 1


def pair(x: Any) -> Any:
    return x + 0.5, x % 2 == 0


def product(a: Any, b: Any) -> Any:
    return a * b


def inverse(x: Any) -> Any:
    return 12 // (3 - x)


COMPILED = {function.__name__: numba.njit(function) for function in (fourfold, pair, product, inverse)}


@given(st.lists(st.integers(-(2**40), 2**40), max_size=30), st.sampled_from([np.int64, np.int32, np.float32, np.uint8]))
def test_compiled_code_gives_what_the_function_gives(numbers: list[int], dtype: Any) -> None:
    values = np.array([n % 200 for n in numbers], dtype)
    source = di.data.Dataset.from_tensor_slices(values)
    made = list(source.map(COMPILED["fourfold"]))
    assert made == [COMPILED["fourfold"](x) for x in values]
    assert {x.dtype for x in made} <= {np.dtype(np.int64), np.dtype(np.float64)}
    assert list(source.map(COMPILED["pair"])) == [COMPILED["pair"](x) for x in values]


def test_the_types_are_numbas() -> None:
    assert RANGE(3).map(COMPILED["pair"]).element_spec == (di.TensorSpec([], "float64"), di.TensorSpec([], "bool"))
    assert RANGE(3).map(COMPILED["fourfold"]).element_spec == di.TensorSpec([], "int64")


@pytest.mark.parametrize("calls", [None, di.data.AUTOTUNE, 2])
def test_every_way_of_calling_gives_the_same(calls: int | None) -> None:
    dataset = (
        RANGE(300).map(COMPILED["pair"], num_parallel_calls=calls).map(COMPILED["product"], num_parallel_calls=calls)
    )
    check_spec(dataset)
    check_rewrites(dataset.take(20))
    assert dataset.to_list() == [(x + 0.5) * (x % 2 == 0) for x in range(300)]


def test_states_are_exact() -> None:
    check_restart(RANGE(200).map(COMPILED["fourfold"]).batch(7), most=40)


@pytest.mark.parametrize("calls", [None, 2])
def test_elements_before_an_error_arrive(calls: int | None) -> None:
    before, error = until_error(RANGE(200).map(COMPILED["inverse"], num_parallel_calls=calls))
    assert before == [4, 6, 12]
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__[0] == "on element np.int64(3)"
    assert error.__notes__[1].startswith("in map(map_func=inverse")


def test_rows_can_be_fetched() -> None:
    node = RANGE(9).map(COMPILED["fourfold"]).node
    assert list(node.fetch(np.array([2, 0]), 0).elements()) == [7, -1]


def test_neighbours_are_not_fused_with_functions_of_python() -> None:
    dataset = RANGE(5).map(COMPILED["fourfold"]).map(lambda x: x + 1).map(COMPILED["fourfold"])
    assert rewrite(dataset.node)[1] == []
    assert dataset.to_list() == [16 * x - 1 for x in range(5)]


@pytest.mark.parametrize(
    "source", [RANGE(6).batch(2), di.data.Dataset.from_tensor_slices({"x": [1, 2]})], ids=["arrays", "a dict"]
)
def test_elements_that_are_no_numbers_are_given_to_the_function_itself(source: di.data.Dataset) -> None:
    function = (
        numba.njit(lambda x: x * 2) if isinstance(source.element_spec, di.TensorSpec) else numba.njit(lambda d: d)
    )
    node = source.map(function).node
    assert isinstance(node, Map)
    assert node.compiled is None


def test_a_function_of_numbers_that_returns_an_array_is_called_from_python() -> None:
    dataset = RANGE(3).map(numba.njit(lambda x: np.zeros(x)))
    assert [len(x) for x in dataset] == [0, 1, 2]


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i2", ">u8"])
def test_numbers_of_the_other_byte_order_are_read_by_compiled_code(dtype: str) -> None:
    values = np.arange(5).astype(dtype) / 10 if dtype[1] == "f" else np.arange(5).astype(dtype)
    there, here = [
        di.data.Dataset.from_tensor_slices(array).map(COMPILED["fourfold"])
        for array in (values, values.astype(dtype[1:]))
    ]
    assert there.element_spec == here.element_spec
    assert there.to_list() == here.to_list()
