# SPDX-License-Identifier: Apache-2.0
"""The records of batches of many kinds."""

from typing import Any

import numpy as np
import pytest

from distinput.testing.judge.delivery import UnknownBatch, ids_of, look_of


@pytest.mark.parametrize(
    "batch",
    [
        [3, 4],
        (3, 4),
        range(3, 5),
        np.array([3, 4]),
        np.array([3.0, 4.0], np.float32),
        [np.int64(3), np.int64(4)],
        {"id": [3, 4], "x": "other"},
        {"record": np.array([[3], [4]])},
        (np.array([3, 4]), np.array([0.5, 0.7])),
        [np.array([3, 4]), np.array([0.5, 0.7])],
        [[3, 4]],
        [{"id": 3}, {"id": 4}],
    ],
    ids=repr,
)
def test_records_are_found(batch: Any) -> None:
    assert ids_of(batch) == [3, 4]


def test_names_are_records_too() -> None:
    assert ids_of(["a", "b"]) == ["a", "b"]
    assert ids_of([b"a"]) == [b"a"]


@pytest.mark.parametrize(
    "batch", [{"x": [1], "y": [2]}, [0.5], object(), [None]], ids=["columns", "float", "object", "None"]
)
def test_what_cannot_be_told_is_not_guessed(batch: Any) -> None:
    with pytest.raises(UnknownBatch, match="give ids="):
        ids_of(batch)


def test_batches_of_other_dtypes_and_shapes_look_different() -> None:
    full = {"id": np.arange(3), "x": np.zeros((3, 2), np.float32)}
    assert look_of(full) == look_of({"x": np.zeros((0, 2), np.float32), "id": np.arange(0)})
    assert look_of(full) != look_of({**full, "x": np.zeros((0, 3), np.float32)})
    assert look_of(full) != look_of({**full, "x": np.zeros((0, 2), np.float64)})
    assert look_of(full) != look_of({**full, "id": []})
