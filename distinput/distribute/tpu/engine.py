# SPDX-License-Identifier: Apache-2.0
"""What `TPUStrategy` does with JAX. The strategy itself does not import it, so that it can be named without it."""

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import count
from operator import index
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from distinput.distribute.collectives.peers import OpenPeers
from distinput.distribute.core.modes import modes
from distinput.distribute.core.reduction import ReduceOp
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.run import run_on_replicas
from distinput.distribute.core.values import DistributedValues, marked, present_in
from distinput.distribute.engines import open_collectives
from distinput.distribute.tpu.arguments import RunArguments
from distinput.distribute.tpu.compiled_context import TracedValues, gather_traced, reduce_traced
from distinput.distribute.tpu.device_values import MeshDevices
from distinput.distribute.tpu.jax_store import JaxStore
from distinput.distribute.tpu.mesh import REPLICA, ReplicaMesh
from distinput.distribute.tpu.reduction import gather_on_devices, reduce_on_devices
from distinput.distribute.tpu.runner import Runner
from distinput.distribute.tpu.trace import current_trace
from distinput.distribute.variables.store import Store
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.tpu.device_assignment import DeviceAssignment
from distinput.tpu.system import system_devices
from distinput.values.leaves import STRING
from distinput.values.nest import map_leaves

__all__ = ["Engine", "labels_of", "mesh_of"]

# ---- What `TPUStrategy` does with JAX. The strategy itself does not import it, so that it can be named without it

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
        self._strategy, self._mesh, self._compile, self._spmd = strategy, mesh, compile, spmd
        self.runner = Runner(strategy, mesh)
        self._consumers: Replicas | None = None

    @property
    def mesh(self) -> ReplicaMesh:
        """The devices."""
        return self._mesh

    @property
    def alone(self) -> bool:
        """True if all replicas run in this process."""
        return len(self._mesh.local) == self._mesh.replicas

    def replicas(self) -> Replicas:
        """The replicas on the devices of this process."""
        mesh = self._mesh
        devices = MeshDevices(mesh, labels_of(mesh))
        return Replicas(devices, None, len(mesh.local), mesh.local[0], mesh.replicas)

    def consumers(self, replicas: Replicas) -> Replicas:
        """The replicas as the input sees them: where they are in several processes, each process reads a part of the data.

        Every process calls this, in the same order for its strategies.

        Raises:
          ValueError: the replicas of a process are not consecutive.
          CollectiveError: the processes did not meet.
        """
        mesh = self._mesh
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
        arguments = RunArguments.of(given, named, self._mesh)
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
            placed, names = arguments.select(local, self._mesh.devices[self._mesh.local[local], 0])
            return fn(*placed, **names)

        return run_on_replicas(self._strategy, replicas, on_devices, given, named)

    def reduce(self, op: ReduceOp, leaf: Any, axis: Any) -> Any:
        """The sum or mean of a value of all replicas; None if the host has to compute it."""
        if current_trace(self._mesh) is not None and (isinstance(leaf, TracedValues) or axis is not None):
            return reduce_traced(op, leaf, axis, "reduce")
        return reduce_on_devices(self._mesh, op, leaf, axis)

    def gather(self, leaf: Any, axis: Any) -> Any:
        """The components of a value one after the other; None if the host has to put them together."""
        if current_trace(self._mesh) is not None:
            return gather_traced(leaf, axis, "gather") if isinstance(leaf, TracedValues) else None
        return gather_on_devices(self._mesh, leaf, axis)

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
        return JaxStore(value, self._mesh)

    def read_other(self, store: Store, copy: int) -> Any:
        """The value of a variable that was created outside of all scopes: an input while a function is traced."""
        trace = current_trace(self._mesh)
        return store.read(copy) if trace is None else trace.host(store, copy)

    def check_write_other(self, name: str) -> None:
        """Check that such a variable may be written.

        Raises:
          RuntimeError: a function is traced.
        """
        if current_trace(self._mesh) is not None:
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
        cores = self._mesh.cores
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
        cores, product = self._mesh.cores, int(np.prod(parts, dtype=np.int64))
        if product != cores:
            raise ValueError(
                f"The product of `partition_dimensions` should be the same as the number of logical devices (={cores}). "
                f"Received `partition_dimensions`={list(parts)},and their product is {product}."
            )
        return _constrained(self._mesh, tensor, _spec(self._mesh, parts))

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
            return _constrained(self._mesh, value, PartitionSpec())

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


def labels_of(mesh: ReplicaMesh) -> list[str]:
    """The names by which this process knows the first cores of its replicas."""
    labels = []
    for replica in mesh.local:
        device = mesh.devices[replica, 0]
        labels.append(f"{device.platform.upper()}:{jax.local_devices(backend=device.platform).index(device)}")
    return labels
