# SPDX-License-Identifier: Apache-2.0
"""Variables hold what their aggregation says, wherever their copies are."""

from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.distribute import Variable, VariableAggregation, VariableSynchronization
from distinput.distribute.core.strategy import Strategy
from distinput.testing.strategy.comparing import each_replica, local_ids, same

__all__ = ["check_created_in_run", "check_on_read", "check_updates", "check_variables"]

_COMBINED: dict[Any, Callable[[Any], Any]] = {
    VariableAggregation.SUM: lambda every: every.sum(axis=0),
    VariableAggregation.MEAN: lambda every: every.mean(axis=0),
    VariableAggregation.ONLY_FIRST_REPLICA: lambda every: every[0],
}


def check_variables(strategy: Strategy) -> None:
    """Replicas that write at the same time write the aggregate; writes outside of run change all copies."""
    value, every = each_replica(strategy)
    for aggregation, combined in _COMBINED.items():
        with strategy.scope():
            variable = Variable(np.array([1.0, 2.0]), aggregation=aggregation)
        expected = np.array([1.0, 2.0])
        what = f"a variable with aggregation {aggregation.name}"
        for _ in range(2):
            strategy.run(lambda x, v=variable: v.assign_add(x * 1.0), args=(value,))
            expected = expected + combined(every)
        same(f"{what} after assign_add on replicas", variable.numpy(), expected)
        strategy.run(lambda x, v=variable: v.assign_sub(x * 1.0), args=(value,))
        same(f"{what} after assign_sub on replicas", variable.numpy(), expected - combined(every))
        strategy.run(lambda x, v=variable: v.assign(x * 2.0), args=(value,))
        same(f"{what} after assign on replicas", variable.numpy(), combined(2 * every))
        variable.assign([5.0, 6.0])
        with strategy.scope():
            variable.assign_add([1.0, 1.0])
        same(f"{what} after writes in cross-replica context", variable.numpy(), [6.0, 7.0])
        _same_everywhere(strategy, variable, [6.0, 7.0])


def _same_everywhere(strategy: Strategy, variable: Any, expected: Any) -> None:
    """Every replica reads the value, as it does when it computes with the variable."""
    for given in strategy.experimental_local_results(strategy.run(lambda: variable * 1.0)):
        same("what a replica reads", given, expected)


def check_on_read(strategy: Strategy) -> None:
    """Replicas write their own copies, which are combined when the variable is read outside of run.

    Where only the first one counts, a worker reads the first of its own, without asking the others.
    """
    value, every = each_replica(strategy)
    first = every[local_ids(strategy)[0]]
    for aggregation, combined in _COMBINED.items():
        once = first if aggregation is VariableAggregation.ONLY_FIRST_REPLICA else combined(every)
        with strategy.scope():
            variable = Variable(np.zeros(2), aggregation=aggregation, synchronization=VariableSynchronization.ON_READ)
        for _ in range(3):
            strategy.run(lambda x, v=variable: v.assign_add(x * 1.0), args=(value,))
        what = f"a variable read with aggregation {aggregation.name}"
        same(what, variable.numpy(), 3 * once)
        variable.assign(np.zeros(2))
        same(f"{what}, after it was set to zero", variable.numpy(), np.zeros(2))


def check_updates(strategy: Strategy) -> None:
    """`extended.update` changes every copy, with the same and with reduced values."""
    value, every = each_replica(strategy)
    with strategy.scope():
        variable = Variable(np.array([1.0, 2.0]))
        total = strategy.reduce("SUM", value, axis=None)
        strategy.extended.update(variable, lambda v, delta: v.assign_add(delta), args=(total,))
    same("a variable after extended.update", variable.numpy(), np.array([1.0, 2.0]) + every.sum(axis=0))
    _same_everywhere(strategy, variable, np.array([1.0, 2.0]) + every.sum(axis=0))
    if not strategy.extended.variable_created_in_scope(variable):
        raise AssertionError("variable_created_in_scope must be true for a variable created in the scope")


def check_created_in_run(strategy: Strategy) -> None:
    """A variable that a function creates is created once for all replicas, also if it is kept for later calls."""
    value, every = each_replica(strategy)
    made: list[Any] = []

    def create() -> None:
        made.append(Variable(np.zeros(2), aggregation=VariableAggregation.SUM))

    strategy.run(create)
    if len(set(map(id, made))) != 1:
        raise AssertionError(f"all replicas must get one variable, got {len(set(map(id, made)))}")

    class CountingModel:
        total: Any = None

        def __call__(self, x: Any) -> None:
            if self.total is None:
                self.total = Variable(np.zeros(2), aggregation=VariableAggregation.SUM)
            self.total.assign_add(x * 1.0)

    counter = CountingModel()
    for _ in range(3):
        strategy.run(counter, args=(value,))
    same("a variable created in run, after three calls", counter.total.numpy(), 3 * every.sum(axis=0))
