# SPDX-License-Identifier: Apache-2.0
"""Elements are equal only if structure, dtypes, shapes and bits are."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.testing.elements import difference, exact, matches, rows_of

DIFFERENT: list[tuple[Any, Any]] = [
    (np.int64(1), np.int32(1)),
    (np.int64(1), np.array(1)),
    (np.float64(0.0), np.float64(-0.0)),
    (np.zeros((2, 0)), np.zeros((0, 2))),
    (b"1", np.int64(1)),
    ((np.int64(1),), [np.int64(1)]),
    ((np.int64(1),), np.int64(1)),
    ({"a": np.int64(1)}, {"b": np.int64(1)}),
    (np.array([b"a"], object), np.array(["a"], object)),
    (di.data.Dataset.range(2), di.data.Dataset.range(3)),
]


@pytest.mark.parametrize("one, other", DIFFERENT)
def test_what_differs_in_anything_is_not_equal(one: Any, other: Any) -> None:
    assert exact(one) != exact(other)
    assert hash(exact(one)) == hash(exact(one))


def test_equal_elements_are_equal() -> None:
    assert exact(np.array([np.nan])) == exact(np.array([np.nan]))
    assert exact(di.data.Dataset.range(2)) == exact(list(di.data.Dataset.range(2)))
    assert exact({"a": (np.arange(2), b"x")}) == exact({"a": (np.arange(2), b"x")})


@pytest.mark.parametrize(
    "given, expected, same",
    [
        (np.int64(1), 1, True),
        (np.int64(1), 2, False),
        (np.int32(1), np.int64(1), False),  # whoever says a dtype means it
        (np.arange(2), [0, 1], True),
        (b"a", "a", True),
        ({"a": np.float32(0.5)}, {"a": 0.5}, True),
        ({"a": np.float32(0.5)}, {"b": 0.5}, False),
        (di.data.Dataset.range(2), [0, 1], True),  # it stands for its elements
        (di.data.Dataset.range(2), [0, 2], False),
    ],
)
def test_plain_values_are_compared_by_value_alone(given: Any, expected: Any, same: bool) -> None:
    assert matches(given, expected) is same


def test_a_difference_says_where() -> None:
    assert difference([1, 2], [1, 2]) is None
    assert difference([1, 2], [1, 3]) == "element 1 is 2, expected 3"
    assert difference([1], [1, 3]) == "there are 1 elements, expected 2"
    long = difference(["x" * 400], ["y"])
    assert long is not None
    assert len(long) < 400


def test_the_rows_of_a_batch() -> None:
    batch = {"x": np.arange(2), "y": np.array([b"a", b"b"], object)}
    assert rows_of(batch) == [exact({"x": np.int64(i), "y": word}) for i, word in enumerate((b"a", b"b"))]
