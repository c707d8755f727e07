# SPDX-License-Identifier: Apache-2.0
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from distinput.tpu.device_assignment import ring

SIZE = st.integers(1, 6)


@given(SIZE, SIZE, SIZE)
def test_every_chip_is_passed_once_from_the_corner_on(x: int, y: int, z: int) -> None:
    order = ring(x, y, z)
    assert order[0] == (0, 0, 0)
    assert sorted(order) == sorted(product(range(x), range(y), range(z)))


@given(st.tuples(*[st.sampled_from([1, 2, 4, 6])] * 3).filter(lambda sizes: sum(size > 1 for size in sizes) > 1))
def test_each_chip_is_a_neighbour_of_the_next_and_the_last_of_the_first(sizes: tuple[int, int, int]) -> None:
    order = ring(*sizes)
    for here, there in zip(order, order[1:] + order[:1], strict=True):
        assert sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1


def test_an_odd_size_is_passed_row_by_row() -> None:
    assert ring(3, 2, 1) == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0)]
