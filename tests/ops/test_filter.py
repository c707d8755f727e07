# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range


def test_filter_keeps_what_the_predicate_holds_for() -> None:
    assert RANGE(6).filter(lambda x: x % 2 == 1).to_list() == [1, 3, 5]


def test_take_while_ends_at_the_first_that_does_not_hold() -> None:
    assert di.data.Dataset.from_tensor_slices([1, 2, 9, 1]).take_while(lambda x: x < 5).to_list() == [1, 2]


def test_take_while_does_not_call_its_predicate_after_the_end() -> None:
    seen = []

    def small(x: int) -> bool:
        seen.append(int(x))
        return bool(x < 2)

    RANGE(100).take_while(small).to_list()
    assert seen == [0, 1, 2]


def test_tuples_arrive_as_arguments() -> None:
    assert RANGE(4).enumerate(1).filter(lambda number, x: number + x > 3).to_list() == [(3, 2), (4, 3)]


@pytest.mark.parametrize("op", ["filter", "take_while"])
def test_the_cardinality_is_unknown(op: str) -> None:
    assert getattr(RANGE(0), op)(lambda x: True).cardinality() == di.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize("op", ["filter", "take_while"])
def test_the_predicate_must_be_a_function(op: str) -> None:
    with pytest.raises(TypeError, match=f"{op}: predicate must be a function, got 3"):
        getattr(RANGE(3), op)(3)


def test_an_expression_is_one_of_pyarrow() -> None:
    with pytest.raises(
        TypeError, match=r"predicate must be a function, got 'x > 3'; or an expression of pyarrow, such as"
    ):
        RANGE(3).filter("x > 3")
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"got <Expr .*; or an expression of pyarrow, such as"):
        RANGE(3).filter(polars.col("x") > 3)


@pytest.mark.parametrize("op", ["filter", "take_while"])
@pytest.mark.parametrize(
    "result, kind, message",
    [
        (np.int64(1), TypeError, "predicate must return a boolean, got np.int64(1)"),
        (None, TypeError, "predicate must return a boolean, got None"),
        (np.array([True]), InvalidArgumentError, "predicate must return one boolean, got an array of shape [1]"),
    ],
)
def test_the_predicate_must_return_one_boolean(op: str, result: Any, kind: type[Exception], message: str) -> None:
    before, error = until_error(getattr(RANGE(3), op)(lambda x: True if x < 1 else result))
    assert before == [0]
    assert type(error) is kind
    assert str(error) == f"{op}: {message}"
