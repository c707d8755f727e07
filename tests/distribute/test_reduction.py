# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.core.array_arithmetic import (
    ReduceOp,
    gather_parts,
    reduce_parts,
    reduce_rows,
    reduce_undistributed,
)
from distinput.distribute.core.replica_reducer import LocalReducer
from distinput.errors import InvalidArgumentError

ints = st.lists(st.lists(st.integers(-1000, 1000), max_size=6), min_size=1, max_size=6)


@given(ints)
def test_reducing_uneven_parts_is_reducing_the_whole(rows: list[list[int]]) -> None:
    parts = [np.array(row, np.int64) for row in rows]
    whole = np.concatenate(parts)
    assert reduce_rows(ReduceOp.SUM, parts, 0) == whole.sum()
    mean = reduce_rows(ReduceOp.MEAN, parts, 0)
    assert mean.dtype == np.float64
    assert np.isnan(mean) if whole.size == 0 else mean == whole.sum() / whole.size


@given(ints, st.integers(1, 3))
def test_gathering_a_split_gives_the_whole(rows: list[list[int]], width: int) -> None:
    parts = [np.repeat(np.array(row, np.int64)[:, None], width, axis=1) for row in rows]
    whole = np.concatenate(parts)
    assert np.array_equal(gather_parts(parts, 0), whole)
    assert np.array_equal(gather_parts([part.T for part in parts], 1), whole.T)
    assert np.array_equal(gather_parts([part.T for part in parts], -1), whole.T)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=8))
def test_the_order_of_summation_is_that_of_the_replicas(values: list[float]) -> None:
    total = np.float32(values[0])
    for value in values[1:]:
        total += np.float32(value)
    assert reduce_parts(ReduceOp.SUM, [np.float32(v) for v in values]) == total


def test_a_mean_of_axes_divides_by_all_items() -> None:
    parts = [np.ones((3, 2), np.float32), np.zeros((1, 2), np.float32)]
    mean = reduce_rows(ReduceOp.MEAN, parts, (0, 1))
    assert mean == 0.75
    assert mean.dtype == np.float32


def test_sums_keep_the_dtype_and_wrap() -> None:
    parts = [np.uint8(200), np.uint8(100)]
    total = reduce_parts(ReduceOp.SUM, parts)
    assert (total, total.dtype) == (44, np.uint8)


def test_means_of_small_integers_do_not_wrap() -> None:
    parts = [np.array([200], np.uint8), np.array([100], np.uint8)]
    assert reduce_parts(ReduceOp.MEAN, parts).tolist() == [150.0]
    assert reduce_rows(ReduceOp.MEAN, parts, 0) == 150.0


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=3), min_size=2, max_size=4), st.booleans())
def test_means_of_large_integers_do_not_wrap(rows: list[list[int]], signed: bool) -> None:
    first, dtype = (2**63, np.int64) if signed else (0, np.uint64)
    whole = [x - first for row in rows for x in row]
    parts = [np.array([x - first for x in row], dtype) for row in rows]
    mean = reduce_rows(ReduceOp.MEAN, parts, 0)
    assert mean.dtype == np.float64
    if whole:
        most = max(map(abs, whole))
        assert abs(mean - sum(whole) / len(whole)) <= most * len(whole) * 2.0**-52
        alike = [np.array(whole, dtype), np.array(whole[::-1], dtype)]
        assert np.abs(reduce_parts(ReduceOp.MEAN, alike) - np.add(*map(np.float64, alike)) / 2).max() <= most * 2.0**-52
        exact = [LocalReducer().reduce(ReduceOp.MEAN, some, 0, deterministic=True) for some in (parts, alike[:1])]
        assert exact == [sum(whole) / len(whole)] * 2


def test_the_mean_of_one_part_keeps_integers() -> None:
    mean = reduce_parts(ReduceOp.MEAN, [np.array([3, 4], np.int32)])
    assert mean.dtype == np.int32


@pytest.mark.needs("ml_dtypes")
def test_bfloat16_is_a_number() -> None:
    import ml_dtypes

    values = np.array([1, 2, 256], ml_dtypes.bfloat16)
    parts = [values, values * values.dtype.type(2)]
    for op, axis, expected in (
        (ReduceOp.SUM, None, [3, 6, 768]),
        (ReduceOp.MEAN, None, [1.5, 3, 384]),
        (ReduceOp.MEAN, 0, 130),
    ):
        made = reduce_parts(op, parts) if axis is None else reduce_rows(op, parts, axis)
        assert (made.dtype, made.tolist()) == (values.dtype, expected)


