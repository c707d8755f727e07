# SPDX-License-Identifier: Apache-2.0
"""What `TPUStrategy` does with JAX: it chooses how a run is carried out, and reduces values over devices."""

import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from itertools import count
from math import prod
from operator import index
from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from distinput.distribute.collectives.peers import OpenPeers
from distinput.distribute.core.array_arithmetic import ReduceOp, check_axis
from distinput.distribute.core.contexts import modes, run_on_replicas
from distinput.distribute.core.replica_reducer import GATHER, REDUCE, LocalReducer, ReplicaCall
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.values import DistributedValues, marked, present_in
from distinput.distribute.engines import open_collectives
from distinput.distribute.tpu.arguments import Constant, JaxStore, RunArguments, function_key
from distinput.distribute.tpu.compiled_context import (
    TracedValues,
    current_trace,
    dtypes_of,
    gather_traced,
    reduce_traced,
)
from distinput.distribute.tpu.mesh import REPLICA, DeviceValues, MeshDevices, ReplicaMesh, in_turn
from distinput.distribute.tpu.program import Program, trace_function
from distinput.distribute.tpu.row_padding import padded_results
from distinput.distribute.tpu.strategy import RunCounts
from distinput.distribute.variables.store import Store
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.tpu.device_assignment import DeviceAssignment
from distinput.tpu.system import system_devices
from distinput.values.leaves import STRING
from distinput.values.nest import map_leaves

# ----------------------------------------------------------------------------
# `reduce` and `gather` of values that are one array over all devices, computed there.
# ----------------------------------------------------------------------------


class DeviceReducer(LocalReducer):
    """Computes with parts that stand for arrays while a function is traced; with arrays, as on the host.

    Args:
      devices: those of this process's replicas; None if there is no context to copy results for.
      alone: False if other processes have replicas too, whose parts are not at hand.
    """

    def __init__(self, devices: Any = None, *, alone: bool = True) -> None:
        super().__init__(devices)
        self.arrays = None  # what compiled programs return is added as one array; the rest is taken to the host
        self._alone = alone

    def reduce(
        self, op: ReduceOp, parts: Sequence[Any], axis: Any, call: ReplicaCall = REDUCE, *, deterministic: bool = False
    ) -> Any:
        """The sum or mean over all replicas; see `LocalReducer.reduce`."""
        if not any(isinstance(part, jax.core.Tracer) for part in parts):
            self._check("reduce")
            return super().reduce(op, parts, axis, call, deterministic=deterministic)
        arrays = [jnp.asarray(part) for part in parts]
        axes = [check_axis(axis, array.ndim) for array in arrays]
        items = sum([prod([array.shape[a] for a in over]) for array, over in zip(arrays, axes, strict=True)])
        within, dtype = dtypes_of(op, arrays[0].dtype)
        sums = [array.sum(over, dtype=within) for array, over in zip(arrays, axes, strict=True)]
        total = sum(sums[1:], sums[0])
        return total if op is ReduceOp.SUM else (total / jnp.asarray(items, within)).astype(dtype)

    def gather(self, parts: Sequence[Any], axis: Any, call: ReplicaCall = GATHER) -> Any:
        """The values of all replicas, one after the other; see `LocalReducer.gather`."""
        if not any(isinstance(part, jax.core.Tracer) for part in parts):
            self._check("gather")
            return super().gather(parts, axis, call)
        return jnp.concatenate([jnp.asarray(part) for part in parts], axis)

    def _check(self, what: str) -> None:
        """Check that all parts are at hand.

        Raises:
          UnimplementedError: other processes have some of them.
        """
        if not self._alone:
            raise UnimplementedError(
                f"{what}: this would need the values of replicas in other processes on the host; compute it inside `run`, with "
                f"all_{what}, or {what} floats that `run` returned along their first axis"
            )


def reduce_on_devices(mesh: ReplicaMesh, op: ReduceOp, value: Any, axis: Any) -> Any:
    """The sum or mean over all replicas, on every device; None for what the host has to compute.

    The host computes what has rows that do not count, and means of integers, which are float64 as everywhere.

    Args:
      mesh: the devices.
      op: SUM or MEAN.
      value: any value.
      axis: as in `Strategy.reduce`.
    """
    if not isinstance(value, DeviceValues) or not value.is_on(mesh) or value.rows is not None:
        return None
    dtype = value.whole.dtype
    if not jnp.issubdtype(dtype, jnp.number) or (op is ReduceOp.MEAN and jnp.issubdtype(dtype, jnp.integer)):
        return None
    axes = check_axis(axis, len(value.part_shape))
    return in_turn(mesh, lambda: _reduction(mesh, op, axes, value.scalar)(value.whole))


