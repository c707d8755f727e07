# SPDX-License-Identifier: Apache-2.0
"""Record numbers from a state on: the same states, and what is refused."""

from typing import Any

import pytest

import distinput as di
from distinput.lineage.followed import Followed, followed
from distinput.rewrite.rules import Running


def made(dataset: Any) -> Followed:
    return followed(Running.of(dataset.node).node, 0)


def records(found: Followed, state: Any, skip: int, count: int) -> list[list[int]]:
    return [found.places(numbers.reshape(-1))[1].tolist() for numbers in found.elements(state, skip, count)]


def test_elements_from_a_state_on() -> None:
    dataset = di.data.Dataset.range(20).filter(lambda x: x % 3 > 0).batch(2)
    found = made(dataset)
    assert records(found, found.node.start(0), 0, 2) == [[1, 2], [4, 5]]
    with iter(dataset) as iterator:
        for _ in range(3):
            next(iterator)
        place = iterator.state()
    assert records(found, place["at"], place["skip"], 99) == [[10, 11], [13, 14], [16, 17], [19]]
    assert found.files == ("<range>",)


def test_a_zip_has_no_records_of_what_only_counts() -> None:
    dataset = di.data.Dataset.from_tensor_slices([5, 6, 7, 8]).enumerate().filter(lambda i, x: x % 2 == 0)
    found = made(dataset)
    numbers = found.elements(found.node.start(0), 0, 9)
    assert [(array >= 0).tolist() for array in numbers] == [[False, True], [False, True]]
    assert [int(found.places(array[1:])[1][0]) for array in numbers] == [1, 3]


def test_states_of_another_form_are_refused() -> None:
    found = made(di.data.Dataset.range(20).filter(lambda x: x > 3).batch(2))
    with pytest.raises(di.errors.UnimplementedError, match=r"its states are not those of its records .*lacks 'input'"):
        found.elements({"row": 1}, 0, 1)


def test_a_generator_has_no_records() -> None:
    dataset = di.data.Dataset.from_generator(lambda: iter(range(9)), output_signature=di.TensorSpec((), di.int64))
    found = made(dataset.filter(lambda x: x > 3))
    with pytest.raises(di.errors.UnimplementedError, match=r"generator.*Ledger.replay gives the step itself"):
        found.elements(found.node.start(0), 0, 1)
