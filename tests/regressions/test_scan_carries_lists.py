# SPDX-License-Identifier: Apache-2.0
"""A list is an array where `scan` carries or returns it, as in TensorFlow."""

import numpy as np

import distinput as di

RANGE = di.data.Dataset.range


def test_the_first_state_may_be_a_list() -> None:
    made = RANGE(6).scan([0, 1], lambda s, x: ([s[1], s[0] + s[1]], s[0]))
    assert made.to_list() == [0, 1, 1, 2, 3, 5]
    iterator = iter(made)
    next(iterator)
    assert [int(x) for x in made.restore(iterator.state())] == [1, 1, 2, 3, 5]


def test_a_list_among_the_outputs_is_an_array() -> None:
    (first, _) = RANGE(2).scan(np.int64(0), lambda s, x: (s, [x, x + 1]))
    assert first.tolist() == [0, 1]


def test_a_list_stands_for_the_tuple_that_is_carried() -> None:
    assert RANGE(3).scan((0, 1), lambda s, x: ([s[1], s[0]], s[0])).to_list() == [0, 1, 0]
    assert RANGE(3).reduce((np.int64(0), 1), lambda s, x: [s[0] + x, s[1]]) == (3, 1)
