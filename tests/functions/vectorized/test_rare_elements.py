# SPDX-License-Identifier: Apache-2.0
"""Elements that are compared with single calls hide what only rare ones show: no rule may count on the comparison."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.functions.vectorized.blocks import judged

ROWS, RARE = 2000, 1500
TABLE = np.arange(6).reshape(3, 2)
TENTH = np.float64(0.1)


def mostly(usual: Any, rare: Any) -> Any:
    """Rows that are alike, but for one."""
    rows = np.array([usual] * ROWS)
    rows[RARE] = rare
    return rows


def scaled(x: Any) -> Any:
    y = np.where(x > 0, x, np.float32(0))
    y *= TENTH
    y += TENTH
    return y.astype(np.float32)


def aliased(x: Any, added: Any) -> Any:
    y = np.copy(x)
    z = y
    z += added
    return y


def clipped(x: Any, added: Any) -> Any:
    y = np.clip(x, -9, 9)
    z = y
    z += added
    return y


def copied(x: Any, added: Any) -> Any:
    y = x.copy()
    z = y
    z += added
    return y


def taken_by(x: Any, added: Any) -> Any:
    y = x[np.array(0)]
    z = y
    z += added
    return y, x.take(1)


def filled(x: Any) -> Any:
    y = np.zeros_like(x)
    z = y
    z += x
    return y


def indexed(x: Any) -> Any:
    y = np.ones(3)[x, ...]
    z = y
    z += x
    return y


def overwritten(x: Any) -> Any:
    rows = np.zeros((3, 2))
    row = rows[x]
    rows[0] = 7
    return row


def overwritten_by_a_view(x: Any) -> Any:
    rows = np.zeros((3, 2))
    first, row = rows[:1], rows[x]
    first[0] = 7
    return row


def overwritten_behind_a_view(x: Any) -> Any:
    rows = np.zeros((3, 2))
    row = rows[:][:][x]
    rows[[0]] = 7
    return row


def overwritten_as_an_array(x: Any) -> Any:
    rows = np.where(TABLE > 9, 1.0, 0.0)
    row = np.asarray(rows)[x]
    rows[[0]] = 7
    return row


def within(x: Any) -> Any:
    y = np.copy(x)
    return y.T in (y, -1), y.astype(y.dtype, copy=False) in (y, -1)


CASES: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: np.add.reduce(x).max(), mostly(np.zeros((3, 4), int), np.arange(12).reshape(3, 4))),
    (lambda x: np.maximum.reduce(x).sum(), mostly(np.zeros((3, 4), int), np.arange(12).reshape(3, 4))),
    (lambda x: np.add.reduce(x, 1), mostly(np.zeros((3, 4), int), np.arange(12).reshape(3, 4))),
    (scaled, np.linspace(0, 77, ROWS, dtype=np.float32)),
    (aliased, (np.arange(ROWS) * 1.0, mostly(0.0, 5.0))),
    (clipped, (np.arange(ROWS) * 1.0, mostly(0.0, 5.0))),
    (copied, (np.arange(ROWS) * 1.0, mostly(0.0, 5.0))),
    (taken_by, (np.arange(ROWS * 2.0).reshape(-1, 2), mostly(0.0, 5.0))),
    (lambda x, y: np.signbit(x + y), (mostly(1.0, np.nan), mostly(1.0, -np.nan))),
    (lambda x, y: np.copysign(1.0, x + y), (mostly(1.0, np.nan), mostly(1.0, -np.nan))),
    (filled, mostly(0, 3)),
    (indexed, mostly(0, 2)),
    (lambda x: x + len([0] * x), mostly(1, 3)),
    (lambda x: x + len((1, 2) * x), mostly(1, 3)),
    (overwritten, mostly(1, 0)),
    (overwritten_by_a_view, mostly(1, 0)),
    (overwritten_behind_a_view, mostly(1, 0)),
    (overwritten_as_an_array, mostly(1, 0)),
    (within, mostly(1.0, np.nan)),
]


@pytest.mark.parametrize("function, rows", CASES)
def test_a_rare_element_has_the_result_of_its_single_call(function: Callable[..., Any], rows: Any) -> None:
    dataset = di.data.Dataset.from_tensor_slices(rows)
    alone = list(dataset.map(function, vectorize=False))
    for element, wanted in zip(dataset.map(function), alone, strict=True):
        np.testing.assert_equal(element, wanted)


@pytest.mark.parametrize("function", [lambda x: TABLE[x], lambda x: TABLE[:, 0][x], lambda x: np.arange(3)[x]])
def test_an_index_that_is_too_large_is_an_error(function: Callable[..., Any]) -> None:
    dataset = di.data.Dataset.from_tensor_slices(mostly(np.uint64(1), np.uint64(2**64 - 1)))
    with pytest.raises((IndexError, OverflowError)):
        list(dataset.map(function))


def test_a_number_that_does_not_fit_where_it_is_assigned_is_an_error() -> None:
    def assigned(x: Any) -> Any:
        y = np.zeros_like(x, np.int8)
        y[...] = 1
        z = np.stack([y, y])
        z[0] = x
        return z

    dataset = di.data.Dataset.from_tensor_slices(mostly(1, 300))
    with pytest.raises(OverflowError):
        list(dataset.map(assigned))


def test_a_difference_below_zero_warns_for_large_numbers_too() -> None:
    rows = (mostly(np.uint64(5), np.uint64(2**63)), mostly(np.uint64(3), np.uint64(2**63 + 1)))
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert list(di.data.Dataset.from_tensor_slices(rows).map(lambda x, y: x - y))[RARE] == 2**64 - 1


def test_differences_of_order_0_are_the_element_itself() -> None:
    def changed(x: Any) -> Any:
        y = np.diff(x, 0)
        y[0] = 7
        return y

    rows = np.zeros((ROWS, 3))
    assert "it changes its argument" in judged(changed, rows)
    assert not rows.any()


def test_a_table_from_outside_is_not_changed_by_the_rules() -> None:
    rows = di.data.Dataset.range(ROWS).map(lambda x: TABLE[x % 3] * 2)
    assert [row.tolist() for row in rows] == [(TABLE[n % 3] * 2).tolist() for n in range(ROWS)]
    assert TABLE.flags.writeable


def test_numbers_may_be_changed_where_numpy_gives_another_one() -> None:
    def summed(row: Any) -> Any:
        total = row[0]
        total += row.sum()
        total *= 2
        return total

    rows = np.arange(3 * ROWS).reshape(ROWS, 3)
    dataset = di.data.Dataset.from_tensor_slices(rows).map(summed)
    assert list(dataset) == (2 * (rows[:, 0] + rows.sum(axis=1))).tolist()
    assert "whole blocks" in str(dataset.explain())


def added_where_it_is_77(y: Any) -> Any:
    z = y
    y += y == 77
    return z


@pytest.mark.parametrize("first", [lambda x: np.where(x > 50, x, -x), np.copy], ids=["where", "copy"])
def test_an_array_without_dimensions_is_a_number_to_the_next_function(first: Callable[..., Any]) -> None:
    rows = di.data.Dataset.from_tensor_slices(mostly(1, 77))
    auto, each = [
        rows.map(first, vectorize=vectorize).map(added_where_it_is_77, vectorize=vectorize)
        for vectorize in ("auto", False)
    ]
    assert auto.to_list() == each.to_list()


def beside_zeros(x: Any) -> Any:
    return x, np.zeros((90, 2))


def changed_by_a_view_before(x: Any, zeros: Any) -> Any:
    view = zeros[77:78]
    row = np.asarray(zeros)[x]
    view += 1
    return row * 1


def test_a_constant_of_the_function_before_may_be_changed_by_a_view() -> None:
    rows = di.data.Dataset.from_tensor_slices(mostly(1, 77))
    auto, each = [
        rows.map(beside_zeros, vectorize=vectorize).map(changed_by_a_view_before, vectorize=vectorize)
        for vectorize in ("auto", False)
    ]
    np.testing.assert_array_equal(np.stack(auto.to_list()), np.stack(each.to_list()))


def test_an_array_of_the_user_stays_writable() -> None:
    table = np.arange(10)
    rows = di.data.Dataset.range(1000).map(lambda x: x % 7)
    rows.map(lambda x: (x, table)).map(lambda x, t: np.asarray(t)[x]).to_list()
    rows.map(lambda x: np.asarray(np.broadcast_to(table, (10,)))[x]).to_list()
    table[0] = 5
