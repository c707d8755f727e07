# SPDX-License-Identifier: Apache-2.0
"""What is stated of values of Python is what they become, and nothing that is stated changes a value."""

from typing import Any

import numpy as np
import pytest

from distinput.columns.regroup import as_nest, as_stated, leaves_for
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import as_leaves, dtype_of
from distinput.values.nest import LEAF, structure_of, tuple_of
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec


@pytest.mark.parametrize(
    "value, spec, made",
    [
        ([], TensorSpec([None], "int64"), np.zeros(0, np.int64)),
        ([], TensorSpec([None, 3], "float64"), np.zeros((0, 3))),
        ([[], []], TensorSpec([None, None], "int8"), np.zeros((2, 0), np.int8)),
        ([], TensorSpec(None, "float64"), np.zeros(0)),
        ([], TensorSpec([None], "string"), np.zeros(0, object)),
        (range(0), TensorSpec([None], "int64"), np.zeros(0, np.int64)),
        (1, TensorSpec([], "float32"), np.float32(1)),
        (1, TensorSpec([], "complex64"), np.complex64(1)),
        (0.1, TensorSpec([], "float64"), np.float64(0.1)),
        (2**63, TensorSpec([], "uint64"), np.uint64(2**63)),
        ([2**63, 1], TensorSpec([2], "uint64"), np.array([2**63, 1], np.uint64)),
        ([1, 2.5], TensorSpec([2], "float64"), np.array([1, 2.5])),
        ((1, 2), TensorSpec([2], "int8"), np.array([1, 2], np.int8)),
        (True, TensorSpec([], "bool"), np.True_),
    ],
)
def test_a_value_of_python_becomes_what_is_stated(value: Any, spec: TensorSpec, made: Any) -> None:
    found = as_stated(value, spec)
    assert np.array_equal(found, made)
    assert dtype_of(found) == dtype_of(made)
    assert np.shape(found) == np.shape(made)


@pytest.mark.parametrize(
    "value, dtype, own",
    [
        (1.0, "int64", "float32"),
        (True, "int64", "bool"),
        (1, "bool", "int32"),
        (np.int8(1), "int64", "int8"),
        ("a", "int8", "O"),
    ],
)
def test_what_is_of_another_kind_stays_what_it_is(value: Any, dtype: str, own: str) -> None:
    assert dtype_of(as_stated(value, TensorSpec([], dtype))) == np.dtype(own)


def test_numbers_are_cast_where_all_are() -> None:
    assert as_stated(True, TensorSpec([], "int64"), cast=True) == 1
    assert as_stated([1, True], TensorSpec([2], "float64"), cast=True).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="float becomes no int64; state float, or convert it"):
        as_stated(16777217.9, TensorSpec([], "int64"), cast=True)


@pytest.mark.parametrize("value, dtype", [(300, "int8"), ([1, -1], "uint8"), (2**64, "uint64"), ([1, 2**63], "int64")])
def test_an_integer_that_does_not_fit_is_refused(value: Any, dtype: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"does not fit into {dtype}, which is stated; state a wider dtype"):
        as_stated(value, TensorSpec(None, dtype))


def test_lists_are_ragged_tensors_where_those_are_stated() -> None:
    made = as_stated([[1], []], RaggedTensorSpec([None, None], "int8"))
    assert made.to_list() == [[1], []]
    assert made.dtype == np.int8


def test_a_list_is_a_tuple_unless_an_array_is_stated() -> None:
    assert as_nest([1, 2], None) == (1, 2)
    assert as_nest([1, 2], Spec.leaf([2], "int64")) == [1, 2]
    assert as_nest({"a": 1}, None) == {"a": 1}


def test_what_is_stated_of_another_nest_says_nothing() -> None:
    said = Spec.leaf([2], "int64")
    assert leaves_for(LEAF, said) == said.leaves
    assert leaves_for(tuple_of([LEAF, LEAF]), said) is None
    assert leaves_for(LEAF, None) is None


def test_an_error_names_the_component() -> None:
    structure = structure_of({"a": 1, "b": 2})
    said = Spec.of({"a": TensorSpec([], "int8"), "b": TensorSpec([], "int8")})
    with pytest.raises(InvalidArgumentError, match=r"component \['b'\]: the integer 300 does not fit into int8"):
        as_leaves([1, 300], structure.paths, as_stated, said.leaves)
    with pytest.raises(InvalidArgumentError, match=r"^the integer 300"):
        as_leaves([300], ("",), as_stated, said.leaves[:1])
