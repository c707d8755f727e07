# SPDX-License-Identifier: Apache-2.0
"""`sample_from_datasets(balanced=True)`: shares at every prefix, ends, and errors; the laws are in tests/laws."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.ops.balanced_sample import whole
from tests.depth import cases

D: Any = di.data.Dataset


def sources(k: int) -> list[Any]:
    return [D.from_tensors(np.int64(i)).repeat() for i in range(k)]


def sample(datasets: list[Any], weights: Any = None, **how: Any) -> Any:
    return D.sample_from_datasets(datasets, weights, balanced=True, **how)


def worst(turns: list[int], targets: Any) -> float:
    """The largest difference between a count and its target, at any step."""
    counts = np.cumsum(np.eye(targets.shape[1])[turns], axis=0)
    return float(np.abs(counts - targets).max())


@pytest.mark.parametrize("k", [2, 3, 5, 17])
def test_every_prefix_has_its_shares(k: int) -> None:
    random = np.random.default_rng(k)
    for _ in range(cases(3, 50)):
        weights = random.dirichlet(np.full(k, random.choice([0.1, 0.5, 2.0])))
        turns = sample(sources(k), weights).take(3000).to_list()
        targets = np.arange(1, 3001)[:, None] * weights
        assert worst(turns, targets) <= 1 - 1 / (2 * k - 2) + 1e-6


def test_every_prefix_has_its_shares_when_weights_change() -> None:
    schedule = {0: [0.9, 0.1, 0], 100: [0.2, 0.3, 0.5], 101: [0, 0, 1], 150: [0.05, 0.9, 0.05]}
    each = np.array([schedule[max(first for first in schedule if first <= step)] for step in range(500)])
    assert worst(sample(sources(3), schedule).take(500).to_list(), np.cumsum(each, axis=0)) <= 0.75 + 1e-6


def test_one_end_stops_it() -> None:
    ds = sample([D.range(3), D.range(10, 20)], [1, 2], on_end="stop")
    assert ds.to_list() == sample([D.range(3), D.range(10, 20)], [1, 2], stop_on_empty_dataset=True).to_list()
    assert ds.to_list() == [10, 0, 11, 12, 1, 13, 14, 2, 15, 16]


def test_the_others_go_on_with_their_shares() -> None:
    first, second = D.range(100, 200), D.range(200, 400)
    ds = sample([D.range(3), first, second], [2, 1, 3])
    elements = ds.to_list()
    assert ds.cardinality() == len(elements) == 303
    rest = elements[elements.index(2) + 1 :]
    assert [e < 200 for e in rest[:40]].count(True) in (9, 10, 11)


def test_ended_ones_begin_again_until_all_have_ended_once() -> None:
    elements = sample([D.range(3), D.range(10, 15)], on_end="repeat").to_list()
    assert [e for e in elements if e < 10] == [0, 1, 2, 0, 1, 2]
    assert [e for e in elements if e >= 10] == [10, 11, 12, 13, 14]
    shuffled = sample([D.range(30).shuffle(30, seed=1), D.range(100, 160)], on_end="repeat").to_list()
    first, second = [e for e in shuffled if e < 100][:30], [e for e in shuffled if e < 100][30:60]
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second


def test_a_dataset_without_elements_is_skipped() -> None:
    assert sample([D.range(0), D.range(3)], on_end="repeat").to_list() == [0, 1, 2]
    assert sample([D.range(0), D.range(0)], on_end="repeat").to_list() == []


def test_a_dataset_that_has_no_weight_any_more_is_not_waited_for() -> None:
    ds = sample([D.range(3), D.range(10, 100)], {0: [1, 1], 4: [1, 0]}, on_end="repeat")
    assert ds.to_list() == [0, 10, 1, 11, 2]


def test_weights_of_zero() -> None:
    assert sample([D.range(3), D.range(10, 15)], [1, 0]).to_list() == [0, 1, 2]
    assert sample([D.range(3), D.range(10, 15)], [0, 0]).to_list() == []
    assert sample([D.range(3), D.range(10, 15)], {0: [1, 0], 2: [0, 1]}).to_list() == [0, 1, 10, 11, 12, 13, 14]


def test_an_element_that_fails_takes_the_turn() -> None:
    ds = sample([D.range(4).map(_fails_at_one), D.range(10, 20)], on_end="stop").ignore_errors()
    assert ds.to_list() == [0, 10, 11, 2, 12, 3, 13]


def _fails_at_one(x: Any) -> Any:
    if x == 1:
        raise ValueError("one")
    return x


def test_the_state_is_small_and_positions_only() -> None:
    with iter(sample([D.range(1000), D.range(1000)], [1, 3])) as it:
        for _ in range(400):
            next(it)
        state = it.state()
    assert len(str(state)) < 600
    rest = sample([D.range(1000), D.range(1000)], [1, 3]).restore(state)
    assert sorted(rest) == sorted([*range(100, 1000), *range(300, 1000)])


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("counts", [5, 0], "'counts' do not fit the weights"),
        ("counts", [2**50, 0], "'counts' do not fit the weights"),
        ("counts", [1], "'counts' must hold a number for each dataset"),
        ("passes", [0, -1], "'passes' must hold a number for each dataset"),
        ("over", [2], "'over' must hold numbers of datasets"),
    ],
)
def test_a_state_that_cannot_be_is_refused(name: str, value: Any, message: str) -> None:
    node = sample([D.range(9), D.range(9)]).node
    assert node.state_misfit(node.start(0)) is None
    assert node.state_misfit({**node.start(0), name: value}) == f"sample_from_datasets: {message}"


def test_shares_are_the_same_on_every_python() -> None:
    weights = [
        0.2,
        0.6,
        1.6,
        0.6,
        0.2,
        1.6,
    ]  # one after the other 4.800000000000001, and 4.8 by the `sum` of Python 3.12
    assert whole(weights)[1] == int(0.6 / 4.800000000000001 * (1 << 40)) == int(0.6 / 4.8 * (1 << 40)) - 1


def test_whole_shares_sum_to_one() -> None:
    assert whole([0, 0]) == whole([1, 1])
    for weights in ([1, 1, 1], [1e-9, 1, 3], [0.1] * 10):
        assert sum(whole(weights)) == 1 << 40


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (
            {"seed": 1},
            InvalidArgumentError,
            "balanced=True draws nothing; leave out seed and rerandomize_each_iteration",
        ),
        ({"on_end": "wait"}, InvalidArgumentError, "on_end must be one of 'stop', 'skip', 'repeat', got 'wait'"),
        (
            {"on_end": "skip", "stop_on_empty_dataset": True},
            InvalidArgumentError,
            "stop_on_empty_dataset=True is on_end='stop', got on_end='skip' too; leave one out",
        ),
        ({"balanced": False, "on_end": "repeat"}, InvalidArgumentError, "on_end='repeat' goes with balanced=True"),
        ({"balanced": False, "weights": {0: [1, 1]}}, TypeError, "weights by step go with balanced=True"),
        ({"weights": {1: [1, 1]}}, InvalidArgumentError, "a dict of weights must have step 0"),
        ({"weights": {0: [1, 1], 1.5: [1, 1]}}, TypeError, "a step must be an integer, got 1.5"),
        (
            {"weights": {0: [1, 1], 3: [0, 0]}},
            InvalidArgumentError,
            "one weight must be greater than zero, got .* for step 3",
        ),
        ({"weights": [1]}, InvalidArgumentError, "there must be one weight for each of the 2 datasets, got 1"),
        ({"weights": D.from_tensors([1.0, 1.0])}, TypeError, "must know the weights in advance, got a dataset of them"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="sample_from_datasets: .*" + message):
        D.sample_from_datasets([D.range(3), D.range(3)], **{"balanced": True, **arguments})


def test_there_must_be_a_dataset() -> None:
    with pytest.raises(InvalidArgumentError, match="`datasets` should not be empty"):
        sample([])


def test_the_next_weights_hold_at_once_where_only_ended_datasets_have_some() -> None:
    first, second, third = D.range(5), D.range(100, 105), D.range(200, 203)
    assert sample([first, second], {0: [1, 0], 8: [0, 1]}).to_list() == [*range(5), *range(100, 105)]
    ds = sample([first, second, third], {0: [1, 0, 0], 8: [1, 0, 0], 9: [0, 1, 0], 12: [0, 0, 1]})
    whole_pass = ds.to_list()
    assert whole_pass == [*range(5), *range(100, 105), *range(200, 203)]
    for taken in range(len(whole_pass) + 1):
        iterator = iter(ds)
        assert [next(iterator) for _ in range(taken)] == whole_pass[:taken]
        assert list(ds.restore(iterator.state())) == whole_pass[taken:]
    assert sample([first, second], {0: [0, 1], 3: [1, 0]}).to_list() == [100, 101, 102, *range(5)]
