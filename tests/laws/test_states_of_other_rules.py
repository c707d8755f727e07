# SPDX-License-Identifier: Apache-2.0
"""A state is restored exactly, or refused, where other rewrite rules fire than when it was saved."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import StateError
from distinput.plan.options import AutoShardPolicy
from distinput.rewrite import rules
from distinput.testing.elements import exact
from distinput.testing.pipelines import built, pipelines
from tests.depth import cases, sampled
from tests.distribute.workers import on_workers
from tests.states.corpus import PIPELINES, put_data, shown

Dataset: Any = di.data.Dataset
NAMES = [rule.__name__ for rule in (*rules.FIRST, *rules.RULES)]
MOST = 30
PLACES = sampled([1, 7], [0, 4])
"""Elements behind which states of the corpus are tried."""


@contextmanager
def with_rules(names: frozenset[str]) -> Iterator[None]:
    """Only these rules are there, as in another release."""
    usual = rules.FIRST, rules.RULES
    try:
        rules.FIRST, rules.RULES = [tuple([rule for rule in table if rule.__name__ in names]) for table in usual]  # type: ignore[misc]
        yield
    finally:
        rules.FIRST, rules.RULES = usual  # type: ignore[misc]


subsets = st.frozensets(st.sampled_from(NAMES)) | st.sampled_from(
    [frozenset(NAMES), frozenset(), *[frozenset(NAMES) - {name} for name in NAMES]]
)


def check(make: Any, there: frozenset[str], here: frozenset[str], places: list[int]) -> bool:
    """Whether states that were saved under the rules `there` are restored under those `here`; the rest must be exact then."""
    with with_rules(there):
        dataset = make()
        states, elements = [], []
        with iter(dataset) as iterator:
            states.append(iterator.state())
            for element in islice(iterator, MOST):
                elements.append(exact(element))
                states.append(iterator.state())
        fired = set(states[0]["plan"]["rules"])
    restored, refusals = 0, []
    for place in {place % len(states) for place in places}:
        with with_rules(here):
            fresh = make()
            try:
                found = fresh.restore(json.loads(json.dumps(states[place])))
            except StateError as error:
                refusals.append(str(error))
                continue
            restored += 1
            with found:
                again = found.state()
                rest = [exact(element) for element in islice(found, len(elements) - place)]
            assert rest == elements[place:]
            with fresh.restore(json.loads(json.dumps(again))) as found:
                assert [exact(element) for element in islice(found, len(rest))] == rest
    assert all("since other rules fired" in refusal for refusal in refusals)
    assert not (refusals and fired <= here), "the rules that had fired are there"
    return restored > 0


@given(pipelines(), subsets, subsets, st.lists(st.integers(0, MOST), min_size=1, max_size=3))
@settings(max_examples=cases(25, 3000))
def test_a_random_pipeline_goes_on_exactly_or_not_at_all(
    pipeline: Any, there: frozenset[str], here: frozenset[str], places: list[int]
) -> None:
    check(lambda: built(pipeline.recipe), there, here, places)


@pytest.mark.parametrize("name", [name for name in PIPELINES if not name.startswith("assert")])
def test_states_of_every_rule_alone_go_on_where_all_rules_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    every = frozenset(NAMES)
    with with_rules(every):
        fired = rules.rewrite(PIPELINES[name]().node)[1]
    for rule in dict.fromkeys(fired):
        assert check(PIPELINES[name], every - {rule}, every, PLACES)
        check(PIPELINES[name], every, every - {rule}, PLACES)
    assert check(PIPELINES[name], frozenset(), every, PLACES)
    check(PIPELINES[name], every, frozenset(), PLACES)


def test_a_state_says_which_rules_fired() -> None:
    def made() -> Any:
        return Dataset.range(9).map(lambda x: x + 1).map(lambda x: x * 2)

    state = iter(made()).state()
    assert state["plan"]["rules"] == ["map_of_map"]
    without = frozenset(NAMES) - {"map_of_map"}
    with with_rules(without):
        with pytest.raises(
            StateError,
            match="runs in other steps than when the state was saved, since other rules fired: map_of_map when the state was "
            "saved, no rule here",
        ):
            made().restore(state)
        iterator = iter(made())
        next(iterator)
        state = iterator.state()
    assert [int(x) for x in made().restore(state)] == [4, 6, 8, 10, 12, 14, 16, 18]


def test_rules_that_leave_states_as_they_are_need_not_be_there() -> None:
    def made() -> Any:
        return Dataset.range(20).prefetch(2).prefetch(3).shuffle(5, seed=1).batch(4).prefetch(1)

    iterator = iter(made())
    rest = [next(iterator).tolist(), iterator.state(), *[batch.tolist() for batch in iterator]]
    assert {"prefetch_of_prefetch", "read_for_batches"} & set(rest[1]["plan"]["rules"])
    with with_rules(frozenset()):
        assert [batch.tolist() for batch in made().restore(rest[1])] == rest[2:]


def test_a_distributed_iterator_goes_on_exactly_or_not_at_all() -> None:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA

    def steps(rows: Any) -> list[Any]:
        return [shown(step) for step in rows]

    def made(strategy: Any) -> Any:
        dataset = Dataset.range(40).shuffle(9, seed=2).skip(1).skip(2).take(30).take(25).batch(6)
        return strategy.experimental_distribute_dataset(dataset.with_options(options))

    def saved(strategy: Any, _: int) -> Any:
        iterator = iter(made(strategy))
        next(iterator)
        return json.dumps(iterator.state()), steps(iterator)

    def restored(strategy: Any, worker: int) -> Any:
        return steps(made(strategy).restore(json.loads(states[worker][0])))

    for there, here in ((frozenset(), frozenset(NAMES)), (frozenset(NAMES), frozenset())):
        with with_rules(there):
            states = on_workers([1, 1], saved)
        with with_rules(here):
            found = on_workers([1, 1], restored)
        if here:
            assert found == [rest for _, rest in states]
        else:
            assert all(isinstance(result, StateError) and "other rules fired" in str(result) for result in found)
