# SPDX-License-Identifier: Apache-2.0
"""Contexts: whether code runs for all replicas or for one, what a replica knows, and the run of a function on every replica."""

import dis
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Generic, Self, TypeVar

import numpy as np

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.rendezvous import Arrival, Rendezvous
from distinput.distribute.core.replica_reducer import (
    IndexedSlices,
    Leaves,
    ReplicaCall,
    gather_values,
    has_slices,
    reduce_slices,
    refuse_gather,
)
from distinput.distribute.core.replicas import Replicas, part
from distinput.distribute.core.values import (
    has_distributed,
    is_distributed,
    is_number,
    marked,
    merged_values,
    present_in,
    refuse_sparse_values,
    regroup,
    replica_leaves,
    rows_of,
    select_replica,
)
from distinput.values.leaves import is_ragged

# ----------------------------------------------------------------------------
# The stack of modes: whether code runs for all replicas of a strategy, or for one of them.
#
# Every thread has a stack. An empty one means the default strategy, in its replica context. `current` returns what is on top.
# ----------------------------------------------------------------------------


_CROSS_REPLICA = "Method requires being in cross-replica context, use get_replica_context().merge_call()"

S = TypeVar("S")


class Mode:
    """One level of the stack.

    Args:
      strategy: the current one.
      replica: the context of the replica that runs; None in cross-replica context.
      copy: the copy of variables that `StrategyExtended.update` is changing; None outside of it.
    """

    __slots__ = ("copy", "replica", "strategy")

    def __init__(self, strategy: Any, replica: Any, copy: int | None = None) -> None:
        self.strategy, self.replica, self.copy = strategy, replica, copy

    def __enter__(self) -> None:
        modes.stack.append(self)

    def __exit__(self, *_: object) -> None:
        modes.stack.remove(self)


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Mode] = []
        self.kept: Mode | None = None  # the mode of experimental_set_strategy, always the lowest


modes = _Modes()


outside = Mode(None, None)
"""The default strategy and its replica context, current while the stack is empty; None before their first use."""


def in_replica_of(strategy: object) -> bool:
    """True inside a replica's code, False in cross-replica context and outside all scopes.

    Raises:
      RuntimeError: another strategy is current.
    """
    stack = modes.stack
    if not stack:
        return False
    mode = stack[-1]
    if mode.strategy is not strategy:
        raise RuntimeError(
            f"Mixing different tf.distribute.Strategy objects: {strategy!r} was used while {mode.strategy!r} is current; "
            "leave the scope of the one before using the other"
        )
    return mode.replica is not None


def require_cross_replica(strategy: object, message: str = _CROSS_REPLICA) -> None:
    """Check that `strategy` may act for all its replicas here.

    Raises:
      RuntimeError: another strategy is current, or this is the code of one replica.
    """
    if modes.stack and in_replica_of(strategy):
        raise RuntimeError(message)


class Scope(Generic[S]):
    """The context manager of `Strategy.scope`: makes the strategy current. It may be entered again inside itself.

    Source: `tf.distribute.Strategy.scope`.
    """

    __slots__ = ("_entered", "_strategy")

    def __init__(self, strategy: S) -> None:
        self._strategy = strategy
        self._entered: list[Mode] = []

    def __enter__(self) -> S:
        strategy = self._strategy
        if strategy is outside.strategy:
            if modes.stack:
                raise RuntimeError(
                    "Must not nest tf.distribute.Strategy scopes: the default strategy's scope was entered inside "
                    f"that of {modes.stack[-1].strategy!r}"
                )
            return strategy
        require_cross_replica(strategy)
        mode = Mode(strategy, None)
        self._entered.append(mode)
        modes.stack.append(mode)
        return strategy

    def __exit__(self, *_: object) -> None:
        _leave(self._entered)


def _leave(entered: list[Mode]) -> None:
    """Leave the mode that this thread entered last, of those that were entered on any thread; none for the default one."""
    mode = next((mode for mode in reversed(modes.stack) if mode in entered), None)
    if mode is not None:
        entered.remove(mode)
        modes.stack.remove(mode)


# ----------------------------------------------------------------------------
# What the code of one replica knows and how it works with the other replicas: `merge_call`, `all_reduce`, `all_gather`.
# ----------------------------------------------------------------------------


# ---- Which replica a value is made for


class ValueContext:
    """The replica for which `experimental_distribute_values_from_function` makes a value.

    Args:
      replica_id_in_sync_group: the replica's number among all replicas.
      num_replicas_in_sync: the number of all replicas.

    Source: `tf.distribute.experimental.ValueContext`.
    """

    __slots__ = ("num_replicas_in_sync", "replica_id_in_sync_group")

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"ValueContext(replica id {self.replica_id_in_sync_group}, total: {self.num_replicas_in_sync})"


