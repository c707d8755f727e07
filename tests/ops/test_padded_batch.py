# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.testing.block_sizes import small_blocks
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range


def counting(*sizes: int) -> di.data.Dataset:
    """Vectors 0, 1, ... of these lengths."""
    rows = [np.arange(n) for n in sizes]
    return di.data.Dataset.from_generator(lambda: iter(rows), output_signature=di.TensorSpec([None], "int64"))


def test_elements_are_padded_to_the_longest_of_the_batch() -> None:
    assert [plain(x) for x in counting(1, 2, 3).padded_batch(2)] == [[[0, 0], [0, 1]], [[0, 1, 2]]]


def test_elements_of_one_shape_in_each_block_but_not_in_all() -> None:
    made = RANGE(3).batch(2).padded_batch(2)
    with small_blocks(1):
        assert [plain(x) for x in made] == [[[0, 1], [2, 0]]]


@pytest.mark.parametrize("width", [[4], (4,), 4])
def test_or_to_a_given_shape(width: Any) -> None:
    made = counting(1, 2).padded_batch(2, padded_shapes=width, padding_values=np.int64(9))
    assert made.element_spec == di.TensorSpec([None, 4], "int64")
    assert [plain(x) for x in made] == [[[0, 9, 9, 9], [0, 1, 9, 9]]]


@pytest.mark.parametrize("open_size", [None, -1])
def test_none_and_minus_one_leave_a_dimension_open(open_size: int | None) -> None:
    assert counting(1).padded_batch(2, padded_shapes=[open_size]).element_spec == di.TensorSpec([None, None], "int64")


def test_a_python_number_takes_the_dtype_of_its_component() -> None:
    made = RANGE(3).map(lambda x: (np.full(x, 0.5), np.full(x, 1))).padded_batch(3, padding_values=-1)
    assert [plain(x) for x in made] == [([[-1.0, -1.0], [0.5, -1.0], [0.5, 0.5]], [[-1, -1], [1, -1], [1, 1]])]


def test_strings_are_padded_with_nothing() -> None:
    made = RANGE(3).map(lambda x: np.array([b"a"] * int(x), object)).padded_batch(3)
    assert [plain(x) for x in made] == [[[b"", b""], [b"a", b""], [b"a", b"a"]]]


def test_the_last_batch_can_be_dropped() -> None:
    made = counting(1, 1, 1).padded_batch(2, drop_remainder=True)
    assert [plain(x) for x in made] == [[[0], [0]]]
    assert made.element_spec == di.TensorSpec([2, None], "int64")


def test_a_longer_element_is_an_error_at_iteration() -> None:
    before, error = until_error(counting(1, 2, 3).padded_batch(1, padded_shapes=[2]))
    assert before == [[[0, 0]], [[0, 1]]]
    assert isinstance(error, DataLossError)
    assert (
        "Attempted to pad to a smaller size than the input element: padded_shapes allows [2], an element needs [3]"
        in str(error)
    )


PAIRS = RANGE(3).map(lambda x: {"a": np.zeros([2], np.float32), "b": x})


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({"batch_size": 0}, InvalidArgumentError, "batch_size must be greater than zero, got 0"),
        (
            {"padded_shapes": {"a": [2, 2], "b": []}},
            InvalidArgumentError,
            r"The padded shape \(2, 2\) is not compatible with the shape \(2,\) of component \['a'\]: the ranks differ",
        ),
        (
            {"padded_shapes": {"a": [1], "b": []}},
            InvalidArgumentError,
            r"The padded shape \(1,\) is not compatible with the shape \(2,\) of component \['a'\]: it is smaller",
        ),
        ({"padded_shapes": {"a": [1]}}, TypeError, "the structures differ: expected a dict with keys"),
        (
            {"padding_values": {"a": [1.0], "b": 0}},
            InvalidArgumentError,
            r"the padding value of component \['a'\] must be a scalar, got \[1.0\]",
        ),
        (
            {"padding_values": {"a": np.float64(0), "b": 0}},
            TypeError,
            r"the padding value of component \['a'\] must have its dtype float32, got float64",
        ),
        ({"padding_values": {"a": "x", "b": 0}}, TypeError, "must have its dtype float32, got object"),
    ],
)
def test_arguments_are_checked(kwargs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PAIRS.padded_batch(**{"batch_size": 2, **kwargs})


def test_padding_values_are_nested_as_the_element() -> None:
    # TensorFlow 2.21 answers with a TypeError too.
    with pytest.raises(TypeError, match="padded_batch: padding_values must be nested as the element, got"):
        counting(1).padded_batch(2, padding_values=(np.int64(0),))


def test_an_unknown_rank_needs_a_shape() -> None:
    dataset = di.data.Dataset.from_generator(lambda: [[1]], output_signature=di.TensorSpec(None, "int64"))
    with pytest.raises(InvalidArgumentError, match="has an unknown rank; give padded_shapes for it"):
        dataset.padded_batch(2)
    assert [plain(x) for x in dataset.padded_batch(2, padded_shapes=[None])] == [[[1]]]
