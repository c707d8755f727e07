# SPDX-License-Identifier: Apache-2.0
"""A pass whose progress is shown gives the elements of the pass, and its state."""

from typing import Any

import pytest

import distinput as di
from tests.data.test_progress_bar import Terminal

RANGE = di.data.Dataset.range


def odd(x: Any) -> Any:
    return x % 2 == 1


def test_the_elements_are_those_of_the_pass() -> None:
    dataset = RANGE(20).shuffle(20, seed=1)
    passes = [list(dataset.iter_pass(number)) for number in (0, 1)]
    dataset = RANGE(20).shuffle(20, seed=1)
    assert [list(dataset.progress()) for _ in range(2)] == passes


def test_the_bounds_are_those_of_the_dataset() -> None:
    stream = Terminal()
    assert len(list(RANGE(100).filter(odd).progress("odd", unit="numbers", kind="plain", stream=stream))) == 50
    assert stream.getvalue().split("\033[K")[-1].startswith("odd: 50 of at most 100 numbers")
    assert stream.getvalue().endswith("\n")


def test_it_has_a_state() -> None:
    dataset = RANGE(10)
    with dataset.progress() as shown:
        assert [next(shown), next(shown)] == [0, 1]
        state = shown.state()
        assert shown.stats()["0:range"]["rows"] == 10
        assert shown.element_spec == dataset.element_spec
    assert list(dataset.restore(state)) == list(range(2, 10))


def test_an_error_takes_the_place_of_an_element() -> None:
    def broken(x: Any) -> Any:
        if x == 1:
            raise KeyError("one")
        return x

    shown = RANGE(3).map(broken).progress()
    assert next(shown) == 0
    with pytest.raises(KeyError):
        next(shown)
    assert list(shown) == [2]
    assert shown.bar.done == 2
