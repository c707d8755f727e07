# SPDX-License-Identifier: Apache-2.0
"""Reductions over the replicas of one process are those of NumPy over what is there."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.replica_reducer import LocalReducer, ReplicaCall
from distinput.errors import InvalidArgumentError

PARTS = st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), min_size=1, max_size=4)


@given(PARTS, st.booleans())
def test_rows_of_all_replicas_are_added(parts: list[list[int]], deterministic: bool) -> None:
    arrays = [np.array(part, np.float64) for part in parts]
    whole = np.concatenate(arrays)
    reduce = LocalReducer().reduce
    assert reduce(ReduceOp.SUM, arrays, 0, deterministic=deterministic) == whole.sum()
    assert math.isclose(reduce(ReduceOp.MEAN, arrays, 0, deterministic=deterministic), whole.mean(), abs_tol=1e-12)


@given(PARTS, st.data())
def test_placeholders_are_left_out(parts: list[list[int]], data: st.DataObject) -> None:
    present = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)).filter(any))
    arrays = [np.array(part, np.float64) for part in parts]
    there = [array for array, each in zip(arrays, present, strict=True) if each]
    found = LocalReducer().reduce(ReduceOp.SUM, arrays, 0, ReplicaCall("reduce", present=present))
    assert found == np.concatenate(there).sum()
    assert (
        LocalReducer().gather(arrays, 0, ReplicaCall("gather", present=present)).tolist()
        == np.concatenate(there).tolist()
    )


def test_without_an_axis_values_are_added_one_to_one() -> None:
    parts = [np.array([1.0, 2.0]), np.array([3.0, 6.0])]
    assert LocalReducer().reduce(ReduceOp.SUM, parts, None).tolist() == [4.0, 8.0]
    assert LocalReducer().reduce(ReduceOp.MEAN, parts, None).tolist() == [2.0, 4.0]


def test_an_exact_sum_does_not_depend_on_how_rows_are_divided() -> None:
    rows = np.array([1e16, 1.0, -1e16, 1.0])
    for cut in (1, 2, 3):
        parts = [rows[:cut], rows[cut:]]
        assert LocalReducer().reduce(ReduceOp.SUM, parts, 0, deterministic=True) == math.fsum(rows) == 2.0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_an_exact_sum_of_integers_is_the_sum_of_integers(dtype: Any) -> None:
    parts = [np.array([[100, 1], [2, 100]], dtype), np.array([[100, 2**7 - 1]], dtype)]
    for op in ReduceOp:
        for axis, chosen in ((None, [part[:1] for part in parts]), (0, parts), ((0, 1), parts)):
            want = LocalReducer().reduce(op, chosen, axis)
            got = LocalReducer().reduce(op, chosen, axis, deterministic=True)
            assert np.array_equal(got, want)
            assert got.dtype == want.dtype


def test_an_exact_sum_of_what_is_neither_float_nor_integer_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"needs integers or floats, got complex128; reduce .real and .imag"):
        LocalReducer().reduce(ReduceOp.SUM, [np.ones(2, complex)], 0, deterministic=True)
    with pytest.raises(InvalidArgumentError, match="must have the same dtype, got int64 and float64"):
        LocalReducer().reduce(ReduceOp.SUM, [np.ones(2, int), np.ones(2)], 0, deterministic=True)


def test_the_first_value_is_that_of_replica_0() -> None:
    assert LocalReducer().first([np.ones(2), np.zeros(2)], ReplicaCall("write")).tolist() == [1.0, 1.0]


def test_a_mean_of_small_floats_counts_beyond_what_they_hold() -> None:
    threes = [np.full(40_000, 3, np.float16)] * 2  # whose sum float16 cannot hold either
    made = LocalReducer().reduce(ReduceOp.MEAN, threes, 0)
    assert (made, made.dtype) == (3, np.float16)
    assert LocalReducer().reduce(ReduceOp.MEAN, [part[:, None] for part in threes], 0).tolist() == [3]
    assert LocalReducer().reduce(ReduceOp.MEAN, [np.float16(60_000)] * 2, None) == np.float16(60_000)


@pytest.mark.parametrize("op", list(ReduceOp))
@pytest.mark.parametrize("axis", [None, 0])
def test_another_byte_order_makes_no_difference(op: ReduceOp, axis: Any) -> None:
    parts = [np.arange(3, dtype=np.float32), np.arange(3, 6, dtype=np.float32)]
    made = LocalReducer().reduce(op, [parts[0].astype(">f4"), parts[1]], axis)
    np.testing.assert_array_equal(made, LocalReducer().reduce(op, parts, axis))
    assert made.dtype == np.float32


def test_texts_of_any_width_are_gathered() -> None:
    assert LocalReducer().gather([np.array(["a"]), np.array(["bcd"])], 0).tolist() == ["a", "bcd"]
    with pytest.raises(InvalidArgumentError, match="same dtype"):
        LocalReducer().gather([np.array(["a"]), np.array([b"b"])], 0)
