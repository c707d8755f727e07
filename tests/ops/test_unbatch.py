# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import plain, until_error

Dataset = di.data.Dataset
RANGE = Dataset.range


def test_rows_become_elements() -> None:
    assert RANGE(5).batch(2).unbatch().to_list() == [0, 1, 2, 3, 4]


def test_components_lose_their_first_dimension() -> None:
    made = Dataset.from_tensor_slices({"a": np.zeros((2, 3, 4)), "b": [["x"] * 3] * 2}).unbatch()
    assert made.element_spec == {"a": di.TensorSpec([4], "float64"), "b": di.TensorSpec([], "string")}
    assert len(list(made)) == 6


def test_rows_of_elements_of_several_lengths() -> None:
    assert [plain(x) for x in RANGE(4).map(np.arange).unbatch()] == [0, 0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    "dataset, count",
    [
        (RANGE(4).batch(2, True), 4),
        (RANGE(4).batch(2), di.data.UNKNOWN_CARDINALITY),
        # TensorFlow 2.21 answers these two so.
        (RANGE(4).repeat().batch(2), di.data.INFINITE_CARDINALITY),
        (Dataset.from_tensor_slices(np.zeros((5, 0))), di.data.UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_is_that_of_all_rows(dataset: di.data.Dataset, count: int) -> None:
    assert dataset.unbatch().cardinality() == count


@pytest.mark.parametrize(
    "dataset, message",
    [
        (RANGE(3), "All components must have at least one dimension, got scalar elements in the element"),
        (RANGE(3).batch(2).map(lambda x: (x, x.sum())), r"got scalar elements in component \[1\]"),
        (Dataset.from_tensors(([1, 2], [3])), "all components must have the same first dimension"),
    ],
)
def test_what_the_spec_tells_is_checked_before(dataset: di.data.Dataset, message: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"unbatch: .*{message}" if "got s" in message else f"unbatch: {message}"
    ):
        dataset.unbatch().element_spec  # asking is the act  # noqa: B018


def test_rows_before_an_element_whose_components_disagree_arrive() -> None:
    dataset = RANGE(1, 4).map(lambda x: (np.zeros(min(int(x), 2)), np.zeros(int(x)))).unbatch()
    before, error = until_error(dataset)
    assert before == [(0, 0)] * 3
    assert isinstance(error, InvalidArgumentError)
    assert "unbatch: all components of an element must have the same first dimension, got 2 and 3" in str(error)
