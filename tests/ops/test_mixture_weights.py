# SPDX-License-Identifier: Apache-2.0
"""Weights that are set while a mixture runs: as weights by step, through restarts, on other workers, and in a ledger."""

import copy
import json
import pickle
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.lineage.history import beginning
from distinput.train import ledger as ledgers
from tests.depth import cases
from tests.distribute.workers import on_workers

D: Any = di.data.Dataset
BALANCED = di.distribute.InputOptions(balanced_split=True)


def sources() -> list[Any]:
    return [D.range(n * 10_000, n * 10_000 + 300).filter(lambda _: True) for n in range(3)]


def decided(schedule: dict[int, Any]) -> di.data.MixtureWeights:
    """Weights that were all set before the first element was drawn."""
    made = di.data.MixtureWeights(schedule[0])
    for step, shares in schedule.items():
        made.set(shares, step)
    return made


def mixture(weights: Any, ahead: bool = False, on_end: str = "repeat") -> Any:
    ds = D.sample_from_datasets(sources(), weights, balanced=True, on_end=on_end)
    return ds.map(lambda x: x + 1, num_parallel_calls=2).prefetch(3) if ahead else ds.map(lambda x: x + 1)


DECISION = st.tuples(st.integers(0, 60), st.sampled_from([(1, 0, 0), (0.2, 0.3, 0.5), (0, 1, 1), (5, 1, 1)]))


@settings(max_examples=cases(20, 300), deadline=None)
@given(st.lists(DECISION, max_size=4), st.integers(0, 100), st.booleans(), st.data())
def test_when_weights_are_set_makes_no_difference_through_restarts(
    decisions: Any, stop: int, ahead: bool, data: Any
) -> None:
    weights = di.data.MixtureWeights([1, 1, 2])
    iterator = iter(mixture(weights, ahead))
    given_out: list[Any] = []
    schedule: dict[int, Any] = {0: [1, 1, 2]}
    for wait, shares in decisions:
        given_out += islice(iterator, wait)
        schedule[weights.set(shares)] = list(shares)
        if data.draw(st.booleans()):  # a job goes on elsewhere, with a state of after the decision
            state = json.loads(json.dumps(iterator.state()))
            weights = di.data.MixtureWeights([1, 1, 2])
            iterator = mixture(weights, ahead).restore(state)
    given_out += islice(iterator, stop)
    assert given_out == mixture(decided(schedule)).take(len(given_out)).to_list()
    state = json.loads(json.dumps(iterator.state()))
    assert mixture(di.data.MixtureWeights([1, 1, 2])).restore(state).state() == state or ahead
    rest = mixture(di.data.MixtureWeights([1, 1, 2]), ahead).restore(state)
    assert list(islice(rest, 200)) == mixture(decided(schedule)).skip(len(given_out)).take(200).to_list()


@pytest.mark.parametrize("before, after", [(1, 2), (2, 1), (2, 3)])
def test_workers_agree_and_any_number_of_them_goes_on(before: int, after: int) -> None:
    def dataset_of(strategy: Any, weights: Any) -> Any:
        return strategy.experimental_distribute_dataset(mixture(weights).take(480).batch(12), BALANCED)

    def begin(strategy: Any, worker: int) -> Any:
        weights = di.data.MixtureWeights([1, 1, 2])
        with iter(dataset_of(strategy, weights)) as iterator:
            steps = [next(iterator) for _ in range(2)]
            weights.set([0, 0, 1], step=240)
            steps.append(next(iterator))
            return [rows(strategy, step) for step in steps], json.loads(json.dumps(iterator.state()))

    def go_on(strategy: Any, worker: int) -> Any:
        iterator = dataset_of(strategy, di.data.MixtureWeights([1, 1, 2])).restore(state)
        return [rows(strategy, step) for step in iterator]

    def rows(strategy: Any, step: Any) -> list[int]:
        return [int(x) for part in strategy.experimental_local_results(step) for x in part]

    first = on_workers([1] * before, begin)
    state = first[0][1]
    second = on_workers([1] * after, go_on)
    seen: list[Any] = [sum(parts, []) for parts in zip(*[steps for steps, _ in first], strict=True)]  # noqa: RUF017
    seen += [sum(parts, []) for parts in zip(*second, strict=True)]  # noqa: RUF017
    whole = mixture(decided({0: [1, 1, 2], 240: [0, 0, 1]})).take(480).batch(12)
    assert seen == [batch.tolist() for batch in whole]


