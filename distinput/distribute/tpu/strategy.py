# SPDX-License-Identifier: Apache-2.0
"""Replicas on JAX devices; the function of a run is traced once and compiled for all of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.contexts import modes, require_cross_replica
from distinput.distribute.core.replicas import Consumer
from distinput.distribute.core.strategy import Strategy, StrategyExtended
from distinput.distribute.core.values import replica_leaves
from distinput.distribute.variables.policy import VariablePolicy
from distinput.distribute.variables.store import Store
from distinput.errors import EngineMissing
from distinput.names.lazy import dataclass
from distinput.tpu.topology import HardwareFeature, HardwareFeatures

# ---- How the runs of a strategy that compiles were carried out


@dataclass(frozen=True)
class RunCounts:
    """What the runs of a strategy took.

    Args:
      programs: compiled programs.
      compiled: runs by a program.
      padded: of these, runs in which rows were added so that a program could be used.
      uncompiled: runs replica by replica.
    """

    programs: int = 0
    compiled: int = 0
    padded: int = 0
    uncompiled: int = 0


# ---- Replicas on JAX devices; the function of a run is traced once and compiled for all of them


class TPUExtended(StrategyExtended):
    """The interface of a `TPUStrategy` for libraries.

    Source: `tf.distribute.StrategyExtended`.
    """

    __slots__ = ()

    @property
    def steps_per_run(self) -> int:
        """The number of steps that loops written for estimators make at once."""
        return int(self._strategy.steps_per_run)

    @property
    def experimental_require_static_shapes(self) -> bool:
        """True: each new shape compiles another program, so input should be batched evenly."""
        return True

    @property
    def num_hosts(self) -> int:
        """The number of processes that have replicas."""
        return len({row[0].process_index for row in self._devices()})

    @property
    def num_replicas_per_host(self) -> int:
        """The number of replicas of this process."""
        return int(self._strategy._replicas.count)

    @property
    def tpu_hardware_feature(self) -> HardwareFeature:
        """What a chip has besides its cores, as the resolver knows it; nothing if it does not.

        Source: the `tpu_hardware_feature` of the extended `tf.distribute.TPUStrategy`.
        """
        known = getattr(self._strategy.cluster_resolver, "tpu_hardware_feature", None)
        return HardwareFeature(HardwareFeatures() if known is None else known)

    @contextmanager
    def experimental_logical_device(self, logical_device_id: int) -> Iterator[None]:
        """A block whose work one core of the replica may do.

        All cores of a replica run the same program here, so this checks the number of the core and changes nothing.

        Args:
          logical_device_id: the number of a core of the replica.

        Raises:
          ValueError: there is no such core.

        Source: the `experimental_logical_device` of the extended `tf.distribute.TPUStrategy`.
        """
        cores = self._devices().shape[1]
        if not 0 <= logical_device_id < cores:
            raise ValueError(
                f"`logical_device_id` not in range (was {logical_device_id}, but there are only {cores} logical devices per "
                "replica)."
            )
        yield

    def _devices(self) -> Any:
        """The devices, [replicas, cores]."""
        return self._strategy._engine.mesh.devices


class TPUStrategy(Strategy):
    """Synchronous replicas on JAX devices: TPUs where there are any, else the GPUs or CPUs that JAX has.

    `run` traces its function once and compiles it for all replicas, so the function must compute with `jax.numpy`. A
    program is kept for each function, structure, shape and dtype of the arguments. Python numbers and text among the
    arguments, in the function's closure and among the globals that it names are part of the program: a new value compiles
    another one, and so does another function or variable under the name of a global. Objects are looked at while the
    function is traced; if they change later, the program does not.

    Replicas with different numbers of rows, as at the end of an epoch, run the same program with added rows if it can be
    proved that these change nothing: a function of each row alone, or one that uses `get_replica_context().row_mask`
    wherever it sums over rows. Otherwise each replica runs the function as it is. Results are the same in all cases.

    Arrays among the arguments of `run` are inputs of the program, everything else is part of it, and its `options` are
    ignored. In its results arrays are `PerReplica` values on the devices, numbers `PerReplica` values on the host; other
    leaves, and arrays that all replicas were given, come back as they are. Results may still be being computed. A function
    that looks at the values of arrays cannot be compiled, which is a TypeError; an array that is no number, or does not fit
    into 32 bits, is an InvalidArgumentError.

    Args:
      tpu_cluster_resolver: the description of the devices, such as a `TPUClusterResolver`; None for all of `jax.devices()`.
      experimental_device_assignment: a `DeviceAssignment`, which says which devices are the cores of each replica; None
        for one replica on each device.
      experimental_spmd_xla_partitioning: whether the compiler divides the work of a replica among its cores.
      compile: False runs each replica eagerly, in a thread of its own: slower, and any Python works.
      steps_per_run: kept, for loops written for estimators.
      devices: the JAX devices, one for each replica; instead of the first two.

    Raises:
      ValueError: no devices, or the same device twice.
      EngineMissing: JAX is not installed.

    >>> import distinput as di
    >>> strategy = di.distribute.TPUStrategy()
    >>> step = strategy.run(lambda: di.distribute.get_replica_context().replica_id_in_sync_group)
    >>> int(strategy.reduce("SUM", step, axis=None)) == sum(range(strategy.num_replicas_in_sync))
    True
    >>> import jax.numpy as jnp
    >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(20).batch(8))
    >>> losses = [strategy.run(lambda x: jnp.square(x), args=(batch,)) for batch in dataset]
    >>> int(sum([strategy.reduce("SUM", loss, axis=0) for loss in losses]))
    2470

    Source: `tf.distribute.TPUStrategy`.
    """

    puts_only_numbers = True

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        experimental_device_assignment: Any = None,
        experimental_spmd_xla_partitioning: bool = False,
        *,
        compile: bool = True,
        steps_per_run: int | None = None,
        devices: Sequence[Any] | None = None,
    ) -> None:
        engines = _module("engine")
        mesh = engines.mesh_of(experimental_device_assignment, devices)
        super().__init__(mesh.labels, backend="jax")
        self._engine = engines.Engine(self, mesh, compile=compile, spmd=experimental_spmd_xla_partitioning)
        self._replicas = self._engine.replicas()
        self._reducer = engines.DeviceReducer(self._replicas.devices, alone=self._engine.alone)
        self._resolver, self._assignment = tpu_cluster_resolver, experimental_device_assignment
        self._compile, self._spmd = compile, experimental_spmd_xla_partitioning
        self._steps_per_run = 1 if steps_per_run is None else steps_per_run

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that was passed as `tpu_cluster_resolver`.

        Source: `tf.distribute.TPUStrategy.cluster_resolver`.
        """
        return self._resolver

    @property
    def extended(self) -> TPUExtended:
        """Properties and methods for libraries.

        Source: `tf.distribute.Strategy.extended`.
        """
        return TPUExtended(self)

    @property
    def steps_per_run(self) -> int:
        """The value of `steps_per_run`; 1 by default."""
        return self._steps_per_run

    @property
    def run_counts(self) -> RunCounts:
        """How many programs were compiled, and how many runs used them, with added rows or without."""
        counts: RunCounts = self._engine.runner.counts
        return counts

    def __deepcopy__(self, memo: dict[int, Any]) -> "TPUStrategy":
        clone = type(self).__new__(type(self))
        memo[id(self)] = clone
        TPUStrategy.__init__(
            clone,
            self._resolver,
            self._assignment,
            self._spmd,
            compile=self._compile,
            steps_per_run=self._steps_per_run,
            devices=None if self._assignment is not None else list(self._engine.mesh.devices[:, 0]),
        )
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        raise RuntimeError(
            "TPUStrategy cannot be sent to another process: its devices belong to this one; make it there"
        )

    def _run(self, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self._engine.run(self._replicas, fn, given, named)

    def reduce(
        self,
        reduce_op: Any,
        value: Any,
        axis: Any,
        *,
        deterministic: bool = False,
        mask: Any = None,
        name: str = "",
    ) -> Any:
        """Reduce the values of all replicas to one, on the devices where they are; see `Strategy.reduce`.

        Sums of what a run returned keep the dtype. Means of integers are float64, computed on the host.
        """
        require_cross_replica(self)
        op = ReduceOp.of(reduce_op)
        if deterministic or mask is not None:
            return super().reduce(op, value, axis, deterministic=deterministic, mask=mask, name=name)
        structure, leaves = replica_leaves(value)

        def total(leaf: Any) -> Any:
            found = self._engine.reduce(op, leaf, axis)
            return super(TPUStrategy, self).reduce(op, leaf, axis, name=name) if found is None else found

        return structure.build([total(leaf) for leaf in leaves])

    def gather(self, value: Any, axis: int, *, mask: Any = None, name: str = "") -> Any:
        """The components of all replicas, one after the other along `axis`; see `Strategy.gather`.

        What a run returned is gathered along the first axis without any copy: the result is an array over all devices.
        """
        if mask is None and not (modes.stack and modes.stack[-1].replica is not None):
            require_cross_replica(self)
            structure, leaves = replica_leaves(value)
            found = [self._engine.gather(leaf, axis) for leaf in leaves]
            if any(each is not None for each in found):
                parts = zip(leaves, found, strict=True)
                return structure.build(
                    [super(TPUStrategy, self).gather(x, axis, name=name) if y is None else y for x, y in parts]
                )
        return super().gather(value, axis, mask=mask, name=name)

    def _consumer(self) -> Consumer:
        return replace(super()._consumer(), replicas=self._engine.consumers(self._replicas))

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Say that one core of the replica computes with this array; inside `run`.

        All cores of a replica run the same program here, so this checks the number of the core and returns the same values.

        Args:
          tensor: the array, or a nest of arrays.
          logical_device_id: the number of a core of the replica.

        Raises:
          ValueError: there is no such core, or the strategy was made with `experimental_spmd_xla_partitioning=True`.

        Source: `tf.distribute.TPUStrategy.experimental_assign_to_logical_device`.
        """
        return self._engine.experimental_assign_to_logical_device(tensor, logical_device_id)

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Sequence[int]) -> Any:
        """Split an array among the cores of the replica; inside `run`.

        Args:
          tensor: the array, `[d0, d1, ...]`.
          partition_dimensions: into how many equal parts each dimension is split; their product is the number of cores of
            a replica.

        Raises:
          TypeError: a number of parts is not an integer.
          ValueError: not one number for each dimension, one that does not divide its dimension, or another product.

        Source: `tf.distribute.TPUStrategy.experimental_split_to_logical_devices`.
        """
        return self._engine.experimental_split_to_logical_devices(tensor, partition_dimensions)

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Let every core of the replica hold the whole array; inside `run`.

        Args:
          tensor: the array, or a nest of arrays.

        Source: `tf.distribute.TPUStrategy.experimental_replicate_to_logical_devices`.
        """
        return self._engine.experimental_replicate_to_logical_devices(tensor)

    def _open_store(self, value: Any, policy: VariablePolicy, name: str) -> Store:
        store: Store = self._engine.open_store(value, name)
        return store

    def _read_other(self, store: Store, copy: int) -> Any:
        return self._engine.read_other(store, copy)

    def _check_write_other(self, name: str) -> None:
        self._engine.check_write_other(name)


class ExperimentalTPUStrategy(TPUStrategy):
    """The same as `TPUStrategy`, with the arguments of the older name.

    Args:
      tpu_cluster_resolver: the description of the devices.
      device_assignment: which devices are the cores of each replica.
      compile: False runs each replica eagerly.
      steps_per_run: kept, for loops written for estimators.

    Source: `tf.distribute.experimental.TPUStrategy`.
    """

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        device_assignment: Any = None,
        *,
        compile: bool = True,
        steps_per_run: int | None = None,
    ) -> None:
        super().__init__(tpu_cluster_resolver, device_assignment, compile=compile, steps_per_run=steps_per_run)


ExperimentalTPUStrategy.__name__ = ExperimentalTPUStrategy.__qualname__ = "TPUStrategy"


def _module(name: str) -> Any:
    """A module that imports JAX.

    Raises:
      EngineMissing: JAX is not installed.
    """
    try:
        return import_module(f"distinput.distribute.tpu.{name}")
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise EngineMissing(
            f"TPUStrategy: needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"
        ) from error