@pytest.mark.needs("ml_dtypes")
def test_a_sum_of_many_rows_of_bfloat16_is_rounded_once() -> None:
    import ml_dtypes

    assert reduce_rows(ReduceOp.SUM, [np.ones(1000, ml_dtypes.bfloat16)], 0) == 1000


def test_a_result_is_never_the_callers_array() -> None:
    part = np.ones(2)
    reduce_parts(ReduceOp.SUM, [part])[:] = 5
    assert part.tolist() == [1, 1]


def test_no_rows_at_all_is_nan_without_a_warning() -> None:
    empty = [np.zeros((0, 2), np.int64)] * 2
    assert np.isnan(reduce_rows(ReduceOp.MEAN, empty, 0)).all()
    assert reduce_rows(ReduceOp.SUM, empty, 0).tolist() == [0, 0]


def test_text_and_bool_can_be_gathered() -> None:
    text = np.array([b"a"], object)
    assert gather_parts([text, np.array([b"bc"], object)], 0).tolist() == [b"a", b"bc"]
    assert gather_parts([np.array([True]), np.array([False])], 0).tolist() == [True, False]


def test_zero_is_the_only_plain_value_with_a_sum() -> None:
    assert reduce_undistributed(ReduceOp.SUM, 0, 4) == 0
    assert reduce_undistributed(ReduceOp.SUM, np.zeros(3), 4).tolist() == [0, 0, 0]
    assert reduce_undistributed(ReduceOp.MEAN, 3, 4) == 3
    assert reduce_undistributed(ReduceOp.SUM, 3, 1) == 3
    for value in (3, "text", None):
        with pytest.raises(ValueError, match="cannot be reduced with the given reduce op"):
            reduce_undistributed(ReduceOp.SUM, value, 4)


@pytest.mark.parametrize(
    "parts, axis, error, text",
    [
        ([np.ones(2), np.ones(3)], None, InvalidArgumentError, "must have the same size and shape"),
        ([np.float32(1), np.float64(1)], None, InvalidArgumentError, "same dtype"),
        ([np.bool_(1), np.bool_(1)], None, InvalidArgumentError, "needs numbers, got bool"),
        ([np.array(b"a"), np.array(b"b")], None, InvalidArgumentError, "needs numbers, got strings"),
        ([np.ones(2), np.ones(2)], 1, ValueError, "Invalid reduction dimension 1"),
        ([np.ones(2), np.ones(2)], -2, ValueError, "Invalid reduction dimension -2"),
        ([np.ones((2, 2))] * 2, (0, -2), ValueError, "Invalid reduction dimension"),
        ([np.ones(2), np.ones(2)], [0], TypeError, "int or a tuple of ints"),
        ([np.ones(2), np.ones(2)], "0", TypeError, "int or a tuple of ints"),
        ([np.ones((2, 1)), np.ones((2, 2))], 0, InvalidArgumentError, "same size and shape"),
        ([np.ones(1, "f4"), np.ones(1)], 0, InvalidArgumentError, "same dtype"),
    ],
)
def test_what_cannot_be_reduced(parts: list[Any], axis: Any, error: type[Exception], text: str) -> None:
    for op in ReduceOp:
        with pytest.raises(error, match=text):
            reduce_parts(op, parts) if axis is None else reduce_rows(op, parts, axis)


@pytest.mark.parametrize(
    "parts, axis, text",
    [
        ([np.float32(1)] * 2, 0, "Can't concatenate scalars"),
        ([np.ones(1), np.ones((1, 1))], 0, "Shape mismatch: Ranks of all input tensors should match"),
        ([np.ones((1, 2)), np.ones((1, 1))], 0, "Shape mismatch: Dimension 1 in both shapes must be equal"),
        ([np.ones((2, 2))] * 2, 2, "Expected concatenating dimensions"),
        ([np.ones((2, 2))] * 2, -3, "Expected concatenating dimensions"),
        ([np.ones(2), np.ones(2, int)], 0, "same dtype"),
    ],
)
def test_what_cannot_be_gathered(parts: list[Any], axis: int, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        gather_parts(parts, axis)


def test_the_axis_of_gather_is_an_int() -> None:
    with pytest.raises(TypeError, match="axis must be an int"):
        gather_parts([np.ones(1)], None)
