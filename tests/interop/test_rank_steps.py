# SPDX-License-Identifier: Apache-2.0
"""`RankSteps`, without any framework: positions, and jumping to them; tests/interop/torch has the laws."""

import json
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, StateError
from distinput.interop.rank_steps import RankPosition, RankSteps

Dataset = di.data.Dataset


def steps(dataset: Any, rank: int = 0, ranks: int = 1) -> RankSteps:
    return RankSteps(dataset, rank, ranks, "test")


def test_a_rank_has_its_rows_of_every_batch() -> None:
    found = [
        [step.tolist() for step in steps(Dataset.range(7).batch(3), rank, 2).begin(RankPosition(0))] for rank in (0, 1)
    ]
    assert found == [[[0, 1], [3, 4], [6]], [[2], [5], []]]


def test_a_worker_has_every_nth_step_from_a_position_on() -> None:
    whole = steps(Dataset.range(10).batch(1))
    found = [[step.tolist() for step in whole.begin(RankPosition(0, 4), worker=k, workers=3)] for k in range(3)]
    assert found == [[[4], [7]], [[5], [8]], [[6], [9]]]


@pytest.mark.parametrize("step", [3, 5, 9])
def test_a_position_may_be_ahead_of_its_state(step: int) -> None:
    """The steps between are read, or jumped over where rows can be reached by position."""
    for dataset in (Dataset.range(10).batch(2), Dataset.range(10).filter(lambda x: x >= 0).batch(2)):
        whole = steps(dataset)
        state = whole.begin(RankPosition(2)).position().state
        later = whole.begin(RankPosition(2, step, at=0, state=state))
        assert [x.tolist() for x in later] == [x.tolist() for x in dataset][step:]


def test_functions_are_not_called_for_the_steps_of_other_workers() -> None:
    seen = []

    def noted(x: Any) -> Any:
        seen.append(int(x))
        return x

    dataset = Dataset.range(8).map(noted).batch(2)
    _ = dataset.element_spec
    seen.clear()
    assert [x.tolist() for x in steps(dataset, 1, 2).begin(RankPosition(0), worker=1, workers=2)] == [[3], [7]]
    assert seen == [3, 7]
    assert steps(dataset, 1, 2).divides
    assert not steps(dataset.map(lambda x: x), 1, 2).divides


def test_a_position_is_small_json_with_a_checksum() -> None:
    whole = steps(Dataset.range(100).shuffle(100, seed=1).batch(3))
    iterator = whole.begin(RankPosition(1))
    next(iterator)
    state = iterator.position().to_json()
    assert RankPosition.of(json.loads(json.dumps(state)), "test") == iterator.position()
    assert len(json.dumps(state)) < 800
    with pytest.raises(StateError, match="not as it was saved"):
        RankPosition.of({**state, "step": 2}, "test")


@pytest.mark.parametrize(
    "position, says",
    [(RankPosition(0, 1, at=2), "damaged"), (RankPosition(0, stride=0), "damaged"), (RankPosition(-1), "damaged")],
)
def test_a_position_that_cannot_be_is_refused(position: RankPosition, says: str) -> None:
    with pytest.raises(StateError, match=says):
        RankPosition.of(position.to_json(), "test")


def test_a_position_of_two_passes_is_refused() -> None:
    whole = steps(Dataset.range(9).batch(3))
    state = whole.begin(RankPosition(1)).position().state
    with pytest.raises(StateError, match="belongs to two passes, 2 and 1"):
        whole.begin(RankPosition(2, state=state))


def test_seeds_that_were_drawn_are_restored() -> None:
    def make() -> RankSteps:
        return steps(Dataset.range(20).shuffle(20).batch(4))

    iterator = make().begin(RankPosition(0))
    next(iterator)
    position = iterator.position()
    rest = [x.tolist() for x in iterator]
    assert [x.tolist() for x in make().begin(position)] == rest
    workers = [make().begin(position, worker=k, workers=2) for k in (0, 1)]
    assert [next(workers[i % 2]).tolist() for i in range(len(rest))] == rest
    after = [worker.position() for worker in workers]
    assert [position.step for position in after] == [5, 6]


def test_one_rank_may_have_elements_of_any_kind() -> None:
    assert [int(x) for x in steps(Dataset.range(3)).begin(RankPosition(0))] == [0, 1, 2]
    with pytest.raises(InvalidArgumentError, match="no batch axis"):
        steps(Dataset.range(3), 0, 2)