@lru_cache(maxsize=256)
def _reduction(mesh: ReplicaMesh, op: ReduceOp, axes: tuple[int, ...], scalar: bool) -> Any:
    replicas = mesh.replicas

    def total(whole: Any) -> Any:
        parts = whole if scalar else whole.reshape(replicas, whole.shape[0] // replicas, *whole.shape[1:])
        over = (0, *[axis + 1 for axis in axes])
        within, dtype = dtypes_of(op, parts.dtype)
        summed = parts.sum(over, dtype=within)
        if op is ReduceOp.SUM:
            return summed
        return (summed / jnp.asarray(prod([parts.shape[axis] for axis in over]), within)).astype(dtype)

    return jax.jit(total, out_shardings=mesh.replicated)


def gather_on_devices(mesh: ReplicaMesh, value: Any, axis: Any) -> Any:
    """The components one after the other along the first axis, as one array over all devices; None for other values."""
    if not isinstance(value, DeviceValues) or not value.is_on(mesh) or value.rows is not None or value.scalar:
        return None
    return value.whole if axis in (0, -value.whole.ndim) else None


# ----------------------------------------------------------------------------
# Chooses how a run is carried out: by a compiled program, padded or not, or replica by replica.
# ----------------------------------------------------------------------------


_PROGRAMS = 256
"""Programs kept; the one that was used longest ago is dropped first."""
_MANY = 16
"""Programs of one function that differ in constants alone before a warning says so."""


class Runner:
    """Runs functions on the replicas of one strategy.

    A program is made for each function, structure, shape, dtype and constant of the arguments. Replicas with different
    numbers of rows use it too if it is proved that rows that are added change nothing; otherwise, each replica runs the
    function itself, without a program.

    Args:
      strategy: the strategy.
      mesh: its devices.
    """

    def __init__(self, strategy: Any, mesh: ReplicaMesh) -> None:
        self._strategy, self._mesh = strategy, mesh
        self._lock = RLock()
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._sizes: dict[Any, list[int]] = {}
        self._proofs: dict[Any, tuple[bool, ...] | None] = {}
        self._variants: Counter[Any] = Counter()
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> RunCounts:
        """What the runs so far took."""
        return RunCounts(**self._counts)

    def run(self, fn: Callable[..., Any], arguments: RunArguments) -> tuple[Any] | None:
        """The result of a program, in a tuple; None if no program can run these arguments, so each replica must."""
        with self._lock:
            which = (function_key(fn), bool(jax.config.jax_enable_x64))
            found = self._even(fn, which, arguments) if arguments.even else self._uneven(fn, which, arguments)
            if found is None:
                self._counts["uncompiled"] += 1
                return None
            program, data_rows, proof = found
            if not program.fits:  # the shape of a variable is part of all programs and proofs
                self._programs.clear()
                self._sizes.clear()
                self._proofs.clear()
                return self.run(fn, arguments)
            result = program.run(arguments, data_rows, proof)
            self._counts["compiled"] += 1
            self._counts["padded"] += data_rows is not None
            return (result,)

    def _even(self, fn: Callable[..., Any], which: Any, arguments: RunArguments) -> Any:
        """The program for these shapes; or a program for more rows, if that exists and gives the same."""
        key = which, arguments.key(None)
        program = self._programs.get(key)
        if program is None and arguments.rows is not None and arguments.rows[0]:
            found = self._larger(fn, which, arguments, arguments.rows)
            if found is not None:
                return found
        rows = None if arguments.rows is None else arguments.rows[0]
        return self._program(fn, key, which, arguments, rows), None, None

    def _uneven(self, fn: Callable[..., Any], which: Any, arguments: RunArguments) -> Any:
        """A program for at least as many rows as the largest part has, if it gives the same; else None."""
        rows = arguments.rows
        if rows is None or not any(rows):
            return None
        found = self._larger(fn, which, arguments, rows)
        if found is not None:
            return found
        widest = max(rows)
        if self._sizes.get((which, arguments.key(-1))):
            return None  # a program exists, and must not be used
        proof = self._proof(fn, which, arguments, widest)
        if proof is None:
            return None
        return self._program(fn, (which, arguments.key(widest)), which, arguments, widest), rows, proof

    def _larger(self, fn: Callable[..., Any], which: Any, arguments: RunArguments, rows: tuple[int, ...]) -> Any:
        least = max(rows)
        for size in sorted(self._sizes.get((which, arguments.key(-1)), ())):
            program = self._programs.get((which, arguments.key(size)))
            if size >= least and program is not None:
                proof = self._proof(fn, which, arguments, size)
                if proof is not None:
                    self._programs.move_to_end((which, arguments.key(size)))
                    return program, rows, proof
        return None

    def _proof(self, fn: Callable[..., Any], which: Any, arguments: RunArguments, rows: int) -> tuple[bool, ...] | None:
        """What may be kept of the results of parts that are padded to `rows`; None if padding might change them."""
        assert arguments.rows is not None
        key = which, arguments.key(rows)
        program = self._programs.get(key)
        traced = None if program is None else program.traced
        found: list[tuple[bool, ...] | None] = []
        for data_rows in sorted({n for n in arguments.rows if n != rows}):
            if (key, data_rows) not in self._proofs:
                if len(self._proofs) > _PROGRAMS:
                    self._proofs.clear()
                self._proofs[key, data_rows] = padded_results(
                    self._strategy, self._mesh, fn, arguments, rows, data_rows, traced
                )
            found.append(self._proofs[key, data_rows])
        return found[0] if all(proof is not None and proof == found[0] for proof in found) else None

    def _program(
        self, fn: Callable[..., Any], key: Any, which: Any, arguments: RunArguments, rows: int | None
    ) -> Program:
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
            return found
        traced = trace_function(self._strategy, self._mesh, fn, arguments, rows)
        program = self._programs[key] = Program(traced, arguments, self._mesh, rows)
        self._counts["programs"] += 1
        program.family = which, arguments.key(-1)
        if rows is not None:
            self._sizes.setdefault(program.family, []).append(rows)
        if len(self._programs) > _PROGRAMS:
            _, oldest = self._programs.popitem(last=False)
            self._forget(oldest)
        self._warn_of_constants(fn, arguments)
        return program

    def _forget(self, program: Program) -> None:
        """Forget the size of a program that was dropped, and with it what tells the function apart."""
        sizes = self._sizes.get(program.family, [])
        if program.rows in sizes:
            sizes.remove(program.rows)
        if not sizes:
            self._sizes.pop(program.family, None)

    def _warn_of_constants(self, fn: Callable[..., Any], arguments: RunArguments) -> None:
        code = getattr(fn, "__code__", fn)
        self._variants[code] += 1
        if self._variants[code] != _MANY:
            return
        constants = [repr(leaf.value) for leaf in arguments.leaves if isinstance(leaf, Constant)][:4]
        name = getattr(fn, "__name__", type(fn).__name__)
        warnings.warn(
            f"run: {name} has been compiled {_MANY} times. Python numbers among its arguments and in its closure are part of "
            f"the program ({', '.join(constants) or 'none among the arguments'}), so each new value compiles it again: give "
            "them as arrays, such as np.float32(x)",
            stacklevel=4,
        )


# ----------------------------------------------------------------------------
# What `TPUStrategy` does with JAX. The strategy itself does not import it, so that it can be named without it.
# ----------------------------------------------------------------------------


_groups = count()  # all processes make their strategies in the same order


class Engine:
    """Runs, reductions and variables of one strategy on JAX devices.

    Args:
      strategy: the strategy.
      mesh: its devices.
      compile: False runs each replica eagerly.
      spmd: whether the compiler divides the work of a replica among its cores.
    """

    def __init__(self, strategy: Any, mesh: ReplicaMesh, *, compile: bool, spmd: bool) -> None:
        self._strategy, self.mesh, self._compile, self._spmd = strategy, mesh, compile, spmd
        self.runner = Runner(strategy, mesh)
        self._consumers: Replicas | None = None

    @property
    def alone(self) -> bool:
        """True if all replicas run in this process."""
        return len(self.mesh.local) == self.mesh.replicas

    def replicas(self) -> Replicas:
        """The replicas on the devices of this process."""
        mesh = self.mesh
        return Replicas(MeshDevices(mesh, mesh.labels), None, len(mesh.local), mesh.local[0], mesh.replicas)

    def consumers(self, replicas: Replicas) -> Replicas:
        """The replicas as the input sees them: where they are in several processes, each process reads a part of the data.

        Every process calls this, in the same order for its strategies.

        Raises:
          ValueError: the replicas of a process are not consecutive.
          CollectiveError: the processes did not meet.
        """
        mesh = self.mesh
        if len(mesh.local) == mesh.replicas:
            return replicas
        if self._consumers is None:
            owners = [row[0].process_index for row in mesh.devices]
            if owners != sorted(owners) or len(set(owners)) < jax.process_count():
                raise ValueError(
                    "TPUStrategy: the input of several processes needs replicas on each of them, in the order of processes; "
                    f"the replicas are on processes {owners}; assign devices in that order"
                )
            group = open_collectives("jax", name=f"tpu-{next(_groups)}")
            self._consumers = Replicas.of(replicas.devices, OpenPeers(group, group.dup("control"), len(mesh.local)))
        return self._consumers

    def run(self, replicas: Replicas, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run a function on every replica; see `TPUStrategy.run`."""
        arguments = RunArguments.of(given, named, self.mesh)
        if self._compile:
            found = self.runner.run(fn, arguments)
            if found is not None:
                present = present_in((given, named))
                return found[0] if present is None else marked(found[0], present)

        if not self.alone:
            raise UnimplementedError(
                "run: replicas of several processes run compiled programs alone, so all need as many rows; distribute the data "
                'with InputOptions(tail="pad") or tail="drop", and with compile=True'
            )

        @wraps(fn, updated=())
        def on_devices(*_: Any, **__: Any) -> Any:
            local = modes.stack[-1].replica._local
            placed, names = arguments.select(local, self.mesh.devices[self.mesh.local[local], 0])
            return fn(*placed, **names)

        return run_on_replicas(self._strategy, replicas, on_devices, given, named)

    def reduce(self, op: ReduceOp, leaf: Any, axis: Any) -> Any:
        """The sum or mean of a value of all replicas; None if the host has to compute it."""
        if current_trace(self.mesh) is not None and (isinstance(leaf, TracedValues) or axis is not None):
            return reduce_traced(op, leaf, axis, "reduce")
        return reduce_on_devices(self.mesh, op, leaf, axis)

    def gather(self, leaf: Any, axis: Any) -> Any:
        """The components of a value one after the other; None if the host has to put them together."""
        if current_trace(self.mesh) is not None:
            return gather_traced(leaf, axis, "gather") if isinstance(leaf, TracedValues) else None
        return gather_on_devices(self.mesh, leaf, axis)

    def open_store(self, value: Any, name: str) -> Store:
        """Where the copies of a variable are kept.

        Raises:
          InvalidArgumentError: text.
        """
        if value.dtype == STRING:
            raise InvalidArgumentError(
                f"TPUStrategy: a variable must hold numbers to be on a device, got text for {name}; create it outside of the "
                "scope"
            )
        return JaxStore(value, self.mesh)

    def read_other(self, store: Store, copy: int) -> Any:
        """The value of a variable that was created outside of all scopes: an input while a function is traced."""
        trace = current_trace(self.mesh)
        return store.read(copy) if trace is None else trace.host(store, copy)

    def check_write_other(self, name: str) -> None:
        """Check that such a variable may be written.

        Raises:
          RuntimeError: a function is traced.
        """
        if current_trace(self.mesh) is not None:
            raise RuntimeError(
                f"run: variable {name} was created outside of the strategy's scope, so a compiled program can read it, but not "
                "write it; create it inside `with strategy.scope()`"
            )

    # ---- the logical devices of a replica: several cores that share its work
    #
    # In a compiled run an annotation becomes a constraint on how the compiler divides an array among the cores of a replica.
    # Values never change: outside of a run, and where functions run eagerly, an annotation is checked and the value returned.

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Say that one core of the replica computes with this array.

        All cores of a replica run the same program here, so each of them holds and computes the array. This checks the
        number of the core and returns the same values.

        Args:
          tensor: the array, or a nest of arrays.
          logical_device_id: the number of a core of the replica.

        Raises:
          ValueError: there is no such core, or the strategy was made with `experimental_spmd_xla_partitioning=True`.

        Source: `tf.distribute.TPUStrategy.experimental_assign_to_logical_device`.
        """
        if self._spmd:
            raise ValueError(
                "Cannot assign a tensor to a logical device in SPMD mode. To disable SPMD, Please construct the TPUStrategy "
                "with `experimental_spmd_xla_partitioning=False`"
            )
        cores = self.mesh.cores
        if not 0 <= index(logical_device_id) < cores:
            raise ValueError(
                "`logical_core_id` to assign must be lower then total number of logical devices per replica. Received "
                f"logical device id {logical_device_id} but there are only total of {cores} logical devices in replica."
            )
        return self._everywhere("experimental_assign_to_logical_device", tensor)

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Sequence[int]) -> Any:
        """Split an array among the cores of the replica.

        Args:
          tensor: the array, `[d0, d1, ...]`.
          partition_dimensions: into how many equal parts each dimension is split; their product is the number of cores of
            a replica.

        Raises:
          TypeError: a number of parts is not an integer.
          ValueError: not one number for each dimension, one that does not divide its dimension, or another product.

        >>> import numpy as np
        >>> from distinput.distribute.tpu.mesh import ReplicaMesh
        >>> mesh = ReplicaMesh.of(jax.devices(), cores_per_replica=1)
        >>> engine = Engine(None, mesh, compile=False, spmd=False)
        >>> engine.experimental_split_to_logical_devices(np.zeros((2, 4)), [1, 1]).shape
        (2, 4)

        Source: `tf.distribute.TPUStrategy.experimental_split_to_logical_devices`.
        """
        _check_single("experimental_split_to_logical_devices", tensor)
        shape, parts = np.shape(tensor), tuple([index(part) for part in partition_dimensions])
        if len(shape) != len(parts):
            raise ValueError(
                f"Length of `partition_dimensions` must equal to the rank of `tensor.shape` ({len(shape)}). Received "
                f"len(partition_dimensions)={len(parts)}."
            )
        for i, (size, part) in enumerate(zip(shape, parts, strict=True)):
            if part < 1:
                raise ValueError(f"`partition_dimensions[{i}]` must be at least 1. Received: {part}.")
            if size % part:
                raise ValueError(
                    f"Tensor shape at `partition_dimensions[{i}]` must be divisible by corresponding value specified by "
                    f"`partition_dimensions` ({part}). Received: {size}."
                )
        cores, product = self.mesh.cores, int(np.prod(parts, dtype=np.int64))
        if product != cores:
            raise ValueError(
                f"The product of `partition_dimensions` should be the same as the number of logical devices (={cores}). "
                f"Received `partition_dimensions`={list(parts)},and their product is {product}."
            )
        return _constrained(self.mesh, tensor, _spec(self.mesh, parts))

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Let every core of the replica hold the whole array.

        Args:
          tensor: the array, or a nest of arrays.

        Source: `tf.distribute.TPUStrategy.experimental_replicate_to_logical_devices`.
        """
        return self._everywhere("experimental_replicate_to_logical_devices", tensor)

    def _everywhere(self, what: str, tensor: Any) -> Any:
        def leaf(value: Any) -> Any:
            _check_single(what, value)
            return _constrained(self.mesh, value, PartitionSpec())

        return map_leaves(leaf, tensor, lists=True)


def _check_single(what: str, value: Any) -> None:
    if isinstance(value, DistributedValues) and not value.passed_whole:
        raise TypeError(
            f"{what}: needs the array of one replica, got a {type(value).__name__}; call it inside the function given to run"
        )


def _constrained(mesh: ReplicaMesh, value: Any, spec: PartitionSpec) -> Any:
    """The value; while it is traced, with a constraint on how the cores of a replica hold it."""
    if mesh.cores == 1 or not isinstance(value, jax.core.Tracer):
        return value
    # Replicas are apart from each other inside of the program; only cores are left to the compiler.
    inside = mesh.mesh.abstract_mesh.update_axis_types({REPLICA: AxisType.Manual})
    with jax.sharding.use_abstract_mesh(inside):
        return jax.lax.with_sharding_constraint(value, spec)


def _spec(mesh: ReplicaMesh, parts: Sequence[int]) -> PartitionSpec:
    """Which axes of the mesh split each dimension. Sizes of axes are prime, so those that a number needs are there."""
    left = [(name, size) for name, size in mesh.core_axes.items() if size > 1]
    axes: list[tuple[str, ...]] = []
    for part in parts:
        mine = []
        for name, size in list(left):
            if part % size == 0:
                mine.append(name)
                left.remove((name, size))
                part //= size
        axes.append(tuple(mine))
    return PartitionSpec(*[names or None for names in axes])


def mesh_of(assignment: Any, devices: Sequence[Any] | None) -> ReplicaMesh:
    """The mesh of an assignment, of devices, or of all devices.

    Raises:
      ValueError: both are given, or they are not a mesh.
      TypeError: no assignment.
    """
    if devices is not None:
        if assignment is not None:
            raise ValueError("TPUStrategy: give either experimental_device_assignment or devices, got both")
        return ReplicaMesh.of(devices)
    if assignment is None:
        return ReplicaMesh.of()
    if isinstance(assignment, ReplicaMesh):
        return assignment
    if isinstance(assignment, DeviceAssignment):
        return ReplicaMesh(system_devices(assignment))
    raise TypeError(
        "TPUStrategy: experimental_device_assignment must be a DeviceAssignment, such as DeviceAssignment.build makes, got "
        f"{type(assignment).__name__}"
    )
