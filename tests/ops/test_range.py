# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError

RANGE = di.data.Dataset.range
LARGEST = np.iinfo(np.int64).max


@pytest.mark.parametrize("args", [(5,), (2, 5), (5, 2), (0, 9, 4), (9, 0, -4), (3, 3), (0, 5, -1)])
def test_it_is_the_range_of_python(args: tuple[int, ...]) -> None:
    assert RANGE(*args).to_list() == list(range(*args))
    assert len(RANGE(*args)) == len(range(*args))


@given(st.integers(-LARGEST - 1, LARGEST), st.integers(0, 70_000), st.sampled_from([1, 1, -1, 3, 2**40]))
@example(-LARGEST - 1, 40_000, 1)
@example(LARGEST - 40_000, 40_000, 1)
@settings(deadline=None, max_examples=30)
def test_its_blocks_are_those_of_arange(first: int, count: int, step: int) -> None:
    stop = first + count * step
    assume(-LARGEST <= stop <= LARGEST)
    blocks = [block.columns[0].array for block in RANGE(first, stop, step).iter_blocks()]
    assert np.concatenate([np.empty(0, np.int64), *blocks]).tolist() == np.arange(first, stop, step).tolist()


@given(
    st.integers(0, 300_000), st.sampled_from([1, 3, 2**40, 2**62, -1, -(2**61)]), st.integers(1, 150_000), st.booleans()
)
@example(300_000, 1, 131_072, False)
@example(300_000, -1, 131_073, True)
@example(2, 2**62, 5, True)
@settings(deadline=None, max_examples=30)
def test_its_batches_are_slices_of_that_of_python(count: int, step: int, size: int, to_the_end: bool) -> None:
    end = LARGEST if step > 0 else -LARGEST - 1
    numbers = range(end - count * step, end, step) if to_the_end else range(7, 7 + count * step, step)
    assume(all(-LARGEST - 1 <= each <= LARGEST for each in (numbers.start, numbers.stop)))
    batches = list(RANGE(numbers.start, numbers.stop, numbers.step).take(count).batch(size))
    assert [len(batch) for batch in batches] == [min(size, count - row) for row in range(0, count, size)]
    assert np.concatenate([np.empty(0, np.int64), *batches]).tolist() == list(numbers)


def test_numbers_belong_to_who_got_them() -> None:
    for batch in RANGE(100).batch(10):
        batch[:] = -1
    assert RANGE(100).to_list() == list(range(100))


@pytest.mark.parametrize("dtype", ["int32", "float64", "uint8"])
def test_output_type(dtype: str) -> None:
    assert [x.dtype for x in RANGE(2, output_type=dtype)] == [np.dtype(dtype)] * 2
    assert RANGE(2, output_type=dtype).element_spec == di.TensorSpec([], dtype)


def test_a_range_to_the_largest_number_counts_as_endless() -> None:
    # TensorFlow 2.21 answers so, for any beginning below.
    for first in (0, -3, LARGEST - 1):
        assert RANGE(first, LARGEST).cardinality() == di.data.INFINITE_CARDINALITY
    assert RANGE(LARGEST - 1, LARGEST).to_list() == [LARGEST - 1]


def test_enumerate_from_below_zero() -> None:
    # TensorFlow 2.21 answers so; the numbers on the way to the largest one are more than a length can hold.
    assert RANGE(3).enumerate(-2).to_list() == [(-2, 0), (-1, 1), (0, 2)]
    assert len(RANGE(3).enumerate(-2)) == 3
    assert RANGE(3).repeat().enumerate().cardinality() == di.data.INFINITE_CARDINALITY


def test_the_step_must_not_be_zero() -> None:
    with pytest.raises(InvalidArgumentError, match="range: step must not be 0"):
        RANGE(0, 3, 0)


@pytest.mark.parametrize("args", [(), (1, 2, 3, 4)])
def test_one_to_three_numbers(args: Any) -> None:
    with pytest.raises(ValueError, match=f"range: expected 1 to 3 numbers, got {len(args)}"):
        RANGE(*args)


@pytest.mark.parametrize(
    "numbers, dtype, wrong",
    [
        ((250, 260), "uint8", "259 is none of the numbers that uint8 holds all of, 0 to 255"),
        ((-2, 2), "uint8", "-2 is none of the numbers that uint8"),
        ((5, -200, -100), "int8", "-195 is none of the numbers that int8"),
        ((2048, 2050), "float16", "2049 is none of the numbers that float16 holds all of, -2048 to 2048"),
        ((1 << 24, (1 << 24) + 2), "float32", "16777217 is none of the numbers that float32"),
    ],
)
def test_numbers_that_the_dtype_does_not_hold_are_refused(numbers: Any, dtype: str, wrong: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"range: {wrong}"):
        RANGE(*numbers, output_type=dtype)


@pytest.mark.parametrize(
    "numbers, dtype", [((0, 256), "uint8"), ((127, -129, -1), "int8"), ((0, 4097, 2), "float16"), ((300, 300), "int8")]
)
def test_numbers_that_it_holds_are_exact(numbers: Any, dtype: str) -> None:
    assert [int(x) for x in RANGE(*numbers, output_type=dtype)] == list(range(*numbers))
