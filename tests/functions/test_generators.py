# SPDX-License-Identifier: Apache-2.0
"""Functions that get a generator."""

import functools
import pickle
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.ops.map import WithGenerator


def noisy(x: float, rng: np.random.Generator) -> float:
    return x + rng.random()


def test_numbers_are_a_function_of_the_key() -> None:
    draw = WithGenerator(noisy)
    first, second = np.array([1, 2], np.uint64), np.array([1, 3], np.uint64)
    assert draw(first, 0.0) == draw(first, 0.0) != draw(second, 0.0)
    assert draw(first, 0.0) == np.random.Generator(np.random.Philox(key=first)).random()


def test_the_components_of_a_tuple_are_arguments() -> None:
    draw = WithGenerator(lambda a, b, rng: (a, b, rng.integers(1)))
    assert draw(np.zeros(2, np.uint64), (1, 2)) == (1, 2, 0)


def test_it_has_the_name_of_the_function_and_can_be_sent() -> None:
    draw = pickle.loads(pickle.dumps(WithGenerator(noisy)))
    assert draw.__name__ == "noisy"
    assert draw(np.zeros(2, np.uint64), 1.0) > 1


@pytest.mark.parametrize("function", [lambda x: x, functools.partial(noisy, 1.0)])
def test_a_function_without_a_place_for_the_generator_is_refused(function: Any) -> None:
    with pytest.raises(
        TypeError, match=r"map: with rng=True .* must take two or more, got .*\(.*\); write lambda .*, rng:"
    ):
        di.data.Dataset.range(3).map(function, rng=True)


def test_functions_of_any_number_of_arguments_take_one() -> None:
    assert WithGenerator(lambda *args: len(args))(np.zeros(2, np.uint64), 1.0) == 2
