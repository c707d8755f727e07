# SPDX-License-Identifier: Apache-2.0
"""`random`: which numbers are equal, and how they are distributed."""

import numpy as np
import pytest

import distinput as di

RANDOM = di.data.Dataset.random


def test_with_a_seed_all_passes_are_equal() -> None:
    ds = RANDOM(seed=4).take(5)
    assert ds.to_list() == ds.to_list() == RANDOM(seed=4).take(5).to_list() != RANDOM(seed=5).take(5).to_list()


def test_each_pass_has_other_numbers_without_a_seed_or_where_asked() -> None:
    for ds in (RANDOM().take(5), RANDOM(4, rerandomize_each_iteration=True).take(5)):
        assert ds.to_list() != ds.to_list()
    both = RANDOM(4, rerandomize_each_iteration=True).take(2).repeat(2).to_list()
    assert both[:2] != both[2:]


def test_numbers_are_those_of_their_positions() -> None:
    ds = RANDOM(seed=1)
    assert ds.skip(70_000).take(2).to_list() == [int(x) for x in ds[[70_000, 70_001]]]


def test_all_numbers_of_32_bits_are_equally_likely() -> None:
    numbers = np.array(list(RANDOM(seed=2).take(20_000)))
    assert numbers.dtype == np.int64
    assert numbers.min() >= 0
    assert numbers.max() < 2**32
    shares = np.bincount(numbers >> 29, minlength=8) / len(numbers)  # the first three bits
    assert np.abs(shares - 1 / 8).max() < 0.01


def test_the_seed_is_an_integer() -> None:
    with pytest.raises(TypeError, match=r"random: seed must be an integer, got 1.5"):
        RANDOM(seed=1.5)  # type: ignore[arg-type]
