# SPDX-License-Identifier: Apache-2.0
import sys
from typing import Any

import pytest

import distinput as di
from distinput.errors import InputWarning
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range
INFINITE, UNKNOWN = di.data.INFINITE_CARDINALITY, di.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    "count, taken, left", [(0, [], [0, 1, 2]), (2, [0, 1], [2]), (9, [0, 1, 2], []), (-1, [0, 1, 2], [])]
)
def test_take_and_skip(count: int, taken: list[int], left: list[int]) -> None:
    for source in (RANGE(3), RANGE(3).filter(lambda x: True)):
        assert source.take(count).to_list() == taken
        assert source.skip(count).to_list() == left
    assert len(RANGE(3).take(count)) == len(taken)
    assert len(RANGE(3).skip(count)) == len(left)


@pytest.mark.parametrize(
    "made, count",
    [
        (RANGE(3).repeat().take(5), 5),
        (RANGE(3).repeat().take(-1), INFINITE),
        (RANGE(3).repeat().skip(5), INFINITE),
        (RANGE(3).filter(lambda x: True).take(0), UNKNOWN),
        (RANGE(3).filter(lambda x: True).skip(-1), UNKNOWN),
    ],
)
def test_the_cardinality_is_what_is_left(made: di.data.Dataset, count: int) -> None:
    assert made.cardinality() == count


@pytest.mark.parametrize("op", ["take", "skip"])
@pytest.mark.parametrize("count", [1.5, None, "2"])
def test_the_count_must_be_a_whole_number(op: str, count: Any) -> None:
    with pytest.raises(TypeError, match=f"{op}: count must be an integer, got"):
        getattr(RANGE(3), op)(count)


def test_take_asks_for_no_element_too_many() -> None:
    seen = []

    def note(x: int) -> int:
        seen.append(int(x))
        return x

    RANGE(100_000).map(note, output_signature=di.TensorSpec([], "int64")).take(2).to_list()
    assert len(seen) < 50_000


def test_an_error_behind_the_last_element_taken_is_not_seen() -> None:
    dataset = RANGE(5).map(lambda x: 6 // int(2 - x), output_signature=di.TensorSpec([], "int64"))
    assert dataset.take(2).to_list() == [3, 6]
    assert until_error(dataset.take(3))[0] == [3, 6]


@pytest.mark.parametrize("count", [sys.maxsize, 1 << 70])
def test_a_restart_with_a_count_that_no_data_has(count: int) -> None:
    for dataset, rest in ((odd().take(count), [3, 5]), (odd().skip(count), [])):
        with iter(dataset) as elements:
            next(elements, None)
            state = elements.state()
        assert [int(x) for x in dataset.restore(state)] == rest


def odd() -> di.data.Dataset:
    return RANGE(6).filter(lambda x: x % 2 == 1)


def test_parts_of_what_each_pass_shuffles_anew_are_told() -> None:
    shuffled = RANGE(10).shuffle(10, seed=1).map(lambda x: x)
    shuffled.take(3)
    shuffled.skip(4)
    with pytest.warns(
        InputWarning, match=r"take\(3\) and skip\(3\) are no parts of shuffle\(.*a record may be in both"
    ):
        shuffled.skip(3)
    kept = RANGE(10).shuffle(10, seed=1).cache().map(lambda x: x)
    assert len(kept.to_list()) == 10
    for fixed in (RANGE(10), RANGE(10).shuffle(10, seed=1, reshuffle_each_iteration=False), kept):
        assert sorted(fixed.take(3).to_list() + fixed.skip(3).to_list()) == list(range(10))
