# SPDX-License-Identifier: Apache-2.0
"""The suite for strategies: ours pass, and each way to be wrong is caught under the name of its law."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

import distinput as di
from distinput.distribute import VariableAggregation, VariableSynchronization
from distinput.distribute.core.contexts import ReplicaContext
from distinput.distribute.core.rendezvous import Rendezvous
from distinput.distribute.core.strategy import StrategyExtended
from distinput.distribute.core.values import PerReplica
from distinput.distribute.variables.store import HostStore
from distinput.testing import check_strategy
from distinput.testing.strategy import LAWS
from distinput.values.nest import map_leaves

Mirrored = di.distribute.MirroredStrategy
DEVICES = ["CPU:0", "CPU:1", "CPU:2"]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_mirrored_strategy_keeps_all_laws(replicas: int) -> None:
    assert check_strategy(Mirrored(DEVICES[:replicas])) == tuple(LAWS)


def test_a_law_that_is_left_out_is_not_checked() -> None:
    class Wrong(Mirrored):
        def gather(self, value: Any, axis: int, **_: Any) -> Any:
            raise NotImplementedError("for another time")

    checked = check_strategy(Wrong(DEVICES), leave_out=["gather", "steps", "checkpoint"])
    assert "gather" not in checked
    assert "run" in checked
    with pytest.raises(ValueError, match="there is no law 'gathers'; known are contexts, run"):
        check_strategy(Wrong(DEVICES), leave_out=["gathers"])


class HasNoScope(Mirrored):
    def scope(self) -> Any:
        return nullcontext(self)


class SwapsItsReplicas(Mirrored):
    def run(self, *args: Any, **kwargs: Any) -> Any:
        return _swapped(super().run(*args, **kwargs))


def _swapped(value: Any) -> Any:
    return map_leaves(lambda leaf: PerReplica(leaf.values[::-1]) if isinstance(leaf, PerReplica) else leaf, value)


class MeansOfMeans(Mirrored):
    def reduce(self, reduce_op: Any, value: Any, axis: Any, **options: Any) -> Any:
        if reduce_op != "MEAN" or axis is None:
            return super().reduce(reduce_op, value, axis, **options)
        parts = [part.mean(axis) for part in self.experimental_local_results(value) if len(part)]
        return sum(parts) / len(parts)


class GathersBackwards(Mirrored):
    def gather(self, value: Any, axis: int, **options: Any) -> Any:
        return super().gather(PerReplica(value.values[::-1]), axis, **options)


class LosesTheShortBatch(Mirrored):
    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        return super().experimental_distribute_dataset(dataset, di.distribute.InputOptions(tail="drop"))


class WritesTheFirstCopyOnly(Mirrored):
    def _open_store(self, value: Any, policy: Any, name: str) -> Any:
        class First(HostStore):
            def update(self, copy: int, kind: str, *args: Any) -> Any:
                return super().update(copy, kind, *args) if not copy else self.read(copy)

        return First(value, self._parameter_devices)


class AddsWhereItShouldAverage(Mirrored):
    def _create_variable(self, make_value: Any, policy: Any, **facts: Any) -> Any:
        if policy.aggregation is VariableAggregation.MEAN:
            policy = replace(policy, aggregation=VariableAggregation.SUM)
        return super()._create_variable(make_value, policy, **facts)


class NeverReadsTogether(Mirrored):
    def _create_variable(self, make_value: Any, policy: Any, **facts: Any) -> Any:
        if policy.on_read:
            none = VariableAggregation.NONE
            policy = replace(policy, synchronization=VariableSynchronization.ON_WRITE, aggregation=none)
        return super()._create_variable(make_value, policy, **facts)


class _FirstOnly(StrategyExtended):
    def update(self, var: Any, fn: Any, args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        return fn(var.values[0], *args)


class UpdatesTheFirstCopyOnly(Mirrored):
    @property
    def extended(self) -> StrategyExtended:
        return _FirstOnly(self)


class ForgetsThePlace(Mirrored):
    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        made = super().experimental_distribute_dataset(dataset, options)
        object.__setattr__(made, "restore", lambda state, *_: iter(made))
        return made


class RestoresNothing(Mirrored):
    def _create_variable(self, make_value: Any, policy: Any, **facts: Any) -> Any:
        made = super()._create_variable(make_value, policy, **facts)
        made._restored = lambda array: None  # type: ignore[method-assign]
        return made


class SwallowsErrors(Mirrored):
    def run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().run(*args, **kwargs)
        except ValueError:
            return None


class RunsInsideOfRun(Mirrored):
    def run(self, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        if di.distribute.get_replica_context() is not None and di.distribute.has_strategy():
            return fn(*args)
        return super().run(fn, args, kwargs, options)


class ComputesAlone(Mirrored):
    """Replicas do not add what they found."""

    def run(self, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        whole = ReplicaContext.all_reduce
        try:  # out here, where no two replicas change it at the same time
            ReplicaContext.all_reduce = lambda self, op, value, *rest, **named: value  # type: ignore[method-assign]
            return super().run(fn, args, kwargs, options)
        finally:
            ReplicaContext.all_reduce = whole  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "wrong, law, says",
    [
        (HasNoScope, "contexts", "in scope: got"),
        (SwapsItsReplicas, "contexts", "replica_id_in_sync_group of the replicas"),
        (SwapsItsReplicas, "run", "what replica 0 computed"),
        (SwapsItsReplicas, "merge_call", "returned for replica 0"),
        (ComputesAlone, "all_reduce", "the sum over all replicas"),
        (MeansOfMeans, "reduce", r"reduce\(MEAN, axis=0\)"),
        (GathersBackwards, "gather", "gather of uneven parts"),
        (LosesTheShortBatch, "steps", "the step of rows .* is missing"),
        (WritesTheFirstCopyOnly, "variables", "what a replica reads"),
        (AddsWhereItShouldAverage, "variables", "a variable with aggregation MEAN after assign_add"),
        (NeverReadsTogether, "variables on read", "a variable read with aggregation SUM"),
        (UpdatesTheFirstCopyOnly, "updates", "what a replica reads"),
        (LosesTheShortBatch, "training", "the loss of each step"),
        (RestoresNothing, "checkpoint", "a mirrored variable, restored"),
        (SwallowsErrors, "errors", "run must raise what the function raised"),
        (RunsInsideOfRun, "errors", "run inside of run must be a RuntimeError"),
    ],
)
def test_a_strategy_that_is_wrong_is_caught(wrong: type[Mirrored], law: str, says: str) -> None:
    with pytest.raises(AssertionError, match=f"^{law}: .*{says}"):
        check_strategy(wrong(DEVICES), leave_out=[name for name in LAWS if name != law])


def test_every_law_has_a_strategy_that_breaks_it() -> None:
    (cases,) = test_a_strategy_that_is_wrong_is_caught.pytestmark  # type: ignore[attr-defined]
    assert {law for _, law, _ in cases.args[1]} | {"created in run"} == set(LAWS)


def test_variables_of_each_replica_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def each(self: Any, replica: int, keys: Any, what: str, make: Callable[[], Any]) -> Any:
        return make()

    monkeypatch.setattr(Rendezvous, "created", each)
    with pytest.raises(AssertionError, match=r"^created in run: all replicas must get one variable, got 3"):
        check_strategy(Mirrored(DEVICES), leave_out=[name for name in LAWS if name != "created in run"])
