# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.columns.state import is_count, is_mark, is_position
from distinput.errors import StateError
from distinput.plan.fingerprint import misfit, taken_up
from tests.lineage.carried import corpus

Dataset: Any = di.data.Dataset
FIRST = Dataset.range(3)
FILTERED = Dataset.range(9).filter(lambda x: x > 1)


@pytest.mark.parametrize(
    "value, counts", [(0, True), (1 << 62, True), (-1, False), (True, False), (1.0, False), (None, False)]
)
def test_a_count_is_a_whole_number_that_is_not_negative(value: Any, counts: bool) -> None:
    assert is_count(value) == counts


def test_a_mark_has_a_state_and_rows_to_pass_over() -> None:
    assert is_mark({"input": {"row": 1}, "skip": 2, "position": None})
    assert not is_mark({"input": None, "skip": 2})
    assert not is_mark({"input": {}})
    assert not is_mark([])


def test_a_position_has_a_row() -> None:
    assert is_position(None)
    assert is_position({"row": 3, "byte": 12})
    assert not is_position({"byte": 12})
    assert not is_position({"row": 3, "byte": -12})
    assert not is_position(3)


@pytest.mark.parametrize(
    "dataset, state, said",
    [
        (FIRST, {"row": 3}, None),
        (FIRST, [], "range: a state must be a JSON object, got []"),
        (FIRST, {}, "range: the state lacks 'row'"),
        (FIRST, {"row": True}, "range: 'row' must be a whole number from 0 on, got True"),
        (FIRST.take(-1), {"input": {"row": 0}, "left": -1}, None),
        (FIRST.take(2), {"input": {"row": 0}, "left": -2}, "take: 'left' must be a whole number from -1 on, got -2"),
        (FIRST.prefetch(1), {"row": 1}, None),
        (FIRST.concatenate(FILTERED), {"part": 1, "epoch": 0, "input": {"input": {"row": 1}, "skip": 0}}, None),
        (FIRST.concatenate(FILTERED), {"part": 1, "epoch": 0, "input": {"row": 1}}, "filter: the state lacks 'input'"),
        (
            FIRST.concatenate(FILTERED),
            {"part": 2, "epoch": 0, "input": {"row": 1}},
            "concatenate: 'part' must be 0 or 1",
        ),
        (
            FIRST.repeat(2),
            {"epoch": 0, "pass": 0, "input": {"row": 0}, "any": 0},
            "repeat: 'any' must be true or false, got 0",
        ),
        (FIRST.shuffle(2, seed=1), {"seed": -(10**30), "epoch": 10**30, "row": 1}, None),
        (
            FIRST.shuffle(2, seed=1),
            {"seed": None, "epoch": 0, "row": 1},
            "shuffle: 'seed' must be a whole number, got None",
        ),
        (FIRST.shuffle(2, seed=1 << 2000), {"seed": 1 << 2000, "epoch": 0, "row": 1}, None),
        (FILTERED.take(1 << 63), {"input": {"input": {"row": 0}, "skip": 0}, "left": 1 << 63}, None),
        (
            FILTERED.take(1 << 63),
            {"input": {"input": {"row": 0}, "skip": 0}, "left": 1 << 64},
            "take: 'left' must be a whole number from -1 on, got 18446744073709551616",
        ),
        (FIRST.shuffle(2, seed=1), {"seed": 1, "epoch": 0, "row": 4}, "shuffle: 'row' is behind the last element"),
        (FILTERED.cache(), {"row": 0, "epoch": 0, "input": None}, None),
        (FILTERED.cache(), {"row": 1, "epoch": 0, "input": {"skip": 0}}, "filter: the state lacks 'input'"),
    ],
)
def test_the_step_that_a_state_does_not_fit_is_named(dataset: Any, state: Any, said: str | None) -> None:
    assert misfit(dataset.node, state) == said


def test_numbers_too_long_to_print_are_told() -> None:
    said = misfit(FIRST.node, {"row": 10**5000})
    assert said == "range: 'row' must be a whole number from 0 on, got a very long number"


def test_what_a_function_made_otherwise_is_told() -> None:
    node = FIRST.take(2).node
    assert taken_up("flat_map", node, 0, None) == node.start(0)
    assert taken_up("flat_map", node, 0, {"input": {"row": 1}, "left": 1})["left"] == 1
    with pytest.raises(
        StateError, match=r"flat_map: the function made a dataset of other steps .*\(take: the state lacks 'left'\)"
    ):
        taken_up("flat_map", node, 0, {"input": {"row": 1}, "skip": 1})


def test_every_state_of_a_pass_fits() -> None:
    dataset = Dataset.from_tensor_slices(np.arange(20)).shuffle(4).batch(3).unbatch().enumerate().repeat(2)
    running = dataset._runs().node
    with iter(dataset) as iterator:
        for _ in iterator:
            assert misfit(running, iterator.place()["at"]) is None


@pytest.mark.parametrize("skipped", [0, 2, 7, 9, 30])
@pytest.mark.parametrize("below", ["parquet", "npz"])
def test_every_place_that_is_computed_fits(below: str, skipped: int) -> None:
    files = corpus(below, (7, 3, 12)).dataset()
    for dataset in (
        files.skip(skipped),
        files.batch(4).unbatch().skip(skipped),
        files.repeat(2).skip(skipped),
        files.concatenate(files).skip(skipped).batch(3),
        Dataset.zip(files.skip(skipped), files).skip(skipped),
        files.skip(skipped).cache().shuffle(4, seed=1).skip(skipped),
        files.shard(2, 1).skip(skipped).prefetch(1).enumerate().skip(skipped),
    ):
        running = dataset._runs().node
        for row in range(max(0, running.cardinality) + 1):
            place = running.start_at(row, 1)
            assert place is None or misfit(running, place) is None


def test_the_last_pass_of_all_can_be_restored() -> None:
    dataset = Dataset.range(5).shuffle(5, seed=1)
    iterator = dataset.iter_pass((1 << 63) - 1)
    first, state = next(iterator), iterator.state()
    assert sorted([int(first), *map(int, dataset.restore(state))]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["group_by_window", "zip", "choose", "interleave", "rebatch", "shuffle"])
def test_states_below_ignore_errors_are_those_of_its_input(kind: str) -> None:
    below = {
        "group_by_window": FILTERED.group_by_window(lambda x: x % 2, lambda _, group: group.batch(2), 2),
        "zip": Dataset.zip(FILTERED, FILTERED),
        "choose": Dataset.choose_from_datasets([FILTERED, FIRST], Dataset.range(5).map(lambda x: x % 2)),
        "interleave": FILTERED.interleave(lambda x: Dataset.range(x), cycle_length=2),
        "rebatch": FILTERED.batch(3).rebatch([1, 2]),
        "shuffle": FILTERED.shuffle(3, seed=1),
    }[kind]
    dataset = below.ignore_errors().prefetch(1)
    elements, states = [], []
    with iter(dataset) as iterator:
        states.append(iterator.state())
        for element in iterator:
            elements.append(repr(element))
            states.append(iterator.state())
    for place, state in enumerate(states):
        assert [repr(element) for element in dataset.restore(state)] == elements[place:]
