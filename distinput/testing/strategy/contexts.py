# SPDX-License-Identifier: Apache-2.0
"""What code can find out about where it runs, and what becomes of its errors."""

from typing import Any

from distinput.distribute import get_replica_context, get_strategy, has_strategy, in_cross_replica_context
from distinput.distribute.core.strategy import Strategy
from distinput.testing.strategy.comparing import each_replica, local_ids, same

__all__ = ["check_contexts", "check_errors", "check_merge_call"]


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
