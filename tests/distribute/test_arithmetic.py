# SPDX-License-Identifier: Apache-2.0
"""Reductions over the replicas of one process are those of NumPy over what is there."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.reduce_op import ReduceOp

PARTS = st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), min_size=1, max_size=4)


@given(PARTS, st.booleans())
def test_rows_of_all_replicas_are_added(parts: list[list[int]], deterministic: bool) -> None:
    arrays = [np.array(part, np.float64) for part in parts]
    whole = np.concatenate(arrays)
    reduce = Arithmetic().reduce
    assert reduce(ReduceOp.SUM, arrays, 0, deterministic=deterministic) == whole.sum()
    assert math.isclose(reduce(ReduceOp.MEAN, arrays, 0, deterministic=deterministic), whole.mean(), abs_tol=1e-12)


@given(PARTS, st.data())
def test_placeholders_are_left_out(parts: list[list[int]], data: st.DataObject) -> None:
    present = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)).filter(any))
    arrays = [np.array(part, np.float64) for part in parts]
    there = [array for array, each in zip(arrays, present, strict=True) if each]
    found = Arithmetic().reduce(ReduceOp.SUM, arrays, 0, present=present)
    assert found == np.concatenate(there).sum()
    assert Arithmetic().gather(arrays, 0, present=present).tolist() == np.concatenate(there).tolist()


def test_without_an_axis_values_are_added_one_to_one() -> None:
    parts = [np.array([1.0, 2.0]), np.array([3.0, 6.0])]
    assert Arithmetic().reduce(ReduceOp.SUM, parts, None).tolist() == [4.0, 8.0]
    assert Arithmetic().reduce(ReduceOp.MEAN, parts, None).tolist() == [2.0, 4.0]


def test_an_exact_sum_does_not_depend_on_how_rows_are_divided() -> None:
    rows = np.array([1e16, 1.0, -1e16, 1.0])
    for cut in (1, 2, 3):
        parts = [rows[:cut], rows[cut:]]
        assert Arithmetic().reduce(ReduceOp.SUM, parts, 0, deterministic=True) == math.fsum(rows) == 2.0
