# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range
counted = di.data.experimental.assert_cardinality


def test_options_change_no_element() -> None:
    dataset = RANGE(3).with_options(di.data.Options())
    assert dataset.to_list() == [0, 1, 2]
    assert len(dataset) == 3


def test_options_must_be_options() -> None:
    with pytest.raises(TypeError, match=r"with_options: options must be an Options object, got \{'a': 1\}"):
        RANGE(3).with_options({"a": 1})


def test_an_asserted_cardinality_is_believed() -> None:
    dataset = RANGE(6).filter(lambda x: x > 3).apply(counted(2))
    assert len(dataset) == 2
    assert dataset.to_list() == [4, 5]


@pytest.mark.parametrize(
    "asserted, before, message",
    [
        (2, [0, 1], "was expected to contain 2 of elements but contained at least 3 elements"),
        (4, [0, 1, 2], "was expected to contain 4 of elements but contained 3 elements"),
        (-1, [0, 1, 2], "was expected to contain an infinite number of elements but contained 3 elements"),
        # A count that cannot be is wrong for any data; TensorFlow 2.21 answers so.
        (-2, [], "was expected to contain -2 of elements but contained at least 3 elements"),
    ],
)
def test_a_wrong_cardinality_is_an_error(asserted: int, before: list[int], message: str) -> None:
    found, error = until_error(RANGE(3).apply(counted(asserted)))
    assert found == before
    assert isinstance(error, FailedPreconditionError)
    assert message in str(error)


@pytest.mark.parametrize("count, error", [(-3, InvalidArgumentError), (1.5, TypeError)])
def test_the_cardinality_is_checked(count: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"assert_cardinality: expected_cardinality must be an? .* got {count}"):
        RANGE(3).apply(counted(count))


def test_a_state_behind_a_count_that_cannot_be_is_restored() -> None:
    dataset = RANGE(3).apply(counted(-2))
    elements = iter(dataset)
    with pytest.raises(FailedPreconditionError):
        next(elements)
    assert list(elements) == []
    assert list(dataset.restore(elements.state())) == []
