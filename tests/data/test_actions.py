# SPDX-License-Identifier: Apache-2.0
"""What a whole pass gives: its only element, a number, a list."""

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset
RANGE = Dataset.range


def test_a_single_element() -> None:
    assert RANGE(1).get_single_element() == 0
    with pytest.raises(InvalidArgumentError, match=r"^get_single_element: Dataset was empty\.$"):
        RANGE(0).get_single_element()
    with pytest.raises(InvalidArgumentError, match=r"^get_single_element: Dataset had more than one element\.$"):
        RANGE(2).get_single_element()


def test_reduce_keeps_the_dtype_of_its_state() -> None:
    total = RANGE(5).reduce(np.float32(0), lambda state, x: state + np.float32(x))
    assert (total, total.dtype) == (10, np.float32)
    with pytest.raises(TypeError, match=r"^reduce: "):
        RANGE(5).reduce(np.float32(0), lambda state, x: (state, x))
    with pytest.raises(TypeError, match=r"^reduce: reduce_func must be a function, got 3$"):
        RANGE(5).reduce(0, 3)


def test_a_list_shows_plain_values() -> None:
    dataset = Dataset.zip(RANGE(2), Dataset.from_tensor_slices(["a", "b"]), RANGE(4).window(2))
    assert dataset.to_list() == [(0, b"a", [0, 1]), (1, b"b", [2, 3])]
