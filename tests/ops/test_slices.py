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


def test_many_arrow_values_are_neither_copied_nor_changed() -> None:
    values = np.arange(1 << 19, dtype=np.int32)
    array = pa.ListArray.from_arrays(pa.array([0, 2, 1 << 19], pa.int32()), pa.array(values))
    first, second = Dataset.from_tensor_slices(array)
    assert np.shares_memory(first, values)
    assert np.shares_memory(second, values)
    assert not first.flags.writeable


@pytest.mark.parametrize(
    "array, message",
    [
        (pa.array([1, None]), "column 'value' has 1 nulls, the first in row 1; fill it, or cast it"),
        (pa.array([{"a": 1}]), "column 'value' is of type struct<a: int64>; give it a name, as in {'rows': array}"),
        (pa.array([[{"a": 1}], []]), "column 'value' is of type list<.*>; give it a name, as in {'rows': array}"),
        (
            pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]),
            "column 'value' is of type dense_union<.*>; cast it to another type",
        ),
    ],
)
def test_arrow_arrays_that_no_column_holds_are_refused(array: pa.Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from_tensor_slices: {message}"):
        Dataset.from_tensor_slices(array)


def test_an_arrow_array_of_structs_is_taken_as_its_error_says() -> None:
    array = pa.array([[{"a": 1}], []])
    assert Dataset.from_tensor_slices({"rows": array}).to_list() == [{"rows": {"a": [1]}}, {"rows": {"a": []}}]
    with pytest.raises(TypeError, match=r"; give it in a table, as in pa.table\({'rows': array}\)"):
        Dataset.from_tensors(array)
    assert Dataset.from_tensors(pa.table({"rows": array})).to_list() == [{"rows": {"a": [[1], []]}}]


KINDS: dict[str, Any] = {
    "an array": lambda buffer: buffer,
    "a view": lambda buffer: buffer[:],
    "a dict": lambda buffer: {"a": buffer},
    "a tensor": lambda buffer: pytest.importorskip("torch").from_numpy(buffer),
    "a memoryview": memoryview,
    "a ragged tensor": lambda buffer: di.RaggedTensor.from_row_splits(buffer, [0, 1, len(buffer)]),
    "a series": lambda buffer: pytest.importorskip("pandas").Series(buffer, copy=False),
    "a frame": lambda buffer: pytest.importorskip("pandas").DataFrame({"a": buffer}, copy=False),
    "a series of polars": lambda buffer: pytest.importorskip("polars").from_numpy(buffer[:, None])["column_0"],
}
MAKERS = {
    "from_tensor_slices": Dataset.from_tensor_slices,
    "from_tensors": Dataset.from_tensors,
    "from_source": lambda value: Dataset.from_source(value if isinstance(value, np.ndarray) else np.asarray(value)),
    "from_list": lambda value: di.data.experimental.from_list([value]),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_that_is_filled_again_is_other_data(kind: str, maker: str) -> None:
    if maker == "from_source" and kind not in ("an array", "a view"):
        pytest.skip("from_source reads what else gives rows by position when they are asked for")
    buffer = np.zeros(2, np.int64)
    made: Any = None
    for i in range(3):
        buffer[:] = i
        part = MAKERS[maker](KINDS[kind](buffer))
        made = part if made is None else made.concatenate(part)
    for _ in range(2):
        seen = [np.asarray(x.flat_values if isinstance(x, di.RaggedTensor) else x).ravel() for x in leaves_of(made)]
        assert np.concatenate(seen).tolist() == [0, 0, 1, 1, 2, 2]


def leaves_of(dataset: Any) -> Any:
    return [element["a"] if isinstance(element, dict) else element for element in dataset]


def test_large_arrays_are_not_copied_and_a_change_is_told() -> None:
    large = np.zeros((1 << 10, 1 << 9), np.int64)
    dataset = Dataset.from_tensor_slices({"x": np.arange(1 << 10), "y": large})
    first = next(iter(dataset))["y"]
    assert np.shares_memory(first, large)
    assert not first.flags.writeable
    shuffled = dataset.global_shuffle(seed=1)
    large[:] = 1
    for made in (dataset, dataset.batch(4), dataset.concatenate(dataset), shuffled):
        with pytest.raises(di.errors.FailedPreconditionError, match=r"component \['y'\] was changed .*: give a copy"):
            list(made)
    assert int(Dataset.from_tensor_slices(large).batch(1 << 10).get_single_element().sum()) == large.size


def test_lists_of_one_length_have_no_length_that_is_known() -> None:
    made = Dataset.from_tensor_slices(pa.array([[1, 2], [3, 4]]))
    assert made.element_spec == di.TensorSpec([None], "int64")
    assert isinstance(next(iter(made.ragged_batch(2))), di.RaggedTensor)
