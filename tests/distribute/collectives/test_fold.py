# SPDX-License-Identifier: Apache-2.0
"""Reductions in rank order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.collectives.channel import check_reducible, fold, native_view


@given(st.integers(1, 5), st.integers(0, 5), st.sampled_from(["u1", "u2", "u4", "u8", "c8", "c16", "i8", "f4"]))
def test_the_native_view_reduces_to_the_same_bytes(size: int, length: int, dtype: str) -> None:
    generator = np.random.default_rng([size, length])
    parts = [generator.integers(0, 2**62, length).astype(dtype) for _ in range(size)]
    for op in ("sum", "prod"):
        native = fold([native_view(part, op) for part in parts], op).view(dtype)
        assert native.tobytes() == fold(parts, op).tobytes()


def test_a_fold_goes_in_rank_order() -> None:
    parts = [np.array(value, "f4") for value in (1e8, 1.0, -1e8)]
    assert fold(parts, "sum") == np.float32(0)  # (1e8 + 1) - 1e8, in which the 1 is lost
    assert fold(parts[::-1], "sum") == np.float32(0)
    assert fold([parts[0], parts[2], parts[1]], "sum") == np.float32(1)


def test_a_fold_of_one_is_a_copy() -> None:
    part = np.zeros(2)
    fold([part], "sum")[:] = 1
    assert part.tolist() == [0, 0]


@pytest.mark.parametrize("dtype, op", [("?", "sum"), ("?", "prod"), ("S1", "max"), ("M8[s]", "min"), ("O", "sum")])
def test_what_cannot_be_reduced(dtype: str, op: str) -> None:
    with pytest.raises(TypeError, match=r"all_reduce: op .* needs numbers"):
        check_reducible(np.dtype(dtype), op)


def test_an_unknown_operation() -> None:
    with pytest.raises(ValueError, match="op must be one of max, min, prod, sum, got 'mean'"):
        check_reducible(np.dtype("f4"), "mean")
