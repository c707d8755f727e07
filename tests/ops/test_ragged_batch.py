# SPDX-License-Identifier: Apache-2.0
"""`ragged_batch`: the rules of `tf.data.Dataset.ragged_batch`; the laws are in tests/laws."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

VECTORS = di.data.Dataset.range(5).map(lambda n: np.arange(n), output_signature=di.TensorSpec([None], "int64"))


def shaped(shape: list[int | None], *shapes: tuple[int, ...]) -> di.data.Dataset[Any]:
    """Arrays of ones of these shapes."""
    return di.data.Dataset.from_generator(
        lambda: (np.ones(each, np.int64) for each in shapes), output_signature=di.TensorSpec(shape, "int64")
    )


def test_batches_are_ragged_and_the_last_may_be_shorter() -> None:
    ds = VECTORS.ragged_batch(2)
    assert ds.element_spec == di.RaggedTensorSpec([None, None], "int64", 1)
    assert ds.to_list() == [[[], [0]], [[0, 1], [0, 1, 2]], [[0, 1, 2, 3]]]
    assert len(ds) == 3


def test_a_last_batch_that_is_not_full_is_left_out_with_drop_remainder() -> None:
    ds = VECTORS.ragged_batch(2, drop_remainder=True)
    assert ds.element_spec == di.RaggedTensorSpec([2, None], "int64", 1)
    assert [len(batch) for batch in ds] == [2, 2]


@pytest.mark.parametrize(
    "shape, spec",
    [
        ([], di.TensorSpec([None], "int64")),
        ([2, 3], di.TensorSpec([None, 2, 3], "int64")),
        ([None], di.RaggedTensorSpec([None, None], "int64", 1)),
        ([None, 3], di.RaggedTensorSpec([None, None, 3], "int64", 1)),
        ([2, None], di.RaggedTensorSpec([None, 2, None], "int64", 2)),
        ([None, None], di.RaggedTensorSpec([None, None, None], "int64", 2)),
        ([None, 2, None, 3], di.RaggedTensorSpec([None, None, 2, None, 3], "int64", 3)),
    ],
)
def test_what_is_ragged_is_up_to_the_last_unknown_dimension(shape: list[int | None], spec: di.TensorSpec) -> None:
    first = tuple(d or 1 for d in shape)
    second = tuple(d or 2 for d in shape)
    ds = shaped(shape, first, second).ragged_batch(2)
    assert ds.element_spec == spec
    (batch,) = ds
    assert spec.fits_value(batch)
    assert [np.ones(first, int).tolist(), np.ones(second, int).tolist()] == batch.tolist()


def test_elements_that_are_equal_by_chance_are_ragged_too() -> None:
    (batch,) = shaped([None], (2,), (2,)).ragged_batch(2)
    assert isinstance(batch, di.RaggedTensor)


def test_components_are_batched_each_by_its_own_spec() -> None:
    ds = VECTORS.enumerate().ragged_batch(5)
    ((numbers, rows),) = ds
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert rows.row_lengths().tolist() == [0, 1, 2, 3, 4]


def test_ragged_tensors_are_batched_to_more_dimensions() -> None:
    for ds in (VECTORS.ragged_batch(2).batch(2), VECTORS.ragged_batch(2).ragged_batch(2)):
        assert ds.element_spec == di.RaggedTensorSpec([None, None, None], "int64", 2)
        assert ds.to_list() == [[[[], [0]], [[0, 1], [0, 1, 2]]], [[[0, 1, 2, 3]]]]


def test_rows_that_were_taken_apart_are_ragged_when_they_are_batched_again() -> None:
    rows = VECTORS.ragged_batch(2).unbatch()
    assert rows.element_spec == di.RaggedTensorSpec([None], "int64", 0)
    assert rows.filter(lambda x: len(x) != 1).batch(3).element_spec == di.RaggedTensorSpec([None, None], "int64", 1)
    assert sorted(map(len, rows.shuffle(5, seed=1).batch(5).to_list()[0])) == [0, 1, 2, 3, 4]
    assert rows.unbatch().element_spec == di.TensorSpec([], "int64")
    assert rows.unbatch().batch(10).to_list() == [[0, 0, 1, 0, 1, 2, 0, 1, 2, 3]]


def test_functions_take_and_return_ragged_tensors() -> None:
    ds = VECTORS.ragged_batch(2).map(lambda rows: rows * 10)
    assert ds.element_spec == di.RaggedTensorSpec([None, None], "int64", 1)
    assert ds.filter(lambda rows: rows.values.sum() > 0).to_list() == [[[0, 10], [0, 10, 20]], [[0, 10, 20, 30]]]
    with pytest.raises(TypeError, match="the function must return RaggedTensorSpec"):
        list(VECTORS.ragged_batch(2).map(lambda rows: rows if len(rows) == 2 else rows.to_padded()))


def test_in_worker_processes() -> None:
    ds = VECTORS.ragged_batch(2).shuffle(3, seed=1).map(doubled, num_parallel_calls=2, processes=True)
    assert sorted(ds.to_list()) == [[[], [0]], [[0, 2], [0, 2, 4]], [[0, 2, 4, 6]]]


def doubled(rows: Any) -> Any:
    return rows * 2


def test_text_of_several_lengths_is_batched() -> None:
    ds = di.data.Dataset.from_tensor_slices(["a b c", "", "d"])
    words = ds.map(lambda line: np.array(line.split(), object), output_signature=di.TensorSpec([None], "string"))
    assert words.ragged_batch(3).to_list() == [[[b"a", b"b", b"c"], [], [b"d"]]]


def test_rows_that_differ_in_what_is_not_ragged() -> None:
    ds = di.data.Dataset.from_generator(
        lambda: (np.ones((2, n)) for n in (1, 2)), output_signature=di.TensorSpec(None, "float64")
    )
    with pytest.raises(InvalidArgumentError, match="Cannot batch tensors with different shapes"):
        list(ds.ragged_batch(2))  # of an unknown rank: batched as `batch` does


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="ragged_batch: batch_size must be greater than zero, got 0"):
        VECTORS.ragged_batch(0)
    with pytest.raises(InvalidArgumentError, match="row_splits_dtype must be int32 or int64, got 'float32'"):
        VECTORS.ragged_batch(2, row_splits_dtype="float32")
    (batch,) = VECTORS.ragged_batch(5, False, di.int32)
    assert batch.row_splits.dtype == np.int64


def test_under_its_older_name() -> None:
    ds = VECTORS.apply(di.data.experimental.dense_to_ragged_batch(3, drop_remainder=True))
    assert ds.to_list() == [[[], [0], [0, 1]]]


def test_sources_of_ragged_tensors() -> None:
    rows = di.RaggedTensor.from_list([[1, 2], [], [3]])
    slices = di.data.Dataset.from_tensor_slices({"rows": rows, "id": [7, 8, 9]})
    assert slices.element_spec["rows"] == di.RaggedTensorSpec([None], "int32", 0)
    assert slices.to_list() == [{"rows": [1, 2], "id": 7}, {"rows": [], "id": 8}, {"rows": [3], "id": 9}]
    assert slices.batch(2).to_list()[0] == {"rows": [[1, 2], []], "id": [7, 8]}
    (whole,) = di.data.Dataset.from_tensors(rows)
    assert whole.to_list() == rows.to_list()
    given = di.data.Dataset.from_generator(
        lambda: iter([rows, rows[:1]]), output_signature=di.RaggedTensorSpec([None, None], "int32")
    )
    assert given.to_list() == [[[1, 2], [], [3]], [[1, 2]]]


def test_signatures_may_say_that_elements_are_rows_of_ragged_tensors() -> None:
    rows = di.RaggedTensorSpec([None], "int64", ragged_rank=0)
    given = di.data.Dataset.from_generator(lambda: (np.arange(2) for _ in range(2)), output_signature=rows)
    made = di.data.Dataset.range(2).map(lambda n: np.arange(2), output_signature=rows)
    at_once = di.data.Dataset.range(2).map_rows(lambda n: np.tile(np.arange(2), (len(n), 1)), output_signature=rows)
    for ds in (given, made, at_once):
        assert ds.batch(2).element_spec == di.RaggedTensorSpec([None, None], "int64", 1)
        (batch,) = ds.batch(2)
        assert batch.to_list() == [[0, 1], [0, 1]]


def generated(item: Any, spec: di.RaggedTensorSpec) -> list[Any]:
    return di.data.Dataset.from_generator(lambda: iter([item]), output_signature=spec).to_list()


def test_generators_may_yield_lists_of_lists() -> None:
    assert generated([[1, 2], []], di.RaggedTensorSpec([None, None], "float32")) == [[[1.0, 2.0], []]]
    with pytest.raises(TypeError, match="is not a ragged tensor of RaggedTensorSpec"):
        generated([1, 2], di.RaggedTensorSpec([None, None], "int32"))
    with pytest.raises(TypeError, match=r"where RaggedTensorSpec\(shape=\(3, None\).* was expected \(element 0\)"):
        generated([[1, 2]], di.RaggedTensorSpec([3, None], "int32"))
