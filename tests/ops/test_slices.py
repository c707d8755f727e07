# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing.laws import check_restart
from tests.ops.iterating import plain

Dataset = di.data.Dataset


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Pair:
    left: Any
    right: Any


def test_one_element_for_each_row() -> None:
    made = Dataset.from_tensor_slices((np.arange(4).reshape(2, 2), ["a", "b"]))
    assert [plain(x) for x in made] == [([0, 1], b"a"), ([2, 3], b"b")]
    assert made.element_spec == (di.TensorSpec([2], "int64"), di.TensorSpec([], "string"))


def test_from_tensors_is_one_element() -> None:
    assert [plain(x) for x in Dataset.from_tensors({"a": [1, 2]})] == [{"a": [1, 2]}]


@pytest.mark.parametrize("nest", [Point([1, 2], [3, 4]), Pair([1, 2], [3, 4])])
def test_named_nests_are_kept(nest: Any) -> None:
    first = next(iter(Dataset.from_tensor_slices(nest)))
    assert type(first) is type(nest)


@pytest.mark.parametrize(
    "value, dtype",
    [
        ([1], "int32"),
        ([2**40], "int64"),
        ([0.5], "float32"),
        (["a"], "string"),
        ([True], "bool"),
        (np.ones(1), "float64"),
    ],
)
def test_dtypes_are_those_of_tensorflow(value: Any, dtype: str) -> None:
    assert Dataset.from_tensor_slices(value).element_spec == di.TensorSpec([], dtype)


@pytest.mark.parametrize(
    "value, message",
    [
        (
            3,
            "the element must have a first axis to slice, got a scalar; use from_tensors for a single element",
        ),
        ({"a": [1], "b": "text"}, r"component \['b'\] must have a first axis to slice, got a scalar"),
        (([1, 2], [3]), r"all components must have the same first dimension, got \[0\]: 2, \[1\]: 1"),
        ((), "the element must have at least one component"),
    ],
)
def test_rows_are_checked(value: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from_tensor_slices: {message}"):
        Dataset.from_tensor_slices(value)


@pytest.mark.parametrize(
    "value, message",
    [
        ([[1], [1, 2]], "a list becomes an array, so its members must agree in shape"),
        ([object()], "an array of objects may hold only str or bytes, got <object"),
        (object(), "cannot make an array of a object"),
    ],
)
def test_what_is_no_array_is_refused(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Dataset.from_tensors(value)


def test_an_empty_array_has_no_element() -> None:
    made = Dataset.from_tensor_slices(np.zeros((0, 3), np.float32))
    assert made.to_list() == []
    assert made.element_spec == di.TensorSpec([3], "float32")


LISTS = [[1, 2], [], [3], [4, 5, 6]]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_view(pa.int32()), pa.large_list_view(pa.int32())],
)
def test_arrow_lists_are_sequences_of_several_lengths(kind: pa.DataType) -> None:
    array = pa.array([[9], *LISTS], kind).slice(1)
    dataset = Dataset.from_tensor_slices({"ids": array, "n": np.arange(4), "t": pa.chunked_array([["a"], ["b"] * 3])})
    assert dataset.element_spec == {
        "ids": di.TensorSpec([None], "int32"),
        "n": di.TensorSpec([], "int64"),
        "t": di.TensorSpec([], object),
    }
    assert [row["ids"].tolist() for row in dataset] == LISTS
    assert [row["t"] for row in dataset] == [b"a", b"b", b"b", b"b"]
    check_restart(dataset.padded_batch(2))


def test_arrow_values_are_neither_copied_nor_changed() -> None:
    values = np.arange(6, dtype=np.int32)
    array = pa.ListArray.from_arrays(pa.array([0, 2, 6], pa.int32()), pa.array(values))
    first, second = Dataset.from_tensor_slices(array)
    assert np.shares_memory(first, values)
    assert np.shares_memory(second, values)
    assert not first.flags.writeable


@pytest.mark.parametrize(
    "array, message",
    [
        (pa.array([1, None]), "column 'of the element' has 1 nulls, the first in row 1; fill it, or cast it"),
        (pa.array([{"a": 1}]), "column 'of the element' is of type struct<a: int64>; fill it, or cast it"),
        (pa.array([[{"a": 1}], []]), "column 'of the element' holds lists of|column 'of the element' is of type"),
    ],
)
def test_arrow_arrays_that_no_column_holds_are_refused(array: pa.Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from_tensor_slices: {message}"):
        Dataset.from_tensor_slices(array)
