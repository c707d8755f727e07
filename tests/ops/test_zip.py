# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di

Dataset = di.data.Dataset
RANGE = Dataset.range


def test_the_shortest_ends_it() -> None:
    assert Dataset.zip(RANGE(2), RANGE(10, 15)).to_list() == [(0, 10), (1, 11)]


def test_elements_are_nested_as_the_data_sets_are() -> None:
    made = Dataset.zip({"a": RANGE(1), "b": (RANGE(1), RANGE(5, 6).enumerate())})
    assert made.to_list() == [{"a": 0, "b": (0, (0, 5))}]


def test_the_older_way_to_name_them() -> None:
    assert Dataset.zip(datasets=(RANGE(1), RANGE(1))).to_list() == [(0, 0)]


@pytest.mark.parametrize(
    "sources, count",
    [
        ((RANGE(2), RANGE(5)), 2),
        ((RANGE(2), RANGE(5).repeat()), 2),
        ((RANGE(2).repeat(), RANGE(5).repeat()), di.data.INFINITE_CARDINALITY),
        ((RANGE(2), RANGE(5).filter(lambda x: True)), di.data.UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_is_that_of_the_shortest(sources: Any, count: int) -> None:
    assert Dataset.zip(*sources).cardinality() == count


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((), {}, "zip: Must pass at least one dataset to `zip`."),
        (((),), {}, "zip: Must pass at least one dataset to `zip`."),
        ((RANGE(1),), {"datasets": RANGE(1)}, r"zip: Both `\*args` and `datasets` cannot be set."),
        (([RANGE(1)],), {}, "zip: the datasets must be nested in tuples or dicts, got a list"),
        ((RANGE(1), 3), {}, "zip: expected a dataset, got 3"),
    ],
)
def test_arguments_are_checked(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Dataset.zip(*args, **kwargs)
