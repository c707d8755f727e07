# SPDX-License-Identifier: Apache-2.0
"""Elements by position, and what is known of a dataset, under TensorFlow's older names."""

from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError

X = di.data.experimental
RANGE = di.data.Dataset.range


def test_at_is_the_element_at_a_position() -> None:
    assert X.at(RANGE(5), 3) == 3
    pairs = di.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"]))
    assert X.at(pairs, 1) == (2, b"b")


@pytest.mark.parametrize("index", [5, -1])
def test_at_refuses_positions_that_are_not_there(index: int) -> None:
    with pytest.raises(OutOfRangeError, match=f"at: .*{index}"):
        X.at(RANGE(5), index)


def test_at_refuses_steps_that_can_only_be_iterated() -> None:
    with pytest.raises(UnimplementedError, match="at: elements cannot be reached by position: filter"):
        X.at(RANGE(5).filter(lambda x: x > 1), 1)
    with pytest.raises(TypeError, match=r"at: index must be an integer, got 1\.0"):
        X.at(RANGE(5), 1.0)  # type: ignore[arg-type]


def test_an_error_of_a_function_is_its_own() -> None:
    def fails(x: Any) -> Any:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        X.at(RANGE(5).map(fails, output_signature=di.TensorSpec([], "int64")), 1)


def test_older_names() -> None:
    assert X.cardinality(RANGE(5).repeat()) == X.INFINITE_CARDINALITY
    assert X.get_single_element(RANGE(1)) == 0
    with pytest.raises(InvalidArgumentError):
        X.get_single_element(RANGE(2))
    iterator = iter(RANGE(1))
    assert [X.get_next_as_optional(iterator).has_value() for _ in range(2)] == [True, False]


def test_the_structure_of_datasets_and_iterators() -> None:
    assert X.get_structure(RANGE(1)) == X.get_structure(iter(RANGE(1))) == di.TensorSpec([], "int64")
    with pytest.raises(TypeError, match="get_structure: expected a dataset or an iterator, got 3"):
        X.get_structure(3)
