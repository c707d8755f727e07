# SPDX-License-Identifier: Apache-2.0
"""The suite for a strategy: the same program gives the same numbers under every one."""

import os
import tempfile
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute import (
    MirroredStrategy,
    Variable,
    VariableAggregation,
    VariableSynchronization,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from distinput.distribute.core.strategy import Strategy
from distinput.testing.elements import hold
from distinput.train import Checkpoint

# ----------------------------------------------------------------------------
# Values of all replicas to compare, and comparisons that say what was expected.
# ----------------------------------------------------------------------------


Array = np.ndarray[Any, np.dtype[Any]]


def part(replica: int, width: int = 2) -> Array:
    """The rows of a replica, [n, width] of float64: one, two or none of them, so that replicas differ."""
    rows = (replica + 1) % 3
    return 10.0 * replica + np.arange(rows * width, dtype=np.float64).reshape(rows, width)


def uneven(strategy: Strategy) -> tuple[Any, Array]:
    """A distributed value of `part` of every replica, and the rows of all replicas in one piece."""
    total = strategy.num_replicas_in_sync
    value = strategy.experimental_distribute_values_from_function(lambda context: part(_replica(context)))
    return value, np.concatenate([part(replica) for replica in range(total)])


def each_replica(strategy: Strategy, shape: tuple[int, ...] = (2,), dtype: Any = np.float64) -> tuple[Any, Array]:
    """A distributed value of one shape, and the values of all replicas stacked, [replicas, *shape]."""
    total = strategy.num_replicas_in_sync
    every = np.arange(total * int(np.prod(shape)), dtype=dtype).reshape(total, *shape) + 1
    return strategy.experimental_distribute_values_from_function(lambda context: every[_replica(context)].copy()), every


def local_ids(strategy: Strategy) -> list[int]:
    """The numbers of the replicas of this process, as the values that are made for them are numbered."""
    ids = strategy.experimental_distribute_values_from_function(_replica)
    return [int(number) for number in strategy.experimental_local_results(ids)]


def same(what: str, found: Any, expected: Any, *, close: float = 1e-6) -> None:
    """Refuse a number or an array that differs from the expected one in shape or, by more than rounding, in value.

    Raises:
      AssertionError: it does.
    """
    given, wanted = np.asarray(found), np.asarray(expected)
    if given.shape == wanted.shape and np.allclose(given, wanted, rtol=close, atol=close, equal_nan=True):
        return
    raise AssertionError(f"{what}: got {given.tolist()}, expected {wanted.tolist()}")


def _replica(context: Any) -> int:
    return int(context.replica_id_in_sync_group)


# ----------------------------------------------------------------------------
# A training loop learns the same numbers, however many replicas share its batches.
# ----------------------------------------------------------------------------


_ROWS, _BATCH, _RATE = 23, 7, 0.05


def _examples() -> tuple[Any, Any]:
    """Features, [rows, 3], and targets that are a linear function of them."""
    features = np.random.default_rng(0).normal(size=(_ROWS, 3))
    return features, features @ np.array([1.0, -2.0, 0.5]) + 0.25


def _expected(epochs: int) -> tuple[Any, list[float]]:
    """The weights and the loss of each step on one machine."""
    features, targets = _examples()
    weights, losses = np.zeros(3), []
    for _ in range(epochs):
        for first in range(0, _ROWS, _BATCH):
            x, y = features[first : first + _BATCH], targets[first : first + _BATCH]
            error = x @ weights - y
            losses.append(float((error**2).mean()))
            weights = weights - _RATE * (x.T @ error) / len(x)
    return weights, losses


def check_training(strategy: Strategy) -> None:
    """Gradient descent over global batches with a short last one: weights, losses and step count are those of one machine."""
    epochs = 2
    weights, losses = _expected(epochs)
    features, targets = _examples()
    dataset = Dataset.from_tensor_slices((features, targets)).batch(_BATCH)
    with strategy.scope():
        learned = Variable(np.zeros(3), aggregation=VariableAggregation.MEAN)
        steps = Variable(np.int64(0), aggregation=VariableAggregation.ONLY_FIRST_REPLICA)

    def step(x: Any, y: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        error = x @ learned.value() - y
        sums = context.all_reduce("SUM", {"gradient": x.T @ error, "rows": (error * 0 + 1).sum()})
        learned.assign_sub(_RATE * sums["gradient"] / sums["rows"])
        steps.assign_add(1)
        return error**2

    found = []
    for _ in range(epochs):
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        while (batch := iterator.get_next_as_optional()).has_value():
            squares = strategy.run(step, args=batch.get_value())
            found.append(float(strategy.reduce("MEAN", squares, axis=0)))
    same("the loss of each step", found, losses, close=1e-5)
    same("the weights", learned.numpy(), weights, close=1e-5)
    same("the counter of steps", steps.numpy(), len(losses))


# ----------------------------------------------------------------------------
# Variables hold what their aggregation says, wherever their copies are.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# What is saved under a strategy is restored under it, and under another one.
# ----------------------------------------------------------------------------


_SAVED_ROWS, _SAVED_BATCH = 17, 4


class _Job:
    """What a training job keeps: variables of each kind, and its place in the data."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.mean = Variable(np.zeros(2, np.float32), aggregation=VariableAggregation.MEAN)
            self.total = Variable(
                np.zeros(2, np.float32),
                aggregation=VariableAggregation.SUM,
                synchronization=VariableSynchronization.ON_READ,
            )
        dataset = Dataset.range(_SAVED_ROWS).shuffle(_SAVED_ROWS, seed=5).batch(_SAVED_BATCH)
        self.iterator = iter(strategy.experimental_distribute_dataset(dataset))
        self.checkpoint = Checkpoint(mean=self.mean, total=self.total, iterator=self.iterator)

    def step(self, values: Any) -> bool:
        """Take a step; False at the end of the data."""
        self.batch = self.iterator.get_next_as_optional()
        if not self.batch.has_value():
            return False

        def step(value: Any) -> None:
            self.mean.assign_add(value * 1)
            self.total.assign_add(value * 1)

        self.strategy.run(step, args=(values,))
        return True

    def rows(self) -> list[int]:
        """The rows of the batches that are left, in no order within a batch."""
        left: list[int] = []
        while (batch := self.iterator.get_next_as_optional()).has_value():
            left += np.sort(self.strategy.gather(batch.get_value(), axis=0)).tolist()
        return left

    def compare(self, where: str, mean: Any, total: Any, rows: list[int]) -> None:
        same(f"a mirrored variable, restored {where}", self.mean.numpy(), mean)
        same(f"a variable summed on read, restored {where}", self.total.numpy(), total)
        same(f"the rows after a restart {where}", self.rows(), rows)


def check_checkpoint(strategy: Strategy) -> None:
    """Variables and the place in the data come back under the same strategy, and under one with a single replica."""
    values, every = each_replica(strategy, dtype=np.float32)  # which devices without float64 keep as it is
    job = _Job(strategy)
    for _ in range(2):
        job.step(values)
    with tempfile.TemporaryDirectory() as folder:
        path = job.checkpoint.write(_of_first_worker(strategy, os.path.join(folder, "saved")))
        mean, total = 2 * every.mean(axis=0), 2 * every.sum(axis=0)
        while job.step(values):
            pass
        job.checkpoint.read(path).assert_consumed()
        rows = job.rows()
        if len(rows) != _SAVED_ROWS - 2 * _SAVED_BATCH:
            raise AssertionError(
                f"after a restart at row {2 * _SAVED_BATCH} of {_SAVED_ROWS} there must be the rest, got {rows}"
            )
        again = _Job(strategy)
        again.checkpoint.read(path).assert_consumed()
        again.compare("under the same strategy", mean, total, rows)
        alone = _Job(MirroredStrategy(["CPU:0"]))  # on every worker, each of which gets what the first one reads
        alone.checkpoint.read(path).assert_consumed()
        alone.compare("under one replica", mean, total, rows)
        _of_first_worker(strategy, "done")  # nobody reads the file any more


def _of_first_worker(strategy: Strategy, text: str) -> str:
    """What the first worker says; all workers have come here when this returns."""
    line = np.frombuffer(f"{text}\n".encode(), np.uint8)
    every = strategy.gather(strategy.experimental_distribute_values_from_function(lambda _: line), axis=0)
    return bytes(every).decode().partition("\n")[0]


# ----------------------------------------------------------------------------
# What code can find out about where it runs, and what becomes of its errors.
# ----------------------------------------------------------------------------


def check_contexts(strategy: Strategy) -> None:
    """Scope, replica and merge contexts are those of TensorFlow's table."""
    total = strategy.num_replicas_in_sync
    _expect("outside of all scopes", has=False, cross=False, replica=True, current=None)
    with strategy.scope():
        _expect("in scope", has=True, cross=True, replica=False, current=strategy)

    def step() -> Any:
        _expect("in run", has=True, cross=False, replica=True, current=strategy)
        context = get_replica_context()
        assert context is not None
        if context.num_replicas_in_sync != total:
            raise AssertionError(f"in run: num_replicas_in_sync is {context.num_replicas_in_sync}, expected {total}")
        return context.replica_id_in_sync_group

    ids = strategy.experimental_local_results(strategy.run(step))
    same("replica_id_in_sync_group of the replicas of this process", list(map(int, ids)), local_ids(strategy))
    _expect("after run", has=False, cross=False, replica=True, current=None)


def _expect(where: str, *, has: bool, cross: bool, replica: bool, current: Strategy | None) -> None:
    found = {
        "has_strategy": has_strategy(),
        "in_cross_replica_context": in_cross_replica_context(),
        "a replica context": get_replica_context() is not None,
    }
    expected = dict(zip(found, (has, cross, replica), strict=True))
    if found != expected:
        raise AssertionError(f"{where}: got {found}, expected {expected}")
    if current is not None and get_strategy() is not current:
        raise AssertionError(f"{where}: get_strategy() is {get_strategy()!r}, expected {current!r}")


def check_merge_call(strategy: Strategy) -> None:
    """The replicas meet once, in cross-replica context, and each gets its part of the result."""
    value, every = each_replica(strategy)

    def merge(merging: Any, given: Any) -> Any:
        if not in_cross_replica_context() or merging is not strategy:
            raise AssertionError("a merge function is called with the strategy, in cross-replica context")
        return merging.reduce("SUM", given, axis=None), given

    def step(given: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        together, own = context.merge_call(merge, args=(given,))
        return {"sum": together, "own": own * 2}

    found = strategy.run(step, args=(value,))
    for replica, given in zip(local_ids(strategy), strategy.experimental_local_results(found["sum"]), strict=False):
        same(f"the sum of a merge function on replica {replica}", given, every.sum(axis=0))
    for replica, given in zip(local_ids(strategy), strategy.experimental_local_results(found["own"]), strict=True):
        same(f"the part that a merge function returned for replica {replica}", given, 2 * every[replica])


class _Refused(ValueError):
    """Raised by the function of a run."""


def check_errors(strategy: Strategy) -> None:
    """The error of a replica is raised with its own type, and the strategy can be used afterwards."""

    def step(given: Any) -> Any:
        raise _Refused(f"by the function, for values of shape {given.shape}")

    value, every = each_replica(strategy)
    for _ in range(2):
        try:
            strategy.run(step, args=(value,))
        except _Refused:
            pass
        else:
            raise AssertionError("run must raise what the function raised")
    same("the sum after an error", strategy.reduce("SUM", value, axis=None), every.sum(axis=0))
    try:
        strategy.run(lambda: strategy.run(lambda: None))
    except RuntimeError:
        return
    raise AssertionError("run inside of run must be a RuntimeError")


# ----------------------------------------------------------------------------
# Runs, reductions and gathers give the numbers that one machine computes of all rows in one piece.
# ----------------------------------------------------------------------------


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
    doubled = strategy.experimental_local_results(strategy.run(lambda x: x * 2, args=(rows,)))
    for replica, given in zip(ids, doubled, strict=True):
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
    more = strategy.run(lambda x: x + 1, args=(each,))
    same("reduce(SUM) of a result of run", strategy.reduce("SUM", more, axis=None), (every + 1).sum(axis=0))


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


# ----------------------------------------------------------------------------
# The suite for a strategy.
# ----------------------------------------------------------------------------


LAWS: Mapping[str, Callable[[Strategy], None]] = MappingProxyType(
    {
        "contexts": check_contexts,
        "run": check_run,
        "merge_call": check_merge_call,
        "all_reduce": check_all_reduce,
        "reduce": check_reduce,
        "gather": check_gather,
        "steps": check_steps,
        "variables": check_variables,
        "variables on read": check_on_read,
        "updates": check_updates,
        "created in run": check_created_in_run,
        "training": check_training,
        "checkpoint": check_checkpoint,
        "errors": check_errors,
    }
)
"""The laws of strategies by name."""


def check_strategy(strategy: Strategy, *, leave_out: Collection[str] = ()) -> tuple[str, ...]:
    """Check all laws of strategies: programs give the numbers that one machine computes, whatever the strategy is.

    With several workers every one of them must call this, as it must call everything else.

    The laws, by name:

    * contexts: scopes, `run` and merge functions are seen by `get_strategy`, `get_replica_context` and the like;
    * run, merge_call, all_reduce: every replica gets its components, can meet the others, and has its results in its place;
    * reduce, gather: sums, means and concatenations are those of all rows, also where replicas have different numbers of them;
    * steps: each step of a distributed dataset is one global batch, the short last one included;
    * variables, variables on read, updates, created in run: they hold what their aggregation says;
    * training: gradient descent gives the weights and losses of one machine;
    * checkpoint: variables and the place in the data are restored under the strategy, and under one with a single replica;
    * errors: the error of a replica is raised, and the strategy works afterwards.

    Args:
      strategy: any strategy that runs functions on its replicas at once.
      leave_out: names of laws not to check.

    Returns:
      The names of the laws that were checked.

    Raises:
      AssertionError: a law is broken; the message begins with its name.
      ValueError: an unknown name in `leave_out`.

    >>> import distinput as di
    >>> "training" in check_strategy(di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
    True
    """
    return hold("check_strategy", LAWS, lambda check: check(strategy), leave_out)
