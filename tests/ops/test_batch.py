# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import plain, state_bytes, until_error

RANGE = di.data.Dataset.range


def test_the_last_batch_is_shorter() -> None:
    assert RANGE(5).batch(2).to_list() == [[0, 1], [2, 3], [4]]


def test_drop_remainder_leaves_the_last_batch_out() -> None:
    assert RANGE(5).batch(2, drop_remainder=True).to_list() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("drop, first, count", [(False, None, 3), (True, 2, 2)])
def test_spec_and_cardinality(drop: bool, first: int | None, count: int) -> None:
    dataset = RANGE(5).batch(2, drop)
    assert dataset.element_spec == di.TensorSpec([first], "int64")
    assert len(dataset) == count


def test_every_component_is_stacked() -> None:
    dataset = di.data.Dataset.from_tensor_slices({"a": [1, 2], "b": (["x", "y"],)}).batch(2)
    assert [plain(element) for element in dataset] == [{"a": [1, 2], "b": ([b"x", b"y"],)}]


@pytest.mark.parametrize("size", [0, -1, np.int64(-3)])
def test_the_size_must_be_positive(size: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"batch: batch_size must be greater than zero, got {size}"):
        RANGE(3).batch(size)


@pytest.mark.parametrize("size", [2.0, "2", True, None])
def test_the_size_must_be_a_whole_number(size: Any) -> None:
    with pytest.raises(TypeError, match="batch: batch_size must be an integer, got"):
        RANGE(3).batch(size)


def test_parallel_calls_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="batch: num_parallel_calls must be at least 1, or AUTOTUNE, got 0"):
        RANGE(3).batch(2, num_parallel_calls=0)


def test_arrays_of_unknown_rank_become_ragged_once_it_is_stated() -> None:
    arrays = RANGE(3).map(lambda x: np.ones((1, x)), output_signature=di.TensorSpec(None, "float64"))
    with pytest.raises(
        InvalidArgumentError, match=r"have to know how many dimensions .* map\(output_signature=\) states"
    ):
        arrays.ragged_batch(3).to_list()
    known = arrays.map(lambda array: array, output_signature=di.TensorSpec([None, None], "float64"))
    assert known.ragged_batch(3).to_list() == [[[[]], [[1]], [[1, 1]]]]


def test_batches_before_one_of_different_shapes_arrive() -> None:
    dataset = RANGE(4).map(lambda x: np.zeros(max(x, 2))).batch(2)
    before, error = until_error(dataset)
    assert before == [[[0, 0], [0, 0]]]
    assert isinstance(error, InvalidArgumentError)
    assert "Cannot batch tensors with different shapes: first element had shape [2], another one has [3]" in str(error)
    assert "pad them with padded_batch, keep them as they are with ragged_batch, or bring them to one shape" in str(
        error
    )
    assert "images in a map that calls Pillow's Image.resize" in str(error)


def test_the_error_of_a_batch_stands_alone() -> None:
    """What was raised on the way to it says nothing that the user needs."""

    def rows() -> Iterator[Any]:
        yield from (np.zeros(2), np.zeros(3))

    dataset = di.data.Dataset.from_generator(rows, output_signature=di.TensorSpec([None], "float64")).batch(2)
    with pytest.raises(InvalidArgumentError) as raised:
        next(iter(dataset))
    assert raised.value.__context__ is None


def test_the_state_does_not_grow_with_the_batch() -> None:
    assert state_bytes(RANGE(10_000).batch(5_000), 1) < state_bytes(RANGE(10).batch(5), 1) + 20
