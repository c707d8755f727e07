# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from tests.ops.iterating import plain, state_bytes, until_error

RANGE = di.data.Dataset.range


@pytest.mark.parametrize(
    "size, drop, want",
    [
        (2, False, [[0, 1], [2, 3], [4, 5], [6]]),
        (5, False, [[0, 1, 2, 3, 4], [5, 6]]),
        (5, True, [[0, 1, 2, 3, 4]]),
        ([1, 3], False, [[0], [1, 2, 3], [4], [5, 6]]),
        ([1, 3], True, [[0], [1, 2, 3], [4]]),
        ([2, 0], False, [[0, 1], [], [2, 3], [], [4, 5], [], [6]]),
        ([0, 7], False, [[], [0, 1, 2, 3, 4, 5, 6], []]),
        (np.array([4, 2]), False, [[0, 1, 2, 3], [4, 5], [6]]),
    ],
)
def test_sizes_run_through_the_rows(size: Any, drop: bool, want: list[list[int]]) -> None:
    assert RANGE(7).batch(3).rebatch(size, drop).to_list() == want


def test_a_leading_zero_does_not_look_at_an_empty_input() -> None:
    made = RANGE(0).batch(3).rebatch([0, 2])
    assert made.to_list() == [[]]
    assert next(iter(made)).dtype == np.int64


def test_components_are_cut_alike() -> None:
    made = RANGE(3).map(lambda x: (x, {"a": [x, x]})).batch(2).rebatch(3)
    assert [plain(x) for x in made] == [([0, 1, 2], {"a": [[0, 0], [1, 1], [2, 2]]})]


@pytest.mark.parametrize(
    "batch, drop_first, size, drop, first",
    [(4, True, 2, False, 2), (4, True, 3, False, None), (4, False, 2, False, None), (4, False, 2, True, 2)],
)
def test_the_first_dimension_is_known_where_no_batch_can_be_short(
    batch: int, drop_first: bool, size: int, drop: bool, first: int | None
) -> None:
    made = RANGE(9).batch(batch, drop_first).rebatch(size, drop)
    assert made.element_spec == di.TensorSpec([first], "int64")


@pytest.mark.parametrize(
    "size, error, message",
    [
        (0, InvalidArgumentError, "batch_size must be greater than zero, got 0"),
        ([2, -1], InvalidArgumentError, "batch_size must be at least 0, got -1"),
        ([0, 0], InvalidArgumentError, r"batch_size must hold a positive size, got \[0, 0\]"),
        ([], InvalidArgumentError, r"batch_size must hold a positive size, got \[\]"),
        (1.5, TypeError, "batch_size must be an integer, got 1.5"),
    ],
)
def test_sizes_are_checked(size: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"rebatch: {message}"):
        RANGE(7).batch(3).rebatch(size)


def test_scalars_cannot_be_rebatched() -> None:
    message = "rebatch: All components must have at least one dimension, got scalar elements in the element"
    with pytest.raises(InvalidArgumentError, match=message):
        RANGE(7).rebatch(2).element_spec  # asking is the act  # noqa: B018


def test_components_must_have_the_same_first_dimension() -> None:
    with pytest.raises(InvalidArgumentError, match="rebatch: all components must have the same first dimension, got"):
        di.data.Dataset.from_tensors(([1, 2], [3])).rebatch(2).element_spec  # noqa: B018


def test_rows_of_one_batch_must_agree_in_shape() -> None:
    dataset = RANGE(3).map(lambda x: np.zeros((2, 1 + int(x) // 2))).rebatch(3)
    before, error = until_error(dataset)
    assert before == [[[0], [0], [0]]]
    assert isinstance(error, FailedPreconditionError)  # TensorFlow 2.21 answers so
    assert (
        "rebatch: Cannot batch tensors with different shapes: first element had shape [1], another one has [2]"
        in str(error)
    )


def test_the_state_holds_no_rows() -> None:
    assert state_bytes(RANGE(10_000).batch(5_000).rebatch(3_000), 2) < 400


def test_rows_without_numbers_are_cut_too() -> None:
    for size in (1, 2, 3):
        rows = di.data.Dataset.from_tensor_slices(np.zeros((7, 0), np.int64)).map(lambda x: x).repeat(2)
        made = [batch.shape for batch in rows.batch(5).rebatch(size)]
        assert made == [(min(size, 14 - first), 0) for first in range(0, 14, size)]


@pytest.mark.parametrize("add", [lambda ds: ds.unbatch(), lambda ds: ds.rebatch(3), lambda ds: ds.pack(3)])
@pytest.mark.parametrize("nothing", [(), None])
def test_elements_without_a_component_have_no_rows(add: Any, nothing: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="elements must have at least one component"):
        add(RANGE(4).map(lambda x: nothing).batch(2)).to_list()
