# SPDX-License-Identifier: Apache-2.0
"""Randomness is a function of its key and the position: the same in one piece or in many, and as splitmix64 has it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.plan.families import fresh_seed, key_of, uniform_at, words_at

_MASK = (1 << 64) - 1
KEYS = st.integers(0, _MASK)


def splitmix64(state: int) -> int:
    """The published generator, in plain integers."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
    return state ^ (state >> 31)


@given(KEYS, st.integers(0, 1 << 40), st.integers(0, 20))
def test_words_are_those_of_splitmix64(key: int, start: int, count: int) -> None:
    wanted = [splitmix64((key + 0x9E3779B97F4A7C15 * position) & _MASK) for position in range(start, start + count)]
    assert words_at(key, start, count).tolist() == wanted


@given(KEYS, st.integers(0, 20), st.integers(0, 20))
def test_numbers_do_not_depend_on_where_they_are_cut(key: int, first: int, second: int) -> None:
    whole = uniform_at(key, 5, first + second)
    parts = np.concatenate([uniform_at(key, 5, first), uniform_at(key, 5 + first, second)])
    assert whole.tolist() == parts.tolist()
    assert ((whole >= 0) & (whole < 1)).all()


def test_uniform_numbers_are_spread_evenly() -> None:
    counts, _ = np.histogram(uniform_at(key_of(1), 0, 20_000), bins=10, range=(0, 1))
    assert counts.min() > 1800
    assert counts.max() < 2200


def test_keys_tell_signs_order_size_and_number_of_parts_apart() -> None:
    parts: list[tuple[int, ...]] = [
        (), (0,), (1,), (-1,), (0, 0), (0, 1), (1, 0), (1 << 64,), (1, 1 << 64), (1 << 64, 1), ((1 << 64) + 1,),
    ]  # fmt: skip
    keys = [key_of(*each) for each in parts]
    assert len(set(keys)) == len(parts)
    assert all(0 <= key <= _MASK for key in keys)


def test_keys_are_the_same_for_numpy_integers() -> None:
    assert key_of(np.int64(-7), np.uint64(1 << 63)) == key_of(-7, 1 << 63)


def test_keys_of_saved_states_never_change() -> None:
    # A change of these would make every saved state of a shuffle wrong.
    assert (key_of(1, 2), key_of(-3)) == (13752686981196726545, 9716232063330790915)
    assert words_at(7, 1, 1).tolist() == [7191089600892374487]


def test_fresh_seeds_differ_and_fit_into_int64() -> None:
    seeds = {fresh_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 1 << 63 for seed in seeds)
