# SPDX-License-Identifier: Apache-2.0
"""The arrays that workers contribute to the checks, and how results are compared."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.distribute.engines import Collectives

__all__ = ["NUMBERS", "Array", "Check", "made", "same"]

Array: TypeAlias = npt.NDArray[Any]
Check: TypeAlias = Callable[[Collectives], None]
"""What holds on every engine: every worker calls it with its group."""

NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
"""Dtypes of numbers."""


def made(rank: int, dtype: str, shape: Sequence[int], seed: int = 0) -> Array:
    """The array that a worker contributes; every worker can compute that of every other one."""
    generator = np.random.Generator(np.random.Philox(key=[seed, rank]))
    bits = generator.integers(-100, 100, size=tuple(shape))
    if dtype[0] in "fc":
        return (bits * 0.37 * (1 + 0.5j if dtype[0] == "c" else 1)).astype(dtype)
    return bits.astype(dtype)  # negative ones become large unsigned ones, whose sums wrap


def same(actual: Array, expected: Array) -> None:
    """Two arrays are equal in dtype, shape and values, and the first is a fresh array of its own."""
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    np.testing.assert_array_equal(actual, expected)
    assert actual.flags.c_contiguous, "the result is not C-contiguous"
    assert actual.flags.writeable, "the result cannot be written to"