def test_shares_hold_across_decisions() -> None:
    schedule = {0: [0.9, 0.1, 0], 100: [0.2, 0.3, 0.5], 101: [0, 0, 1], 150: [0.05, 0.9, 0.05]}
    turns = [int(x) // 10_000 for x in mixture(decided(schedule)).take(500)]
    each = np.array([schedule[max(first for first in schedule if first <= step)] for step in range(500)])
    assert np.abs(np.cumsum(np.eye(3)[turns], axis=0) - np.cumsum(each, axis=0)).max() < 1.75


def test_several_workers_say_the_step() -> None:
    def body(strategy: Any, worker: int) -> Any:
        weights = di.data.MixtureWeights([1, 1, 2])
        dataset = strategy.experimental_distribute_dataset(mixture(weights).take(48).batch(12), BALANCED)
        next(iter(dataset))
        with pytest.raises(di.errors.FailedPreconditionError, match=r"several workers run the mixture.* give the step"):
            weights.set([1, 0, 0])

    assert on_workers([1, 1], body) == [None, None]


def test_a_ledger_replays_steps_between_decisions(tmp_path: Path) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def dataset_of() -> tuple[Any, Any]:
        weights = di.data.MixtureWeights([1, 1, 2])
        return weights, strategy.experimental_distribute_dataset(mixture(weights).take(200).batch(10))

    seen: list[Any] = []
    state: Any = None
    for _ in range(2):  # jobs; the second goes on where the first one stopped
        weights, dataset = dataset_of()
        with di.train.Ledger(tmp_path) as ledger:
            iterator = dataset.restore(state) if seen else iter(dataset)
            for step in ledger.follow(iterator):
                seen.append([part.tolist() for part in step.values])
                if len(seen) % 4 == 1:
                    weights.set([len(seen), 1, 1])
                if len(seen) == 11:
                    break
            state = iterator.state()
            iterator.close()
    ledger, (_, notebook) = di.train.Ledger(tmp_path), dataset_of()
    assert len(seen) == len(ledger) == 20
    for number, step in enumerate(seen):
        assert [part.tolist() for part in ledger.replay(notebook, number).values] == step
    with pytest.raises(di.errors.UnimplementedError, match="which records its elements come from depends"):
        notebook.locate(3)


def test_later_passes_go_on_with_the_last_decision() -> None:
    weights = di.data.MixtureWeights([1, 0, 0])
    ds = mixture(weights, on_end="stop").take(50)
    first = iter(ds)
    next(first)
    assert weights.set([0, 0, 1], step=40) == 40
    assert [x // 10_000 for x in first] == [0] * 39 + [2] * 10
    assert {x // 10_000 for x in ds} == {2}


def test_what_was_drawn_cannot_be_changed() -> None:
    weights = di.data.MixtureWeights([1, 1, 2])
    iterator = iter(mixture(weights))
    assert weights.set([1, 1, 1]) == 0
    for _ in range(5):
        next(iterator)
    drawn = weights.set([0, 1, 1])
    with pytest.raises(di.errors.InvalidArgumentError, match=rf"before step {drawn} of this pass were drawn .* got 2"):
        weights.set([1, 1, 1], step=2)
    for step in range(drawn, drawn + 4094):
        weights.set([1, 1, 1], step=step)
    with pytest.raises(di.errors.InvalidArgumentError, match=r"there can be 4,095 decisions, .*; decide less often"):
        weights.set([1, 1, 1], step=99_999)


def test_arguments_and_places_are_checked() -> None:
    weights = di.data.MixtureWeights([1, 1, 2])
    ds = mixture(weights)
    for wrong, message in (
        ([1, 2], "each of the 3 datasets, got 2"),
        ([0, 0, 0], "greater than zero"),
        ([-1, 1, 1], "negative"),
    ):
        with pytest.raises(di.errors.InvalidArgumentError, match=message):
            weights.set(wrong)
    with pytest.raises(di.errors.InvalidArgumentError, match=r"step must be at most [0-9,]+, got 1,180,591,620"):
        weights.set([1, 1, 1], step=2**70)
    with pytest.raises(TypeError, match="step must be an integer"):
        weights.set([1, 1, 1], step=0.5)  # type: ignore[arg-type]
    with pytest.raises(di.errors.InvalidArgumentError, match="of another mixture, whose steps they count"):
        mixture(weights)
    with pytest.raises(di.errors.InvalidArgumentError, match="each of the 3 datasets, got 2"):
        mixture(di.data.MixtureWeights([1, 1]))
    with pytest.raises(TypeError, match="weights by step go with balanced=True"):
        D.sample_from_datasets([D.range(3)], di.data.MixtureWeights([1]))
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="belong to one process, and cannot be sent to another"):
            copied(weights)
    weights._process += 1
    with pytest.raises(di.errors.FailedPreconditionError, match="a copy in another process, where `set` is not seen"):
        next(iter(ds))


def test_states_of_other_decisions_are_refused() -> None:
    from distinput.data.seal import opened, sealed

    def make() -> Any:
        return mixture(di.data.MixtureWeights([1, 1, 2]))

    state = iter(make()).state()
    with pytest.raises(di.errors.StateError, match="another pipeline"):
        mixture([1, 1, 2]).restore(state)
    plan = state["plan"]
    place = {name: value for name, value in state.items() if name not in ("version", "check", "plan")}
    decisions: list[Any] = [[[0, 1]], [[0, 1, [1, 2]]], [[0, -1, [1, 1, 1]]], [["a", 1, [1, 1, 1]]], 5]
    for wrong in ({}, [], [5], [{"set": []}], *[[{"drawn": [0, 0], "set": each}] for each in decisions]):
        with pytest.raises(di.errors.StateError, match="the state is damaged: "):
            make().restore(sealed({**place, "decided": wrong}, plan))
    assert opened(sealed(place, plan), "restore", {"plan", "epoch", "at", "skip"})
    assert np.int64(next(make().restore(sealed(place, plan)))) >= 0


def test_debts_of_more_than_a_turn_are_paid() -> None:
    def turns(count: int, schedule: dict[int, Any], stop: int) -> list[int]:
        ds = D.sample_from_datasets(
            [D.from_tensors(n).repeat() for n in range(count)], decided({0: [1] * count, **schedule}), balanced=True
        )
        return [int(turn) for turn in ds.take(stop)]

    assert turns(4, {1: [0, 1, 1, 1], 2: [0, 0, 1, 1], 3: [0, 0, 0, 1]}, 6) == [0, 1, 2, 3, 3, 3]
    counts = np.bincount(turns(14, {7: [0] * 7 + [1] * 7}, 7 + 700), minlength=14)
    assert counts[:7].tolist() == [1] * 7
    assert np.abs(counts[7:] - 100).max() <= 1
    again = [0] * 8 + [2] * 8  # the same shares once more, in the middle
    assert turns(16, {8: [0] * 8 + [1] * 8, 13: again}, 24) == [*range(16), *range(8, 16)]


@pytest.mark.parametrize("late", [False, True])
def test_a_ledger_replays_decisions_behind_a_cache(late: bool, tmp_path: Path) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def dataset_of() -> tuple[Any, Any]:
        weights = di.data.MixtureWeights([1, 0, 0])
        return weights, strategy.experimental_distribute_dataset(mixture(weights).take(40).cache().batch(4))

    weights, dataset = dataset_of()
    seen = []
    with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
        if not late:
            weights.set([1, 1, 0], step=20)
        for step in ledger.follow(iterator):
            seen.append([part.tolist() for part in step.values])
            if late and len(seen) == 1:
                weights.set([1, 1, 0], step=30)
    ledger, (_, notebook) = di.train.Ledger(tmp_path), dataset_of()
    assert any(x > 10_000 for part in seen[8] for x in part)
    assert [[part.tolist() for part in ledger.replay(notebook, number).values] for number in range(10)] == seen
    with pytest.raises(di.errors.UnimplementedError):
        ledger.locate(notebook, 8)


def test_a_ledger_without_decisions_replays_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions wrote none behind a cache."""
    monkeypatch.setattr(ledgers, "beginning", lambda iterator: {**beginning(iterator), "keeps": False})
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    ds = mixture(di.data.MixtureWeights([1, 0, 0])).take(8).cache().batch(4)
    dataset = strategy.experimental_distribute_dataset(ds)
    with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
        list(ledger.follow(iterator))
    with pytest.raises(di.errors.UnimplementedError, match="holds no decisions about the weights"):
        di.train.Ledger(tmp_path).replay(dataset, 1)
