# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import distinput as di
from distinput.arrow.expression import (
    Term,
    check_expression,
    is_expression,
    part_read,
    rows_where,
    term_of,
    without_halves,
)
from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.values.nest import structure_of
from distinput.values.spec import Spec

X = pc.field("x")
SPEC = Spec.of({"x": di.TensorSpec([], "int64"), "s": di.TensorSpec([], object), "v": di.TensorSpec([2], "float32")})


def test_an_expression_is_told_from_a_function() -> None:
    assert is_expression(X > 3)
    assert not is_expression(lambda x: x)
    assert not is_expression("x > 3")


def test_it_is_taken_apart() -> None:
    term = term_of((X > 5) & ~(pc.field("s") == "a") | X.isin([1]))
    assert term is not None
    assert term.value == "or_kleene"
    assert term.fields == {"x", "s"}
    inner, listed = term.arguments
    assert (inner.value, listed.value) == ("and_kleene", "is_in with options")
    assert inner.arguments[0].arguments[0] == Term("field", "x")
    assert inner.arguments[0].arguments[1].value.as_py() == 5
    nested = term_of(pc.field("d", "k") == 1)
    assert nested is not None
    assert nested.fields == {"d"}


def test_a_form_that_is_not_known_is_no_error() -> None:
    class Other:
        def __reduce__(self) -> Any:
            return list, (b"other",)

    assert term_of(Other()) is None
    assert term_of(pc.scalar(True)) is not None


@pytest.mark.parametrize(
    "expression, kept",
    [
        (X > 1, [2, 3]),
        (pc.field("s") == "b", [1]),
        ((X < 1) | (pc.field("s") == b"d"), [0, 3]),
        (X.is_null(), []),
        (pc.field("f") != 1, [0, 1, 3]),  # NaN is a number like others, not a null
        (~(pc.field("f") < 5), [1, 3]),
    ],
)
def test_rows_are_those_for_which_it_is_true(expression: Any, kept: list[int]) -> None:
    rows = [{"x": i, "s": b"abcd"[i : i + 1], "f": [0.5, np.nan, 1.0, 9.0][i]} for i in range(4)]
    block = Block.of_elements(structure_of(rows[0]), rows)
    spec = Spec.of({"x": di.TensorSpec([], "int32"), "s": di.TensorSpec([], object), "f": di.TensorSpec([], "float32")})
    term = term_of(expression)
    assert term is not None
    for fields in (term.fields, None):
        assert rows_where(block, *part_read(spec, fields), expression).tolist() == kept


def test_other_elements_have_columns_with_numbers_or_one_named_value() -> None:
    ds = di.data.Dataset.range(4)
    assert ds.filter(pc.field("value") > 2).to_list() == [3]
    assert ds.enumerate().filter(pc.field("1") < 1).to_list() == [(0, 0)]


@pytest.mark.parametrize(
    "expression, message",
    [
        (
            pc.field("q") > 1,
            r"(?s)filter: the expression .* cannot be evaluated: .*q.*; the columns are x \(int64\), s",
        ),
        (X + 1, "must be boolean, got .* which is int64"),
        (X > "a", "cannot be evaluated"),
    ],
)
def test_what_has_no_truth_value_is_refused(expression: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_expression(expression, SPEC, None)


def test_an_expression_that_fails_for_elements_says_what_to_do() -> None:
    column = np.array([1, 2**63 + 5], np.uint64)
    dataset = di.data.Dataset.from_tensor_slices({"u": column})
    with pytest.raises(
        InvalidArgumentError, match=r"filter: the expression \(u != 1\) has no value .*; give constants"
    ):
        dataset.filter(pc.field("u") != 1).to_list()
    assert len(dataset.filter(pc.field("u") != pa.scalar(1, "uint64")).to_list()) == 1


def test_a_missing_column_is_named_without_the_schema_of_pyarrow() -> None:
    dataset = di.data.Dataset.from_tensor_slices({"a": [1], "b": [2]})
    with pytest.raises(InvalidArgumentError) as caught:
        dataset.filter(pc.field("c") > 1)
    assert str(caught.value).endswith(
        "cannot be evaluated: there is no column 'c'; the columns are a (int32), b (int32)"
    )


def test_columns_of_float16_are_compared_as_float32() -> None:
    numbers = np.array([0, 0.5, 1, np.nan, 65504, -1], np.float16)
    dataset = di.data.Dataset.from_tensor_slices({"x": numbers, "y": np.arange(6)})

    def kept(expression: Any) -> list[int]:
        return [int(row["y"]) for row in dataset.filter(expression)]

    assert kept(X > 0.5) == [2, 4]
    assert kept(X == 65504) == [4]
    assert kept((X <= 0) | X.is_nan()) == [0, 3, 5]


def test_constants_of_float16() -> None:
    field, half = pc.field, np.float16
    dataset = di.data.Dataset.from_tensor_slices({"a": np.arange(5, dtype=np.float16), "b": np.arange(5.0)})
    wanted = [
        (field("a") == half(2), [2]),
        (field("a") * half(2) > half(5), [3, 4]),
        ((field("b") > half(1)) & ~(field("a") == half(3)), [2, 4]),
        (field("a").isin([half(2)]), [2]),
    ]
    for expression, kept in wanted:
        assert [int(x["a"]) for x in dataset.filter(expression)] == kept


def test_a_constant_of_float16_beside_a_nested_field() -> None:
    expression = pc.field("s", "x") > np.float16(3)
    assert term_of(expression).fields == {"s"}
    assert str(without_halves(expression)) == str(pc.field("s", "x") > pa.scalar(3, "float32"))
    table = pa.table({"s": [{"x": 2.0}, {"x": 4.0}]})
    assert table.filter(without_halves(expression)).num_rows == 1
