# SPDX-License-Identifier: Apache-2.0
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

import distinput as di
from distinput.data.iterator import Optional
from distinput.distribute.input import distributed_dataset
from distinput.distribute.input.distributed_dataset import opened_state, sealed_state
from distinput.errors import StateError
from tests.distribute.workers import on_workers, rows_of, with_policy
from tests.lineage.carried import corpus, ids

LAYOUT = {"replicas": 4, "workers": 2, "cut": "per_worker"}


def saved(**changes: Any) -> Any:
    state = sealed_state(LAYOUT, 3, False, [[2, 5]], [{"row": 7}])
    return {**json.loads(json.dumps(state)), **changes}


def test_what_is_saved_is_opened() -> None:
    found = opened_state(saved(), LAYOUT, 1)
    assert {name: found[name] for name in ("step", "ended", "seen", "inputs")} == {
        "step": 3, "ended": False, "seen": [[2, 5]], "inputs": [{"row": 7}],
    }  # fmt: skip


def test_another_division_says_what_differs() -> None:
    with pytest.raises(
        StateError, match="taken with workers=2, this dataset has workers=3; give restore a list of the states"
    ):
        opened_state(saved(), {**LAYOUT, "workers": 3}, 1)


def test_a_changed_state_is_refused() -> None:
    with pytest.raises(StateError, match=r"DistributedDataset\.restore"):
        opened_state(saved(step=4), LAYOUT, 1)


@pytest.mark.parametrize("state", [{"version": 3, "inputs": []}, {"version": 3, "kind": "dataset"}])
def test_the_state_of_a_dataset_is_none_of_an_iterator(state: Any) -> None:
    with pytest.raises(StateError, match=r"not a state of a distributed iterator; take it with iterator\.state\(\)"):
        opened_state(state, LAYOUT, 1)


def test_a_state_of_another_number_of_pipelines_is_damaged() -> None:
    with pytest.raises(StateError, match="the state is damaged"):
        opened_state(saved(), LAYOUT, 2)


def test_a_lone_replica_of_an_older_release_was_at_a_place_in_the_global_batches() -> None:
    old = {"replicas": 1, "workers": 1, "cut": "per_worker"}
    state = json.loads(json.dumps(sealed_state(old, 3, False, None, [{"row": 7}])))
    assert opened_state(state, {"cut": "batches"}, 1)["step"] == 3
    cure = r"give restore a list of the states of all workers of that job"
    with pytest.raises(StateError, match=rf"taken with replicas=1, this dataset has replicas=4; .*{cure}"):
        opened_state(state, LAYOUT, 1)
    with pytest.raises(StateError, match=r"taken with cut='per_worker', this dataset has cut='batches'"):
        opened_state(saved(), {"cut": "batches"}, 1)


@pytest.mark.parametrize("sizes", [(12,), (7, 3, 12)])
@pytest.mark.parametrize("balanced", [False, True])
def test_a_lone_replica_with_any_policy_goes_on_where_batches_are_divided(
    sizes: tuple[int, ...], balanced: bool
) -> None:
    """Policy AUTO divides one file by batches; with `balanced_split` all policies do."""
    found = corpus("parquet", sizes)
    options = di.distribute.InputOptions(balanced_split=balanced)

    def dataset_of(strategy: Any) -> Any:
        return strategy.experimental_distribute_dataset(found.dataset().shuffle(5, seed=1).batch(4), options)

    def begin(strategy: Any, worker: int) -> Any:
        with iter(dataset_of(strategy)) as iterator:
            return ids(strategy.experimental_local_results(next(iterator))), json.loads(json.dumps(iterator.state()))

    def go_on(strategy: Any, worker: int) -> Any:
        rest = dataset_of(strategy).restore(state)
        return [ids(strategy.experimental_local_results(step)) for step in rest]

    ((first, state),) = on_workers([1], begin)
    ((alone),) = on_workers([1], go_on)
    two = on_workers([1, 1], go_on)
    if sizes == (12,) or balanced:
        assert [a + b for a, b in zip(*two, strict=True)] == alone
    else:  # two workers would read files of their own, and go on with the global batches first
        assert [sorted(a + b) for a, b in zip(*two, strict=True)] == [sorted(step) for step in alone]
    assert sorted(first + [x for step in alone for x in step]) == sorted(ids(found.dataset()))


def test_a_state_of_an_iterator_that_was_closed_is_where_it_was() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(12).batch(4))
    with iter(dataset) as iterator:
        next(iterator)
        inside = iterator.state()
    assert iterator.state() == inside
    assert list(iterator) == []
    assert len(list(dataset.restore(inside))) == 2
    iterator.load_state_dict(inside)
    assert len(list(iterator)) == 2


def test_the_epoch_goes_on_on_other_replicas() -> None:
    def distributed(replicas: int) -> Any:
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.OFF
        strategy = di.distribute.MirroredStrategy([f"CPU:{place}" for place in range(replicas)])
        shuffled = di.data.Dataset.range(24).shuffle(24, seed=1).batch(6).with_options(options)
        return strategy.experimental_distribute_dataset(shuffled)

    two = distributed(2)
    list(two)
    iterator = iter(two)
    next(iterator)
    assert [distributed(replicas).restore(iterator.state()).epoch for replicas in (2, 3)] == [1, 1]


def test_rows_are_located_where_a_loaded_state_goes_on() -> None:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.OFF
    dataset = di.data.Dataset.range(16).batch(4).with_options(options)

    def body(strategy: Any, worker: int) -> Any:
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        next(iterator)
        return iterator.state()

    states = on_workers([1, 1], body)
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    next(iterator)
    assert [place.record for place in iterator.locate()] == [0, 1, 2, 3]
    iterator.load_state_dict(states)
    next(iterator)
    with pytest.raises(di.errors.UnimplementedError, match="the inputs of an earlier job"):
        iterator.locate()


@pytest.mark.parametrize("policy", ["OFF", "DATA"])
@pytest.mark.parametrize("taken", [0, 1, 3])
@pytest.mark.parametrize("where", ["step", "Optional"])
def test_a_step_that_was_not_handed_out_is_behind_the_state_and_comes_next(
    policy: str, taken: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that agree on each step draw elements ahead. An interrupt comes while a step, or the Optional of it, is made."""
    interrupted = threading.local()

    def interrupting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if vars(interrupted).pop("next", False):
                raise KeyboardInterrupt
            return function(*args, **kwargs)

        return call

    if where == "Optional":
        monkeypatch.setattr(distributed_dataset, "Optional", interrupting(Optional))

    def body(strategy: Any, worker: int) -> tuple[Any, Any]:
        elements = di.data.Dataset.range(24).filter(lambda x: x >= 0).batch(4)
        made = strategy.experimental_distribute_dataset(
            with_policy(elements, di.data.experimental.AutoShardPolicy[policy])
        )
        iterator: Any = iter(made)
        for _ in range(taken):
            next(iterator)
        if where == "step":
            iterator._steps._finish = interrupting(iterator._steps._finish)
        interrupted.next = True
        with pytest.raises(KeyboardInterrupt):
            iterator.get_next_as_optional()
        state = iterator.state()
        return rows_of(strategy, made.restore(state)), rows_of(strategy, iterator)

    for restored, rest in on_workers([1, 1], body):
        assert restored == rest
        assert len(rest) == (12 if policy == "OFF" else 6) - taken
