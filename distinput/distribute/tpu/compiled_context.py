# SPDX-License-Identifier: Apache-2.0
"""The replica context of a compiled program: collectives between devices; and the trace of what it reads and writes."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np

from distinput.distribute.core.array_arithmetic import ReduceOp, check_axis, check_gather
from distinput.distribute.core.contexts import Mode, ReplicaContext, modes
from distinput.distribute.core.replica_reducer import IndexedSlices, has_slices, refuse_gather
from distinput.distribute.core.values import DistributedValues, PerReplica, is_distributed, replica_leaves
from distinput.distribute.tpu.mesh import REPLICA, ReplicaMesh, as_device_array
from distinput.distribute.variables.kinds import ResourceVariable, aggregate
from distinput.distribute.variables.policy import VariableAggregation
from distinput.distribute.variables.store import UPDATES
from distinput.errors import InvalidArgumentError
from distinput.values.nest import map_leaves

# ----------------------------------------------------------------------------
# The trace of a replica function: which variables it reads and writes, and their values meanwhile.
# ----------------------------------------------------------------------------


class _Current(threading.local):
    trace: "VariableTrace | None" = None


_current = _Current()


def current_trace(mesh: ReplicaMesh) -> "VariableTrace | None":
    """The trace that this thread makes for these devices."""
    trace = _current.trace
    return trace if trace is not None and trace.mesh is mesh else None


class VariableTrace:
    """What happens to variables while a replica function is traced. Nothing of it reaches their stores.

    Args:
      mesh: the devices that the program is for.
      rows: the rows of each replica's part, padding included; None if there is no single number of them.
      data_rows: how many of them are data, as the program will be told.

    The value of a variable is made in the outermost trace, so it may be used in every function that is traced inside:
    the body of a loop, a function to differentiate. A write must be made there too.
    """

    def __init__(self, mesh: ReplicaMesh, rows: int | None, data_rows: Any) -> None:
        self.mesh, self.rows, self.data_rows = mesh, rows, data_rows
        self.stores: list[Any] = []
        self.stand_ins: list[Any] = []
        self.hosts: list[tuple[Any, int]] = []
        self.host_stand_ins: list[Any] = []
        self.written: list[Any] = []
        self.shared: list[Any] = []  # what merge functions returned for all replicas
        self._values: dict[int, Any] = {}
        self._hosted: dict[tuple[int, int], Any] = {}
        with jax.extend.core.take_current_trace() as outermost:
            self._outermost = outermost

    @contextmanager
    def active(self) -> Iterator[None]:
        """Stores of this mesh ask this trace meanwhile."""
        before, _current.trace = _current.trace, self
        try:
            yield
        finally:
            _current.trace = before

    def own(self, store: Any) -> Any:
        """The value of the running replica's copy."""
        found = self._values.get(id(store))
        if found is None:
            stand_in = store.stand_in()
            self.stores.append(store)
            self.stand_ins.append(stand_in)
            with jax.extend.core.set_current_trace(self._outermost):
                found = self._values[id(store)] = jax.lax.squeeze(stand_in, (0,))
        return found

    def read(self, store: Any, copy: int) -> Any:
        """The value of a copy; in replica context and while copies are updated one by one, the replica's own."""
        own = self.own(store)
        mode = modes.stack[-1]
        if mode.replica is not None or mode.copy is not None:
            return own
        with jax.extend.core.set_current_trace(self._outermost):
            return broadcast_from(copy, own)

    def update(self, store: Any, copy: int, kind: str, args: tuple[Any, ...]) -> Any:
        """Change a copy; see `Store.update`."""
        with jax.extend.core.take_current_trace() as here:
            pass
        if here is not self._outermost:
            raise RuntimeError(
                "run: a variable cannot be written inside a function that JAX traces itself, such as the body of "
                "jax.lax.scan or a function given to jax.grad; return the value, and write it outside"
            )
        before = self.own(store)
        value = jnp.asarray(UPDATES[kind](before, *args), store.dtype)
        if value.shape != before.shape:
            raise InvalidArgumentError(
                f"run: a compiled program cannot change the shape of a variable, got {list(value.shape)} for "
                f"{list(before.shape)}; write it outside of run, or make the strategy with compile=False"
            )
        if modes.stack[-1].replica is None:
            value = jnp.where(jax.lax.axis_index(REPLICA) == copy, value, before)
        self._values[id(store)] = value
        if not any(store is other for other in self.written):
            self.written.append(store)
        return value

    def host(self, store: Any, copy: int) -> Any:
        """The value of a variable in host memory: an input of the program, since it may change between runs."""
        key = id(store), copy
        found = self._hosted.get(key)
        if found is None:
            with jax.core.eval_context():
                stand_in = jnp.asarray(as_device_array(store.read(copy), "a variable"))[None]
            self.hosts.append((store, copy))
            self.host_stand_ins.append(stand_in)
            with jax.extend.core.set_current_trace(self._outermost):
                found = self._hosted[key] = jax.lax.squeeze(stand_in, (0,))
        return found

    def final(self) -> list[Any]:
        """The values of the variables that were written, in the order of `written`."""
        return [self._values[id(store)] for store in self.written]