# ---- How the code of one replica works with the other replicas: `merge_call`, `all_reduce`, `all_gather`


class ReplicaContext:
    """How one replica's code, inside `Strategy.run`, works with the other replicas.

    Args:
      strategy: the strategy that the replica belongs to.
      replica_id_in_sync_group: the replica's number among all replicas.

    >>> import distinput as di
    >>> import numpy as np
    >>> def step():
    ...     context = di.distribute.get_replica_context()
    ...     return context.all_reduce("SUM", np.arange(2) + context.replica_id_in_sync_group)
    >>> di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).run(step)
    PerReplica:{
      0: array([1, 3]),
      1: array([1, 3])
    }

    Source: `tf.distribute.ReplicaContext`.
    """

    __slots__ = ("_entered", "_given", "_id", "_local", "_meeting", "_strategy")

    def __init__(
        self,
        strategy: Any,
        replica_id_in_sync_group: int,
        meeting: Rendezvous | None = None,
        local: int = 0,
        given: Any = None,
    ) -> None:
        self._strategy, self._id, self._meeting, self._local = strategy, replica_id_in_sync_group, meeting, local
        self._entered: list[Mode] = []
        self._given = given  # the arguments of the run, with those of all replicas

    @property
    def strategy(self) -> Any:
        """The `Strategy` whose replica this is."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """The replica's number among all replicas, from 0."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas over all workers."""
        return int(self._strategy.num_replicas_in_sync)

    @property
    def devices(self) -> tuple[str]:
        """The device of this replica."""
        return (self._strategy._replicas.devices.local[self._local],)

    @property
    def row_mask(self) -> Any:
        """True for the rows of this replica's arguments that are data: a vector with a value for each row.

        It matters to functions that `TPUStrategy` compiles: where a replica has fewer rows than others, its arrays get
        added rows, for which this is false. A function that sums over rows only where it is true may be used for all
        steps of an epoch. Everywhere else each row is data.

        Raises:
          RuntimeError: the arguments of `run` have no rows, or different numbers of rows.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> uneven = di.distribute.PerReplica([np.array([1, 2, 3]), np.array([4])])
        >>> strategy.run(lambda x: di.distribute.get_replica_context().row_mask, args=(uneven,))
        PerReplica:{
          0: array([ True,  True,  True]),
          1: array([ True])
        }
        """
        mask = np.ones(rows_of(self._given, self._local), bool)
        on_devices = self._strategy._reducer.arrays is not None
        return self._strategy._replicas.devices.put(mask, self._local, owned=True) if on_devices else mask

    def __enter__(self) -> Self:
        mode = Mode(self._strategy, self)
        self._entered.append(mode)
        modes.stack.append(mode)
        return self

    def __exit__(self, *_: object) -> None:
        _leave(self._entered)

    def __repr__(self) -> str:
        return f"ReplicaContext(replica {self._id} of {self.num_replicas_in_sync})"

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Meet the other replicas: once all are here, `merge_fn(strategy, *args, **kwargs)` runs once for all of them.

        Args:
          merge_fn: called in cross-replica context, on the thread of replica 0, with the arguments of all replicas
            grouped into distributed values. Replica 0's function is the one called. Python numbers are grouped too; one that
            is the same on all replicas, such as a flag, can be used as the number that it is.
          args: this replica's arguments.
          kwargs: this replica's named arguments.

        Returns:
          This replica's part of the result of `merge_fn`.

        Raises:
          RuntimeError: this is not the context of the running code.
          AbortedError: another replica failed or ended, so the replicas can never meet.

        Source: `tf.distribute.ReplicaContext.merge_call`.
        """
        self._require_current()
        strategy = self._strategy

        def merge(given: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> Any:
            length = _shared_length([a for a, _ in given])
            merged = [regroup([a[i] for a, _ in given], wrap=merged_values) for i in range(length)]
            named = regroup([k for _, k in given], wrap=merged_values)
            with Mode(strategy, None):
                return merge_fn(strategy, *merged, **named)

        mine = (tuple(args), dict(kwargs or {}))
        what = f"merge_call of {getattr(merge_fn, '__qualname__', type(merge_fn).__name__)}"
        return select_replica(self._local, self._meet(what, "", mine, merge))

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None, *, name: str = "") -> Any:
        """The sum or mean of every leaf over all replicas; each replica gets its own copy, on its device.

        Args:
          reduce_op: "SUM", "MEAN" or a `ReduceOp`.
          value: a nest of arrays or numbers, of the same structure, shapes and dtypes on every replica. Of `IndexedSlices`
            the result has the rows of all replicas, one after the other.
          options: handed to the strategy's `cross_device_ops`; ignored without them.
          name: a name for the call, the same on every replica. The replicas compare it instead of the call site.

        Raises:
          Mismatch: the replicas did not make the same call, or made it at different places of the program.
          ValueError: an unknown reduce_op.
          AssertionError: the structures differ.
          InvalidArgumentError: shapes or dtypes differ, or a leaf is not numeric.

        Source: `tf.distribute.ReplicaContext.all_reduce`.
        """
        op = ReduceOp.of(reduce_op)
        if self._strategy.is_default:
            return value
        reducer = self._strategy._reducer

        def combine(given: Leaves) -> list[Any]:
            arrays = [(parts, call) for parts, call in given if not has_slices(parts)]
            made = iter(reducer.reduce_each(op, arrays, options) if arrays else ())
            return [
                reduce_slices(reducer, op, parts, None, call) if has_slices(parts) else next(made)
                for parts, call in given
            ]

        return self._all(value, f"all_reduce {op.name}", name, combine)

    def all_gather(self, value: Any, axis: int, options: Any = None, *, name: str = "") -> Any:
        """The values of all replicas, one after the other along `axis`; each replica gets its own copy, on its device.

        Args:
          value: a nest of arrays, of the same structure on every replica; sizes may differ along `axis`.
          axis: where to concatenate; it may be negative.
          options: ignored in one process.
          name: as in `all_reduce`.

        Raises:
          Mismatch: the replicas did not make the same call, or made it at different places of the program.
          AssertionError: the structures differ.
          InvalidArgumentError: scalars, an axis out of range, or dtypes or other dimensions that differ.
          NotImplementedError: a leaf is an `IndexedSlices`.

        Source: `tf.distribute.ReplicaContext.all_gather`.
        """
        if has_slices(replica_leaves(value)[1]):
            refuse_gather("all_gather")
        if self._strategy.is_default:
            return value
        reducer = self._strategy._reducer

        def combine(given: Leaves) -> list[Any]:
            return [gather_values(reducer, parts, axis, call) for parts, call in given]

        return self._all(value, f"all_gather, axis={axis}", name, combine)

    def _aggregate(self, aggregation: Any, value: Any, apply: Callable[[Any], Any] | None = None) -> Any:
        """The aggregate of the values that all replicas write to a variable.

        Args:
          aggregation: the `VariableAggregation` SUM, MEAN or ONLY_FIRST_REPLICA.
          value: this replica's.
          apply: called once with the aggregate while all replicas wait.

        Raises:
          ValueError: a sum of a plain number that is the same on all replicas.

        Source: the writes of distributed variables in replica context.
        """
        self._require_current()
        strategy = self._strategy

        def merge(given: Sequence[Any]) -> Any:
            with Mode(strategy, None):
                total = part("aggregate")(strategy._reducer, strategy._replicas, aggregation, given)
                if apply is not None:
                    apply(total)
            return total

        return self._meet(f"write with aggregation {aggregation.name}", "", value, merge)

    def _meet(self, what: str, name: str, mine: Any, merge: Callable[[Sequence[Any]], Any]) -> Any:
        """The result of `merge` of the values of all replicas of this process."""
        if self._meeting is None:
            return merge([mine])
        return self._meeting.meet(self._local, Arrival.here(what, name), mine, merge)

    def _all(self, value: Any, what: str, name: str, combine: Callable[[Leaves], list[Any]]) -> Any:
        """Apply `combine` to the leaves of all replicas; the nest of results, copied for this replica."""
        self._require_current()
        structure, leaves = replica_leaves(value)
        call = what.partition(" ")[0].rstrip(",")
        refuse_sparse_values(call, structure)
        leaves = [leaf.value() if is_distributed(leaf) and leaf.passed_whole else leaf for leaf in leaves]

        def merge(given: Sequence[tuple[Any, list[Any]]]) -> list[Any]:
            for i, (other, _) in enumerate(given):
                if other != given[0][0]:
                    raise AssertionError(
                        "all_reduce and all_gather: all replicas must give the same structure (len(v) == len(v0), the "
                        f"same keys), got {given[0][0]} on replica 0 and {other} on replica {i}"
                    )
            calls = [ReplicaCall(f"{call} of {path}:" if path else call, name) for path in structure.paths]
            return combine(list(zip(zip(*[parts for _, parts in given], strict=True), calls, strict=True)))

        made = self._meet(what, name, (structure, leaves), merge)
        # Replicas run at the same time and may modify their results, so each of them gets a copy of the shared arrays.
        if self._strategy._replicas.devices.host_memory:
            return structure.build([part.copy() if is_ragged(part) else _each(part, _copied) for part in made])
        own_copy = self._strategy._reducer.own_copy
        return structure.build([_each(part, lambda array: own_copy(array, self._local)) for part in made])

    def _require_current(self) -> None:
        stack = modes.stack
        current = stack[-1].replica if stack else outside.replica
        if current is self:
            return
        if current is None and stack:
            raise RuntimeError(
                "Need to be inside replica context: this is cross-replica context, where no single replica runs"
            )
        if (stack[-1] if stack else outside).strategy is not self._strategy:
            raise RuntimeError(
                "Mismatching tf.distribute.Strategy: the context belongs to another strategy than the running code; "
                "call get_replica_context() inside the function given to run"
            )
        raise RuntimeError("Mismatching ReplicaContext: the context belongs to another replica or another run")


def _each(part: Any, copy: Callable[[Any], Any]) -> Any:
    """A copy of an array, or of each array of slices."""
    return part.map(copy) if isinstance(part, IndexedSlices) else copy(part)


def _copied(array: Any) -> Any:
    return np.array(array)[()]


def _shared_length(given: Sequence[tuple[Any, ...]]) -> int:
    lengths = {len(args) for args in given}
    if len(lengths) > 1:
        raise AssertionError(
            f"merge_call: all replicas must give as many arguments (len(v) == len(v0)), got {sorted(lengths)}"
        )
    return lengths.pop()


# ----------------------------------------------------------------------------
# Runs a function on every replica of this process at the same time.
# ----------------------------------------------------------------------------


def run_on_replicas(
    strategy: object, replicas: Replicas, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Run a function on every replica; see `Strategy.run`.

    Args:
      strategy: the strategy that is current meanwhile.
      replicas: its replicas.
      fn: the function to call.
      given: the positional arguments, with those of all replicas.
      named: the named arguments.
    """
    count, first = replicas.count, replicas.first
    spread = any(map(has_distributed, given))
    spread_named = any(map(has_distributed, named.values()))
    meeting = Rendezvous(count)

    arguments = given, named

    def replica(index: int) -> Any:
        stack = modes.stack
        mode = Mode(strategy, ReplicaContext(strategy, first + index, meeting, index, arguments))
        stack.append(mode)
        try:
            result = fn(
                *([select_replica(index, x) for x in given] if spread else given),
                **({k: select_replica(index, x) for k, x in named.items()} if spread_named else named),
            )
        except BaseException as error:  # raised again once all have ended
            meeting.failed(index, error)
            if index == 0 and isinstance(error, KeyboardInterrupt):
                raise  # at once, since the others may sleep for long
            return None
        finally:
            stack.remove(mode)
        meeting.ended(index)
        return result

    try:
        results = replicas.devices.run(replica, [(i,) for i in range(count)])
    except BaseException as error:
        meeting.failed(0, error)  # an interrupt while waiting: release the replicas that wait for each other
        raise
    if meeting.uneven:
        raise RuntimeError(
            "Some replicas made a different number of replica_context().merge_call() calls; every replica must call "
            "merge_call, all_reduce and all_gather equally often"
        )
    if meeting.failures:
        _raise_first(replicas, fn, meeting)
    present = present_in((given, named)) if spread or spread_named else None
    if present is not None:  # results computed from placeholders are not data either
        return marked(regroup(results, always_wrap=count == 1), present)
    if count == 1 or (is_number(results[0]) and _is_literal(getattr(fn, "__code__", None))):
        return results[0]
    return regroup(results)


