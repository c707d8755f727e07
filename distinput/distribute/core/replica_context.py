# SPDX-License-Identifier: Apache-2.0
"""What the code of one replica knows and how it works with the other replicas: `merge_call`, `all_reduce`, `all_gather`."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from distinput.distribute.core.cross_replica import gather_ragged
from distinput.distribute.core.modes import Mode, modes, outside
from distinput.distribute.core.parts import part
from distinput.distribute.core.reduction import ReduceOp
from distinput.distribute.core.rendezvous import Arrival, Rendezvous
from distinput.distribute.core.sliced import IndexedSlices, has_slices, reduce_slices, refuse_gather
from distinput.distribute.core.values import (
    is_distributed,
    merged_values,
    refuse_sparse_values,
    regroup,
    replica_leaves,
    rows_of,
    select_replica,
)
from distinput.values.leaves import is_ragged

__all__ = ["ReplicaContext", "ValueContext"]

# ---- Which replica a value is made for


class ValueContext:
    """Which replica a value is made for.

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
        total: int = self._strategy.num_replicas_in_sync
        return total

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        modes.stack.remove(self._entered.pop())

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

        def combine(given: Sequence[tuple[Sequence[Any], str]]) -> list[Any]:
            arrays = [(parts, call) for parts, call in given if not has_slices(parts)]
            made = iter(reducer.reduce_each(op, arrays, name=name, options=options) if arrays else ())
            return [
                reduce_slices(reducer, op, parts, None, call=call, name=name) if has_slices(parts) else next(made)
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

        def combine(given: Sequence[tuple[Sequence[Any], str]]) -> list[Any]:
            return [
                gather_ragged(reducer, parts, axis, call=call, name=name)
                if any(map(is_ragged, parts))
                else reducer.gather(parts, axis, call=call, name=name)
                for parts, call in given
            ]

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

    def _all(
        self, value: Any, what: str, name: str, combine: Callable[[Sequence[tuple[Sequence[Any], str]]], list[Any]]
    ) -> Any:
        """Apply `combine` to the leaves of all replicas; the nest of results, copied for this replica."""
        self._require_current()
        structure, leaves = replica_leaves(value)
        refuse_sparse_values(what.partition(" ")[0].rstrip(","), structure)
        leaves = [leaf.value() if is_distributed(leaf) and leaf.passed_whole else leaf for leaf in leaves]
        call = what.partition(" ")[0].rstrip(",")

        def merge(given: Sequence[tuple[Any, list[Any]]]) -> list[Any]:
            for i, (other, _) in enumerate(given):
                if other != given[0][0]:
                    raise AssertionError(
                        "all_reduce and all_gather: all replicas must give the same structure (len(v) == len(v0), the "
                        "same "
                        f"keys), got {given[0][0]} on replica 0 and {other} on replica {i}"
                    )
            calls = [f"{call} of {path}:" if path else call for path in structure.paths]
            return combine(list(zip(zip(*[parts for _, parts in given], strict=True), calls, strict=True)))

        mine = (structure, leaves)
        made = self._meet(what, name, mine, merge)
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
