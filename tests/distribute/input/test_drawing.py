# SPDX-License-Identifier: Apache-2.0
"""Drawing from an input takes no more than asked for, and the state that comes with it leads to the rest."""

import numpy as np
import pytest

import distinput as di
from distinput.distribute.input.dealing import END, drawn, place_of, rows_in
from distinput.values.nest import LEAF, structure_of


@pytest.mark.parametrize("count", [0, 1, 3, 5, 9])
def test_the_state_leads_to_what_was_not_drawn(count: int) -> None:
    dataset = di.data.Dataset.range(5)
    iterator = iter(dataset)
    taken, place = drawn(iterator, count)
    assert taken == list(range(5))[:count]
    assert place == place_of(iterator)
    assert list(dataset.restore(iterator.state())) == list(iterator) == list(range(5))[count:]


def test_an_iterator_of_others_is_asked_for_its_state() -> None:
    class Theirs:
        def __iter__(self) -> "Theirs":
            return self

        def __next__(self) -> int:
            return 7

        def state(self) -> dict[str, int]:
            return {"theirs": 1}

    assert drawn(Theirs(), 2) == ([7, 7], {"theirs": 1})


def test_rows_are_counted_and_the_end_has_none() -> None:
    assert rows_in(LEAF, [np.zeros((3, 2)), END, np.zeros((0, 2)), np.zeros(2)]) == 5
    assert rows_in(structure_of({"a": 0, "b": 0}), [{"a": np.zeros(2), "b": np.zeros((2, 9))}]) == 2
    assert rows_in(LEAF, [END, END]) == 0