_NOT_CALLED_AT_ONCE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@lru_cache(maxsize=256)
def _is_literal(code: CodeType | None) -> bool:
    """Whether a function returns one literal on every way through it, which neither data nor replica can change.

    >>> [_is_literal(f.__code__) for f in (lambda x: 5, lambda x: 5 if x else 6, lambda x: x, lambda x: int(x) and 5)]
    [True, False, False, False]
    """
    if code is None or code.co_flags & _NOT_CALLED_AT_ONCE:
        return False
    returned: set[tuple[str, int | None]] = set()
    before: dis.Instruction | None = None
    for each in dis.get_instructions(code):
        if each.opname == "RETURN_CONST":
            returned.add((each.opname, each.arg))
        elif each.opname == "RETURN_VALUE":
            if before is None or before.opname not in ("LOAD_CONST", "LOAD_SMALL_INT") or each.is_jump_target:
                return False
            returned.add((before.opname, before.arg))
        before = each
    return len(returned) == 1


def _raise_first(replicas: Replicas, fn: Callable[..., Any], meeting: Rendezvous) -> None:
    failures, meeting.failures = meeting.failures, []
    index, error = failures[0]
    name = getattr(fn, "__name__", type(fn).__name__)
    number = replicas.first + index
    error.add_note(f"in replica {number} of {replicas.total} ({replicas.devices.local[index]}), run({name})")
    for i, other in failures[1:]:
        error.add_note(f"replica {i} failed too: {type(other).__name__}: {other}")
    try:
        raise error
    finally:
        del error, failures  # a traceback that refers to itself would keep the strategy and its threads