def broadcast_from(replica: int, value: Any) -> Any:
    """One replica's value, on all replicas."""
    if value.dtype == bool:
        return broadcast_from(replica, value.astype(jnp.int8)).astype(bool)
    chosen = jnp.where(jax.lax.axis_index(REPLICA) == replica, value, jnp.zeros_like(value))
    return jax.lax.psum(chosen, REPLICA)


# ----------------------------------------------------------------------------
# The replica context of a compiled program: collectives between devices take the place of meetings of threads.
# ----------------------------------------------------------------------------


class TracedValues(PerReplica):
    """A value of every replica while a function is traced, as a merge function gets it.

    Args:
      own: what stands for the running replica's component.
      replicas: the number of replicas.
    """

    __slots__ = ("_all", "_replicas", "own")

    def __init__(self, own: Any, replicas: int) -> None:
        self.own, self._replicas = own, replicas
        self._all: tuple[Any, ...] | None = None

    @property
    def values(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The components of all replicas, gathered on every device."""
        if self._all is None:
            gathered = jax.lax.all_gather(self.own, REPLICA)
            self._all = tuple([gathered[i] for i in range(self._replicas)])
        return self._all

    def _of_numbers(self) -> bool:
        return False  # arrays, which need not be gathered to say so


class CompiledReplicaContext(ReplicaContext):
    """The context of a replica function that is traced once for all replicas.

    Args:
      strategy: the strategy that the replicas belong to.
      trace: what the trace finds out.

    Source: `tf.distribute.ReplicaContext`.
    """

    __slots__ = ("_trace",)

    def __init__(self, strategy: Any, trace: VariableTrace) -> None:
        super().__init__(strategy, 0)
        self._trace = trace

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The replica's number among all replicas: an array whose value each device knows when the program runs."""
        return jax.lax.axis_index(REPLICA)

    @property
    def devices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The devices of all replicas of this process, since the program is traced for all of them."""
        devices: tuple[str, ...] = self._strategy.extended.worker_devices
        return devices

    @property
    def row_mask(self) -> Any:
        """True for the rows of this replica's arguments that are data; see `ReplicaContext.row_mask`."""
        trace = self._trace
        if trace.rows is None:
            raise RuntimeError(
                "row_mask: the arguments of run must have rows, and all as many, got arrays without rows or with different "
                "numbers of rows; pass a mask as an argument"
            )
        return distinput_row_mask(trace.data_rows, rows=trace.rows)

    def __repr__(self) -> str:
        return f"ReplicaContext(compiled for {self.num_replicas_in_sync} replicas)"

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Trace `merge_fn(strategy, *args, **kwargs)` in cross-replica context; see `ReplicaContext.merge_call`.

        It gets arrays as distributed values whose components are gathered from all devices when they are used. What it
        may do with them: `reduce`, `gather` and `experimental_local_results` of the strategy, `extended.update`, writes
        of variables, and any function of JAX.
        """
        self._require_current()
        replicas = self._trace.mesh.replicas

        def shared(leaf: Any) -> Any:
            whole = not hasattr(leaf, "dtype") or (is_distributed(leaf) and leaf.passed_whole)  # such as a variable
            return leaf if whole else TracedValues(jnp.asarray(leaf), replicas)

        merged = map_leaves(shared, (tuple(args), dict(kwargs or {})), lists=True)
        with Mode(self._strategy, None):
            structure, leaves = replica_leaves(merge_fn(self._strategy, *merged[0], **merged[1]))
            leaves = [leaf.value() if isinstance(leaf, ResourceVariable) else leaf for leaf in leaves]  # of that copy
        return structure.build([self._own(leaf) for leaf in leaves])

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None, *, name: str = "") -> Any:
        """The sum or mean of every leaf over all replicas; see `ReplicaContext.all_reduce`."""
        self._require_current()
        op = ReduceOp.of(reduce_op)
        structure, leaves = replica_leaves(value)

        def reduced(leaf: Any) -> Any:
            if isinstance(leaf, IndexedSlices):
                return _slices_traced(op, leaf)
            return reduce_traced(op, leaf, None, "all_reduce")

        return structure.build(list(map(reduced, leaves)))

    def all_gather(self, value: Any, axis: int, options: Any = None, *, name: str = "") -> Any:
        """The values of all replicas, one after the other along `axis`; see `ReplicaContext.all_gather`."""
        self._require_current()
        structure, leaves = replica_leaves(value)
        if has_slices(leaves):
            refuse_gather("all_gather")
        return structure.build([gather_traced(leaf, axis, "all_gather") for leaf in leaves])

    def _aggregate(
        self, aggregation: VariableAggregation, value: Any, apply: Callable[[Any], Any] | None = None
    ) -> Any:
        """What the values that all replicas write to a variable make together; see `ReplicaContext._aggregate`."""
        self._require_current()
        first = aggregation is VariableAggregation.ONLY_FIRST_REPLICA
        if isinstance(value, IndexedSlices) and first:
            rows, indices = jnp.asarray(value.values), jnp.asarray(value.indices)
            total: Any = IndexedSlices(broadcast_from(0, rows), broadcast_from(0, indices))
        elif isinstance(value, IndexedSlices) or not hasattr(value, "dtype"):
            # Python values are the same on all replicas.
            strategy = self._strategy
            total = aggregate(strategy._reducer, strategy._replicas, aggregation, [value] * self._trace.mesh.replicas)
        elif first:
            total = broadcast_from(0, jnp.asarray(value))
        else:
            total = reduce_traced(ReduceOp[aggregation.name], value, None, "a write of a variable")
        if apply is not None:
            with Mode(self._strategy, None):
                apply(total)
        return total

    def _own(self, leaf: Any) -> Any:
        """The running replica's component of a result of a merge function."""
        if isinstance(leaf, TracedValues):
            return leaf.own
        if isinstance(leaf, DistributedValues) and not leaf.passed_whole:
            return jnp.stack([jnp.asarray(part) for part in leaf.values])[jax.lax.axis_index(REPLICA)]
        self._trace.shared.append(leaf)  # the same object for all replicas, as in a meeting of threads
        return leaf


@partial(jax.jit, static_argnames="rows")
def distinput_row_mask(data_rows: Any, *, rows: int) -> Any:
    """`[rows]`: true for the first `data_rows`. Compiled, so that a trace recognizes it by its name (`padding_rules.MASK`)."""
    return jax.lax.iota(np.int32, rows) < data_rows


def reduce_traced(op: ReduceOp, value: Any, axis: Any, what: str) -> Any:
    """The sum or mean over all replicas of what stands for each replica's value.

    SUM keeps the dtype. MEAN of integers is a float: float64 where JAX has it, else float32.

    Raises:
      InvalidArgumentError: the value is not numeric.
    """
    own = jnp.asarray(value.own if isinstance(value, TracedValues) else value)
    if own.dtype == bool:
        raise InvalidArgumentError(f"{what}: {op.name} needs numbers, got bool; convert them with astype first")
    axes = check_axis(axis, own.ndim)
    items = prod([own.shape[a] for a in axes])
    within, dtype = dtypes_of(op, own.dtype)
    total = jax.lax.psum(own.astype(within).sum(axes, dtype=within), REPLICA)
    if op is ReduceOp.SUM:
        return total
    return (total / jnp.asarray(items * jax.lax.axis_size(REPLICA), within)).astype(dtype)


def dtypes_of(op: ReduceOp, dtype: Any) -> tuple[Any, Any]:
    """The dtype in which values are added, and that of the result; see `ArrayOps.wide`."""
    if op is ReduceOp.MEAN and jnp.issubdtype(dtype, jnp.integer):
        wide = jnp.dtype(jnp.float64 if jax.config.jax_enable_x64 else jnp.float32)
        return wide, wide
    if op is ReduceOp.MEAN and jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4:
        return jnp.dtype(jnp.float32), dtype
    return dtype, dtype


def gather_traced(value: Any, axis: Any, what: str) -> Any:
    """What stands for each replica's value, one after the other along an axis.

    Raises:
      InvalidArgumentError: a scalar, or an axis out of range.
    """
    own = jnp.asarray(value.own if isinstance(value, TracedValues) else value)
    return jax.lax.all_gather(own, REPLICA, axis=check_gather([own], axis, what=what), tiled=True)


def _slices_traced(op: ReduceOp, part: IndexedSlices) -> IndexedSlices:
    """The rows of all replicas; for a mean, divided by the number of replicas."""
    made = part.map(lambda array: gather_traced(jnp.atleast_1d(jnp.asarray(array)), 0, "all_reduce"))
    if op is ReduceOp.MEAN:
        made.values = made.values / jax.lax.axis_size(REPLICA)
    return made
