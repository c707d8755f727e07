# SPDX-License-Identifier: Apache-2.0
"""Runs, reductions and gathers give the numbers that one machine computes of all rows in one piece."""

from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute import get_replica_context
from distinput.distribute.core.strategy import Strategy
from distinput.testing.strategy.comparing import each_replica, local_ids, part, same, uneven

__all__ = ["check_all_reduce", "check_gather", "check_reduce", "check_run", "check_steps"]


def check_run(strategy: Strategy) -> None:
    """Every replica gets its components, and its results come back in its place."""
    value, every = each_replica(strategy)
    ids = local_ids(strategy)

    def step(pair: Any, factor: Any, *, shift: Any) -> Any:
        return {"own": pair["a"] * factor + shift, "nested": [pair["b"], (pair["a"].sum(),)]}

    plain = np.array([3.0, 4.0])
    found = strategy.run(step, args=({"a": value, "b": plain}, 2.0), kwargs={"shift": 1.0})
    for replica, given in zip(ids, strategy.experimental_local_results(found["own"]), strict=True):
        same(f"what replica {replica} computed of its component", given, 2 * every[replica] + 1)
    for replica, given in zip(ids, strategy.experimental_local_results(found["nested"][1][0]), strict=True):
        same(f"a scalar that replica {replica} computed", given, every[replica].sum())
    for given in strategy.experimental_local_results(found["nested"][0]):
        same("an argument that is not distributed", given, plain)
    rows, _ = uneven(strategy)
    for replica, given in zip(
        ids, strategy.experimental_local_results(strategy.run(lambda x: x * 2, args=(rows,))), strict=True
    ):
        same(f"what replica {replica} computed of its rows", given, 2 * part(replica))


def check_steps(strategy: Strategy) -> None:
    """Each step of a distributed dataset is one global batch, the short last one included."""
    rows, size = 23, 7
    dataset = Dataset.range(rows, output_type=np.float64).batch(size)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    for first in range(0, rows, size):
        batch = np.arange(first, min(first + size, rows), dtype=np.float64)
        found = iterator.get_next_as_optional()
        if not found.has_value():
            raise AssertionError(f"the step of rows {batch.tolist()} is missing")
        step = found.get_value()
        same(f"the rows of the step from {first}", np.sort(strategy.gather(step, axis=0)), batch)
        doubled = strategy.run(lambda x: x * 2, args=(step,))
        same(f"the sum over the step from {first}", strategy.reduce("SUM", doubled, axis=0), 2 * batch.sum())
        same(f"the mean over the step from {first}", strategy.reduce("MEAN", doubled, axis=0), 2 * batch.mean())
    if iterator.get_next_as_optional().has_value():
        raise AssertionError("there is a step after the last batch")


def check_reduce(strategy: Strategy) -> None:
    """SUM and MEAN are those of all rows, however many each replica has, and of equal shapes element by element."""
    value, rows = uneven(strategy)
    same("reduce(SUM, axis=0) of uneven parts", strategy.reduce("SUM", value, axis=0), rows.sum(axis=0))
    same("reduce(MEAN, axis=0) of uneven parts", strategy.reduce("MEAN", value, axis=0), rows.mean(axis=0))
    same("reduce(SUM, axis=(0, 1))", strategy.reduce("SUM", value, axis=(0, 1)), rows.sum())
    each, every = each_replica(strategy)
    same("reduce(SUM, axis=None)", strategy.reduce("SUM", each, axis=None), every.sum(axis=0))
    same("reduce(MEAN, axis=None)", strategy.reduce("MEAN", each, axis=None), every.mean(axis=0))
    same("reduce(SUM) of a result of run", _of_run(strategy, "SUM", each), (every + 1).sum(axis=0))


def _of_run(strategy: Strategy, op: str, value: Any) -> Any:
    return strategy.reduce(op, strategy.run(lambda x: x + 1, args=(value,)), axis=None)


def check_gather(strategy: Strategy) -> None:
    """The rows of all replicas follow one another in the order of replicas."""
    value, rows = uneven(strategy)
    same("gather of uneven parts along axis 0", strategy.gather(value, axis=0), rows)
    each, every = each_replica(strategy, (2, 3))
    same("gather along axis 1", strategy.gather(each, axis=1), np.concatenate(list(every), axis=1))


def check_all_reduce(strategy: Strategy) -> None:
    """Inside of run, every replica gets what reduce and gather give outside."""
    value, every = each_replica(strategy)

    def step(own: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        both = context.all_reduce("SUM", {"x": own, "y": [own.sum()]})
        return {
            "sum": both["x"],
            "sum of scalars": both["y"][0],
            "mean": context.all_reduce("MEAN", own),
            "gather": context.all_gather(own, axis=0),
        }

    expected = {
        "sum": every.sum(axis=0),
        "sum of scalars": every.sum(),
        "mean": every.mean(axis=0),
        "gather": np.concatenate(list(every)),
    }
    found = strategy.run(step, args=(value,))
    for name, wanted in expected.items():
        for given in strategy.experimental_local_results(found[name]):
            same(f"the {name} over all replicas, inside of run", given, wanted)
