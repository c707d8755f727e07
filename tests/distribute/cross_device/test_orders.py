# SPDX-License-Identifier: Apache-2.0
"""The order of additions, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.core.array_arithmetic import ReduceOp, reduce_parts
from distinput.distribute.core.mirrored import in_halves, in_replica_order, in_ring, packed, reduced
from distinput.errors import InvalidArgumentError

ORDERS = (in_replica_order, in_halves, in_ring)


def one_by_one(numbers: list[np.float32]) -> np.float32:
    total = numbers[0]
    for number in numbers[1:]:
        total = np.float32(total + number)
    return total


def slow_halves(numbers: list[np.float32], chunk: int) -> np.float32:
    half = len(numbers) // 2
    return one_by_one([one_by_one(part) for part in (numbers[:half], numbers[half:]) if part])


def slow_ring(numbers: list[np.float32], chunk: int) -> np.float32:
    return one_by_one(numbers[chunk:] + numbers[:chunk])


def chunk_of(index: int, size: int, chunks: int) -> int:
    """Which chunk of `numpy.array_split` an index is in: the first `size % chunks` are one longer."""
    short, longer = divmod(size, chunks)
    edge = longer * (short + 1)
    return index // (short + 1) if index < edge else longer + (index - edge) // short


@st.composite
def parts(draw: st.DrawFn) -> list[np.ndarray]:
    replicas, size = draw(st.integers(1, 6)), draw(st.integers(0, 9))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [(random.standard_normal(size) * 10.0 ** random.integers(-6, 6, size)).astype("f4") for _ in range(replicas)]


@given(parts())
def test_each_order_is_the_one_that_is_written_down(values: list[np.ndarray]) -> None:
    size, n = len(values[0]), len(values)
    columns = [[value[i] for value in values] for i in range(size)]
    for add, slow in ((in_halves, slow_halves), (in_ring, slow_ring)):
        expected = [slow(numbers, chunk_of(i, size, n)) for i, numbers in enumerate(columns)]
        assert add(values).tobytes() == np.array(expected, "f4").tobytes(), add.__name__
    assert in_replica_order(values).tobytes() == np.array([one_by_one(c) for c in columns], "f4").tobytes()


def test_the_orders_differ_where_floats_round() -> None:
    values = [np.float32([x]) for x in (1e8, -1e8, 1.0, 0.25)]
    assert [float(add(values)[0]) for add in ORDERS] == [1.25, 1.25, 1.25]
    values = [np.float32([x, x, x]) for x in (1e8, 1.0, -1e8)]
    assert in_replica_order(values).tolist() == [0.0, 0.0, 0.0]
    assert in_halves(values).tolist() == [0.0, 0.0, 0.0]
    assert in_ring(values).tolist() == [0.0, 0.0, 1.0]  # the last chunk begins at replica 2


@given(st.integers(1, 7), st.integers(0, 11))
def test_sums_and_means_of_integers_do_not_depend_on_the_order(replicas: int, size: int) -> None:
    values = [np.arange(size) * 7 - i for i in range(replicas)]
    for op in ReduceOp:
        expected = reduce_parts(op, values)
        for add in ORDERS:
            made = reduced(op, values, add)
            assert made.dtype == expected.dtype
            assert np.array_equal(made, expected)


@pytest.mark.parametrize("op", list(ReduceOp))
def test_the_arguments_stay_as_they_are_and_the_result_is_nobody_elses(op: ReduceOp) -> None:
    for add in ORDERS:
        values = [np.ones(3), np.ones(3)]
        made = reduced(op, values, add)
        made += 1
        assert [value.tolist() for value in values] == [[1, 1, 1], [1, 1, 1]]
        alone = [np.ones(3)]
        reduced(op, alone, add)[:] = 7
        assert alone[0].tolist() == [1, 1, 1]


@given(parts(), st.integers(0, 4))
def test_packs_are_summed_one_by_one(values: list[np.ndarray], packs: int) -> None:
    """Laid end to end and cut: the same as adding each pack of the long array."""
    others = [np.float32([[i, 2 * i], [0.1, i]]) for i in range(len(values))]
    whole = [np.concatenate([a, b.reshape(-1)]) for a, b in zip(values, others, strict=True)]
    first, second = packed(ReduceOp.SUM, [values, others], in_ring, packs)
    if packs:
        cut = [np.array_split(value, packs) for value in whole]
        expected = np.concatenate([in_ring([pieces[p] for pieces in cut]) for p in range(packs)])
    else:
        expected = np.concatenate([in_ring(values), in_ring(others).reshape(-1)])
    assert np.concatenate([first, second.reshape(-1)]).tobytes() == expected.tobytes()
    assert second.shape == (2, 2)


def test_values_of_different_dtypes_do_not_share_a_pack() -> None:
    made = packed(ReduceOp.MEAN, [[np.arange(3), np.arange(3)], [np.float32(1), np.float32(2)]], in_ring, 1)
    assert [value.dtype for value in made] == [np.float64, np.float32]
    assert made[0].tolist() == [0.0, 1.0, 2.0]
    assert made[1] == np.float32(1.5)


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must have the same size and shape"):
        packed(ReduceOp.SUM, [[np.zeros(2), np.zeros(3)]], in_ring, 1)
