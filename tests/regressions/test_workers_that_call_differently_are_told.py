# SPDX-License-Identifier: Apache-2.0
"""Workers, and the replicas of one worker, that make different calls get an error that names both; never a wrong number."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.engines.local import open_groups
from distinput.errors import InvalidArgumentError, Mismatch, PeerLost
from tests.distribute.workers import on_workers

LOSS, ACCURACY = 8.0, 100.0


def both_raise(
    body: Callable[[Any, int], Any], *words: str, kind: type[Exception] = Mismatch, replicas: Sequence[int] = (1, 1)
) -> None:
    for error in on_workers(replicas, body):
        assert type(error) is kind, repr(error)
        for word in words:
            assert word in str(error), str(error)


def value(x: float = 1.0) -> di.distribute.PerReplica:
    return di.distribute.PerReplica([np.float64(x)])


def test_one_reduce_more() -> None:
    def body(strategy: Any, worker: int) -> Any:
        total = strategy.reduce("SUM", value(8.0), axis=None)
        if worker == 1:
            strategy.reduce("SUM", value(800.0), axis=None)
        return total, strategy.reduce("SUM", value(8.0), axis=None)

    both_raise(body, "reduce SUM, axis=None", "rank 0: ", "rank 1: ", "float64[]", "test_workers_that_call_differently")


def test_one_reduce_more_before_the_end_of_the_job() -> None:
    def body(strategy: Any, worker: int) -> Any:
        strategy.reduce("SUM", value(), axis=None)
        if worker == 0:
            strategy.reduce("SUM", value(), axis=None)

    waited, _ = on_workers([1, 1], body)
    assert type(waited) is PeerLost, waited
    assert "reduce SUM, axis=None (call 3, at test_workers" in str(waited)
    assert "closed the group" in str(waited)


@pytest.mark.parametrize(
    "one, other",
    [
        (("SUM", None), ("MEAN", None)),
        (("SUM", 0), ("MEAN", 0)),
        (("SUM", 0), ("SUM", None)),
        (("SUM", 0), ("SUM", 1)),
        (("SUM", (0, 1)), ("SUM", (1, 0))),
    ],
)
def test_another_operation_or_axis(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    def body(strategy: Any, worker: int) -> Any:
        op, axis = one if worker == 0 else other
        return strategy.reduce(op, di.distribute.PerReplica([np.ones((2, 2))]), axis=axis)

    both_raise(body, f"reduce {one[0]}, axis={one[1]}", f"reduce {other[0]}, axis={other[1]}")


def test_deterministic_on_one_worker() -> None:
    def body(strategy: Any, worker: int) -> Any:
        return strategy.reduce("SUM", value(), axis=None, deterministic=worker == 0)

    both_raise(body, "axis=None, deterministic")


def test_gather_against_reduce_and_another_axis() -> None:
    def mixed(strategy: Any, worker: int) -> Any:
        rows = di.distribute.PerReplica([np.ones((2, 2))])
        return strategy.gather(rows, axis=0) if worker else strategy.reduce("SUM", rows, axis=0)

    both_raise(mixed, "gather, axis=0", "reduce SUM, axis=0")

    def axes(strategy: Any, worker: int) -> Any:
        return strategy.gather(di.distribute.PerReplica([np.ones((2, 2))]), axis=worker)

    both_raise(axes, "gather, axis=0", "gather, axis=1")


def test_swapped_metrics() -> None:
    def body(strategy: Any, worker: int) -> Any:
        if worker == 0:
            loss = strategy.reduce("SUM", value(LOSS), axis=None)
            accuracy = strategy.reduce("SUM", value(ACCURACY), axis=None)
        else:
            accuracy = strategy.reduce("SUM", value(ACCURACY), axis=None)
            loss = strategy.reduce("SUM", value(LOSS), axis=None)
        return loss, accuracy

    both_raise(body, "at different places of the program", "name=")


def test_metrics_swapped_behind_a_function() -> None:
    def body(strategy: Any, worker: int) -> Any:
        def total(x: float) -> Any:
            return strategy.reduce("SUM", value(x), axis=None)

        if worker == 0:
            loss = total(LOSS)
            accuracy = total(ACCURACY)
        else:
            accuracy = total(ACCURACY)
            loss = total(LOSS)
        return loss, accuracy

    both_raise(body, "at different places of the program", "called from")


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_one_call_more_behind_functions_in_a_loop(depth: int) -> None:
    def body(strategy: Any, worker: int) -> list[float]:
        def total(x: float, left: int = depth) -> Any:
            return strategy.reduce("SUM", value(x), axis=None) if left == 1 else total(x, left - 1)

        totals = []
        for step in range(3):
            totals.append(total(8.0))
            if worker == 1 and step == 1:
                total(800.0)
        return totals

    both_raise(body, "made the same call, but")


def test_metrics_of_a_set_that_workers_walk_in_another_order_by_name() -> None:
    def body(strategy: Any, worker: int) -> Any:
        metrics = {"loss": LOSS, "accuracy": ACCURACY}
        order = sorted(metrics, reverse=worker == 1)
        return {name: strategy.reduce("SUM", value(metrics[name]), axis=None, name=name) for name in order}

    both_raise(body, "name='loss'", "name='accuracy'")


def test_a_nest_with_other_keys() -> None:
    def body(strategy: Any, worker: int) -> Any:
        keys = ("a", "b") if worker == 0 else ("a", "c")
        return strategy.reduce("SUM", {key: value() for key in keys}, axis=None)

    both_raise(body, "reduce of ['b']: SUM", "reduce of ['c']: SUM")


def test_a_nest_may_be_in_another_order() -> None:
    def body(strategy: Any, worker: int) -> Any:
        metrics = {"a": value(1.0), "b": value(10.0)}
        if worker:
            metrics = dict(reversed(metrics.items()))
        return sorted(strategy.reduce("SUM", metrics, axis=None).items())

    assert on_workers([1, 1], body) == [[("a", 2.0), ("b", 20.0)]] * 2


def test_a_branch_of_the_chief_gives_its_calls_names() -> None:
    def body(strategy: Any, worker: int) -> Any:
        if worker == 0:
            return [strategy.reduce("SUM", value(), axis=None, name="loss") for _ in range(2)]
        return [strategy.reduce("SUM", value(), axis=None, name="loss") for _ in range(2)]

    assert on_workers([1, 1], body) == [[2.0, 2.0]] * 2


def test_a_branch_of_the_chief_around_a_whole_evaluation_needs_none() -> None:
    def body(strategy: Any, worker: int) -> Any:
        def total() -> Any:
            return strategy.reduce("SUM", value(), axis=None)

        def evaluate() -> Any:
            return [total() for _ in range(2)]

        found = []
        for _ in range(3):
            if worker == 0:
                found += evaluate()
            else:
                found += evaluate()
        return found

    assert on_workers([1, 1], body) == [[2.0] * 6] * 2


def test_workers_with_programs_of_their_own() -> None:
    def body(group: Any, worker: int) -> Any:
        options = di.distribute.experimental.CommunicationOptions(compare_call_sites=False)
        with di.distribute.MultiWorkerMirroredStrategy(None, options, collectives=group) as strategy:
            if worker == 0:
                return strategy.reduce("SUM", value(), axis=None)
            return strategy.reduce("SUM", value(), axis=None)

    groups = open_groups(2, timeout=60)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(body, groups, range(2))) == [2.0, 2.0]


def test_code_that_was_typed_in_has_no_places() -> None:
    program = "total = strategy.reduce('SUM', value, None)"

    def body(strategy: Any, worker: int) -> Any:
        names: dict[str, Any] = {"strategy": strategy, "worker": worker, "value": value()}
        exec(compile("\n" * worker + program, f"cell-{worker}.py", "exec"), names)
        return names["total"]

    assert on_workers([1, 1], body) == [2.0, 2.0]


@pytest.mark.parametrize("sizes", [(3, 20_000), (20_000, 3), (10_000, 20_000)])
def test_a_small_and_a_large_value(sizes: tuple[int, int]) -> None:
    def body(strategy: Any, worker: int) -> Any:
        return strategy.reduce("SUM", di.distribute.PerReplica([np.ones(sizes[worker])]), axis=None)

    both_raise(body, f"[{sizes[0]}]", f"[{sizes[1]}]", kind=InvalidArgumentError)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("axis", [None, 0])
def test_another_dtype(deterministic: bool, axis: int | None) -> None:
    def body(strategy: Any, worker: int) -> Any:
        x = di.distribute.PerReplica([np.ones(3, "f4" if worker else "f8")])
        return strategy.reduce("SUM", x, axis=axis, deterministic=deterministic)

    both_raise(body, "all values must have the same dtype", kind=InvalidArgumentError)


def test_a_large_mean_of_integers_does_not_wrap_around() -> None:
    def body(strategy: Any, worker: int) -> Any:
        large = np.full(20_000, 2_000_000_000, np.int32)
        return strategy.reduce("MEAN", di.distribute.PerReplica([large, large]), axis=None)[0]

    assert on_workers([2, 2], body) == [2e9, 2e9]


def test_a_call_in_another_step_of_the_input() -> None:
    def body(strategy: Any, worker: int) -> list[float]:
        dataset = di.data.Dataset.range(8).batch(2)
        totals = []
        for _ in strategy.experimental_distribute_dataset(dataset):
            more = worker == 1 and len(totals) == 1  # one micro batch
            totals += [strategy.reduce("SUM", value(8.0), axis=None) for _ in range(1 + more)]
        return totals

    both_raise(body, "after step 2 of the input", "after step 3 of the input")


def unknown_length() -> di.data.Dataset:
    return di.data.Dataset.range(64).filter(lambda x: x >= 0).batch(2)


def test_one_worker_reduces_while_another_waits_for_the_next_step() -> None:
    def body(strategy: Any, worker: int) -> Any:
        steps = iter(strategy.experimental_distribute_dataset(unknown_length()))
        next(steps)
        if worker == 0:
            strategy.reduce("SUM", value(), axis=None)
        for _ in steps:
            pass
        strategy.gather(di.distribute.PerReplica([np.ones(1)]), axis=0)

    both_raise(body, "reduce SUM, axis=None", kind=Mismatch)


def test_two_inputs_in_another_order() -> None:
    def body(strategy: Any, worker: int) -> Any:
        first, second = [iter(strategy.experimental_distribute_dataset(unknown_length())) for _ in range(2)]
        next(first), next(second)
        for _ in range(40):
            for steps in (first, second) if worker == 0 else (second, first):
                next(steps, None)

    both_raise(body, "next step of input 1", "next step of input 2")


# ---- replicas of one process


def replicas_raise(step: Callable[[Any, int], Any], *words: str) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def call() -> Any:
        context = di.distribute.get_replica_context()
        assert context is not None
        return step(context, context.replica_id_in_sync_group)

    with pytest.raises(Mismatch) as caught:
        strategy.run(call)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_replicas_with_another_operation() -> None:
    replicas_raise(
        lambda context, replica: context.all_reduce("MEAN" if replica else "SUM", 8.0),
        "replica 0: all_reduce SUM",
        "replica 1: all_reduce MEAN",
    )


def test_replicas_that_gather_and_reduce_and_merge() -> None:
    def step(context: Any, replica: int) -> Any:
        return context.all_gather(np.ones(1), 0) if replica else context.all_reduce("SUM", np.ones(1))

    replicas_raise(step, "all_gather, axis=0", "all_reduce SUM")

    def merge(context: Any, replica: int) -> Any:
        return context.merge_call(lambda _: None) if replica else context.all_reduce("SUM", np.ones(1))

    replicas_raise(merge, "merge_call of", "all_reduce SUM")


def test_replicas_that_swap_metrics() -> None:
    def step(context: Any, replica: int) -> Any:
        if replica:
            accuracy = context.all_reduce("SUM", ACCURACY)
            loss = context.all_reduce("SUM", LOSS)
        else:
            loss = context.all_reduce("SUM", LOSS)
            accuracy = context.all_reduce("SUM", ACCURACY)
        return loss, accuracy

    replicas_raise(step, "at different places of the program")


def test_replicas_of_several_workers_with_another_operation() -> None:
    def body(strategy: Any, worker: int) -> Any:
        def step() -> Any:
            context = di.distribute.get_replica_context()
            assert context is not None
            return context.all_reduce("MEAN" if worker else "SUM", 8.0)

        return strategy.run(step)

    both_raise(body, "all_reduce SUM", "all_reduce MEAN", replicas=(2, 2))
