# SPDX-License-Identifier: Apache-2.0
"""What writes do to a value."""

from typing import Any

import numpy as np
import pytest

from distinput.distribute.variables.store import UPDATES
from distinput.errors import InvalidArgumentError

ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


@pytest.mark.parametrize(
    "kind, want",
    [
        ("scatter_add", [[11, 22], [3, 4], [35, 46]]),
        ("scatter_sub", [[-9, -18], [3, 4], [-25, -34]]),
        ("scatter_mul", [[10, 40], [3, 4], [150, 240]]),
        ("scatter_div", [[0.1, 0.1], [3, 4], [5 / 30, 0.15]]),
        ("scatter_max", [[10, 20], [3, 4], [30, 40]]),
        ("scatter_min", [[1, 2], [3, 4], [5, 6]]),
        ("scatter_update", [[10, 20], [3, 4], [30, 40]]),
    ],
)
def test_rows_are_changed(kind: str, want: Any) -> None:
    made = UPDATES[kind](ROWS, np.array([0, 2]), np.array([[10, 20], [30, 40]], np.float32))
    np.testing.assert_allclose(made, want, rtol=1e-6)
    assert made.dtype == np.float32
    assert ROWS[0, 0] == 1


@pytest.mark.parametrize(
    "kind, want", [("scatter_add", 7), ("scatter_sub", -5), ("scatter_mul", 6), ("scatter_max", 3), ("scatter_min", 1)]
)
def test_every_mention_of_a_place_counts(kind: str, want: int) -> None:
    assert UPDATES[kind](np.array([1]), np.array([0, 0, 0]), np.array([1, 2, 3])).tolist() == [want]


def test_integers_are_divided_towards_zero() -> None:
    made = UPDATES["scatter_div"](np.array([7, -7, 7, -7]), np.arange(4), np.array([2, 2, -2, -2]))
    assert made.tolist() == [3, -3, -3, 3]
    with pytest.raises(InvalidArgumentError, match=r"Integer division by zero"):
        UPDATES["scatter_div"](np.array([1]), np.array([0]), np.array([0]))


@pytest.mark.parametrize("kind", [kind for kind in UPDATES if kind.startswith("scatter")])
@pytest.mark.parametrize("index", [-1, 3])
def test_places_outside_are_refused(kind: str, index: int) -> None:
    indices = np.array([[index]] if "_nd_" in kind else [index])
    with pytest.raises(InvalidArgumentError, match=f"indices.* = {index} is not in \\[0, 3\\)"):
        UPDATES[kind](ROWS, indices, np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("kind", [kind for kind in UPDATES if kind.startswith("scatter")])
def test_updates_have_the_shape_of_what_they_change(kind: str) -> None:
    indices = np.array([[0]] if "_nd_" in kind else [0])
    with pytest.raises(InvalidArgumentError, match=r"updates must have shape"):
        UPDATES[kind](ROWS, indices, np.zeros((2, 2), np.float32))


def test_a_scalar_update_is_for_all_rows() -> None:
    assert UPDATES["scatter_add"](ROWS, np.array([1]), np.array(1, np.float32))[1].tolist() == [4, 5]


def test_nd_indices_reach_single_numbers_and_rows() -> None:
    at, one = np.array([[2, 1], [0, 0]]), np.array([1, 2], np.float32)
    assert UPDATES["scatter_nd_add"](ROWS, at, one).tolist() == [[3, 2], [3, 4], [5, 7]]
    assert UPDATES["scatter_nd_update"](ROWS, np.array([[1]]), np.array([[8, 9]], np.float32))[1].tolist() == [8, 9]
    with pytest.raises(InvalidArgumentError, match=r"must be from 1 to 2"):
        UPDATES["scatter_nd_add"](ROWS, np.array([[0, 0, 0]]), one[:1])


@pytest.mark.parametrize("kind", ["assign_add", "assign_sub"])
def test_shapes_are_not_broadcast(kind: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"variable with shape \[3, 2\] using a Tensor with shape \[\]"):
        UPDATES[kind](ROWS, np.array(1, np.float32))


@pytest.mark.parametrize("value, dtype", [(np.array([True]), "bool"), (np.array([b"a"], object), "string")])
def test_there_is_no_arithmetic_of_text(value: Any, dtype: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"dtype {dtype}; use assign"):
        UPDATES["assign_add"](value, value)
    with pytest.raises(InvalidArgumentError, match=f"dtype {dtype}; use assign"):
        UPDATES["scatter_add"](value, np.array([0]), value)
    assert UPDATES["scatter_update"](value, np.array([0]), value) == value


def test_a_slice_is_changed() -> None:
    key = (slice(1, None), 0)
    assert UPDATES["slice_assign"](ROWS, key, np.float32(9))[:, 0].tolist() == [1, 9, 9]
    assert UPDATES["slice_assign_add"](ROWS, key, np.float32(9))[:, 0].tolist() == [1, 12, 14]
    assert UPDATES["slice_assign_sub"](ROWS, key, np.float32(1))[:, 0].tolist() == [1, 2, 4]
