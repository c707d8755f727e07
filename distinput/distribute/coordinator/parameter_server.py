# SPDX-License-Identifier: Apache-2.0
"""Variables on parameter servers, and workers that run the functions that a coordinator schedules."""

import logging
import os
import secrets
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any, NoReturn

from distinput.cluster.resolver import ClusterResolver
from distinput.cluster.tf_config import TFConfigClusterResolver
from distinput.columns.state import State
from distinput.distribute.coordinator.coordinator import no_coordinator
from distinput.distribute.coordinator.per_worker import MakeOwn, PerWorkerVariable
from distinput.distribute.coordinator.servers import Servers
from distinput.distribute.coordinator.worker_seat import is_worker
from distinput.distribute.core.options import InputContext, InputOptions
from distinput.distribute.core.strategy import Strategy
from distinput.distribute.core.values import has_distributed
from distinput.distribute.devices import chosen_devices
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
from distinput.distribute.input.distribution import (
    check_dataset,
    check_dataset_function,
    check_options,
    distribute_dataset,
    distribute_from_function,
)
from distinput.distribute.input.located import Ranges
from distinput.distribute.seats import open_seats
from distinput.distribute.seats.seats import Seats
from distinput.distribute.variables.kinds import InitialValue, aggregating, single
from distinput.distribute.variables.policy import VariablePolicy, as_initial
from distinput.distribute.variables.sharded import ShardedVariable, number_of_parts, part_sizes
from distinput.distribute.variables.store import HostStore, Store
from distinput.distribute.variables.variable import Variable
from distinput.errors import UnavailableError
from distinput.run.threads import Closing
from distinput.values.leaves import as_dtype

# ---- Distributed datasets that are built only at the workers of a parameter-server cluster

_UNBUILT = (
    "Cannot get the cardinality of a dataset that is not built: every worker builds this dataset for itself; ask for the "
    "cardinality of the dataset that was distributed"
)


class UnbuiltDataset(DistributedDataset):
    """A distributed dataset that every worker builds for itself; `ParameterServerStrategy` returns it.

    Give it to `ClusterCoordinator.create_per_worker_dataset`; it cannot be iterated on the coordinator.

    Args:
      make: makes the distributed dataset.
    """

    cure = "To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset."

    def __init__(self, make: Callable[[], DistributedDataset]) -> None:
        self._build = make

    @cached_property
    def _here(self) -> DistributedDataset:
        return self._build()

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a worker's step."""
        return self._here.element_spec

    @property
    def cardinality(self) -> int:
        """Not known here.

        Raises:
          ValueError: always.
        """
        raise ValueError(_UNBUILT)

    @property
    def num_steps(self) -> int:
        """Not known here.

        Raises:
          ValueError: always.
        """
        raise ValueError(_UNBUILT)

    def explain(self) -> str:
        """How each worker distributes the dataset over its replicas."""
        return self._here.explain()

    def __iter__(self) -> NoReturn:
        raise ValueError(self.cure)

    def restore(self, state: State, may_differ: str | Collection[str] = (), *, skip: Ranges = ()) -> NoReturn:
        """Not possible here.

        Raises:
          ValueError: always.
        """
        raise ValueError(self.cure)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._build,)  # a worker gets a dataset of its own, not what was made here for the spec

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: made at the workers>"


class UnbuiltDatasetsFromFunction(UnbuiltDataset, DistributedDatasetsFromFunction):
    """The same for datasets from a function."""

    cure = "You need to use this dataset in ClusterCoordinator.create_per_worker_dataset."


# ---- Variables on parameter servers, and workers that run the functions that a coordinator schedules

_log = logging.getLogger(__name__)

_device: ContextVar[str | None] = ContextVar("device_of_new_variables", default=None)

_JOBS = ("chief", "worker", "evaluator", "ps")


class ParameterServerStrategy(Closing, Strategy):
    """Asynchronous training: variables are on parameter servers, and workers run functions independently of each other.

    Create the strategy in one process, the coordinator; make a `ClusterCoordinator` of it, and schedule functions. Inside
    a scheduled function, `run` calls a function on each replica of the worker; on the coordinator it logs a warning. Every
    worker iterates over the whole dataset.

    Variables are created in turn on the servers. With a partitioner, a large variable is split along its first axis, and its
    parts are on several servers. Any function that runs on a worker can read and change variables; each single change
    is complete before the next one begins.

    Use the strategy in a `with` block, or call `close`.

    Args:
      cluster_resolver: describes the cluster, as `LocalClusterResolver` for workers that are threads of this process; None
        reads TF_CONFIG.
      variable_partitioner: called with the shape and the dtype of each variable that is not a scalar; it returns the number
        of parts along each axis, of which only the first may be more than 1. A variable whose shape and dtype are given, and
        whose initial value is a function that takes `partition_shape` and `partition_offset`, is made part by part.
      engine: what workers and servers run on, a key of `distinput.distribute.seats.SEATS`; None takes that of the resolver:
        "threads" for `LocalClusterResolver`, otherwise "dask".
      worker_timeout_seconds: how long a worker may stand still before it counts as lost.
      devices: a name for each replica of a worker, or device objects of JAX or PyTorch; None for one CPU.
      backend: what the replicas of a worker run on; None to choose by the devices, as `MirroredStrategy` does.
      seats: seats that are already open, instead of an engine; their owner closes them.

    Raises:
      ValueError: the cluster has no worker or no parameter server, or tasks of other kinds; this process is a worker or a
        server.
      EngineMissing: a package that the engine needs is not installed.
      UnavailableError: not all workers and servers came.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=2, num_ps=1)
    >>> with di.distribute.ParameterServerStrategy(resolver) as strategy:
    ...     coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
    ...     with strategy.scope():
    ...         total = di.Variable(0.0)
    ...     def step(x):
    ...         total.assign_add(x)
    ...     for x in range(4):
    ...         _ = coordinator.schedule(step, args=(x,))
    ...     coordinator.join()
    ...     print(total.numpy())
    6.0

    Source: `tf.distribute.ParameterServerStrategy`.
    """

    _mirrors = False
    _coordinator: Callable[[], Any] = staticmethod(no_coordinator)
    """A weak reference to the coordinator, which refers to the strategy."""

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        variable_partitioner: Callable[..., Sequence[int]] | None = None,
        *,
        engine: str | None = None,
        worker_timeout_seconds: float = 30.0,
        devices: Sequence[Any] | None = None,
        backend: str | None = None,
        seats: Seats | None = None,
    ) -> None:
        labels, backend = chosen_devices(devices, backend, ["CPU:0"])
        super().__init__(labels, backend=backend)
        self._resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        self._partitioner = variable_partitioner
        self._engine = "given seats"
        self._cluster = secrets.token_hex(8)
        self._owned: Seats | None = None
        if seats is None:
            check_cluster(self._resolver)
            self._engine = engine or str(getattr(self._resolver, "engine", "dask"))
            seats = open_seats(self._engine, self._resolver, worker_timeout_seconds=worker_timeout_seconds)
            self._owned = seats
        self._seats: Seats | None = seats
        self._numbers = (len(seats.workers), len(seats.servers))
        self._servers: Servers | None = Servers(seats)
        self._parameter_devices = self._servers.devices
        _strategies[self._cluster] = self

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The description of the cluster.

        Source: `tf.distribute.ParameterServerStrategy.cluster_resolver`.
        """
        return self._resolver

    # ---- input

    def experimental_distribute_dataset(self, dataset: Any, options: InputOptions | None = None) -> Any:
        """A dataset for `ClusterCoordinator.create_per_worker_dataset`; see `Strategy.experimental_distribute_dataset`.

        Every worker makes it for itself, cuts it for its own replicas only, and iterates over all of it. In a function that
        runs on a worker the result can be iterated there.
        """
        options = options or InputOptions()
        if is_worker():
            return super().experimental_distribute_dataset(dataset, options)
        check_options(options, self._consumer())
        check_dataset(dataset, "experimental_distribute_dataset needs")
        return UnbuiltDataset(partial(_distribute, self, dataset, options))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: InputOptions | None = None
    ) -> Any:
        """A dataset for `ClusterCoordinator.create_per_worker_dataset`; see `Strategy.distribute_datasets_from_function`.

        The function is called at each worker, always with the context of one input pipeline of one.
        """
        options = options or InputOptions()
        if is_worker():
            return super().distribute_datasets_from_function(dataset_fn, options)
        check_dataset_function(dataset_fn, options, self._consumer())
        return UnbuiltDatasetsFromFunction(partial(_distribute_from_function, self, dataset_fn, options))

    # ---- running, on the replicas of one worker

    def _run(self, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        _warn_on_coordinator("run")
        return super()._run(fn, given, named)

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
        """The reduction over the replicas of this worker alone; see `Strategy.reduce`.

        With `axis=None`, what is not distributed is returned as it is.
        """
        _warn_on_coordinator("reduce")
        return super().reduce(reduce_op, value, axis, deterministic=deterministic, mask=mask, name=name)

    def _is_reduced(self, value: Any) -> bool:
        return not has_distributed(value)

    @property
    def _alone(self) -> bool:  # type: ignore[override]
        return self._replicas.count == 1

    # ---- variables

    def _create_variable(
        self, make_value: Callable[[], Any], policy: VariablePolicy, *, name: str, dtype: Any, shape: Any
    ) -> Variable:
        if is_worker():
            raise ValueError(
                f"Variable {name}: variables of ParameterServerStrategy are created on the coordinator, not in functions that "
                "run on workers; create it before you schedule, or make a per_worker_variable"
            )
        make = single if self._replicas.count == 1 else aggregating
        if self._partitioner is None:
            return make(self, make_value, policy, name, shape)
        rows: Callable[[int, int], Any]
        known = make_value.made_in_parts if isinstance(make_value, InitialValue) else None
        if isinstance(make_value, InitialValue) and known is not None:
            (whole, kind), rows = known, make_value.rows  # no process holds all of the table
        else:
            value = make_value()
            whole, kind, rows = value.shape, value.dtype, lambda start, stop: value[start:stop]
            make_value = lambda: value  # noqa: E731
        count = 1 if _device.get() else number_of_parts(self._partitioner, whole, kind)
        if count == 1:
            return make(self, make_value, policy, name, shape)
        starts = accumulate(part_sizes(whole[0], count), initial=0)
        parts = [
            make(self, partial(rows, start, stop), policy, f"{name}/part_{number}", None)
            for number, (start, stop) in enumerate(pairwise(starts))
        ]
        return ShardedVariable(parts, name, policy, self)

    def _open_store(self, value: Any, policy: VariablePolicy, name: str) -> Store:
        if self._servers is None:
            raise UnavailableError(f"Variable {name}: the strategy was closed")
        return self._servers.open_store(value, _device.get())

    @contextmanager
    def _beside(self, variable: Variable) -> Iterator[None]:
        token = _device.set(variable.device)  # such variables are whole, also with a partitioner
        try:
            yield
        finally:
            _device.reset(token)

    def per_worker_variable(
        self, initial_value: Any, dtype: Any = None, name: str = "PerWorkerVariable"
    ) -> PerWorkerVariable:
        """A variable of which every worker has one of its own, such as a counter or a cache.

        Args:
          initial_value: the first value of each, or a function that returns it, called at each worker.
          dtype: its dtype; None for that of the initial value.
          name: the name.

        Raises:
          ValueError: the strategy has no coordinator yet.

        >>> import distinput as di
        >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=2, num_ps=1)
        >>> strategy = di.distribute.ParameterServerStrategy(resolver)
        >>> coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
        >>> steps = strategy.per_worker_variable(0)
        >>> def step():
        ...     steps.assign_add(1)
        >>> for _ in range(10):
        ...     _ = coordinator.schedule(step)
        >>> coordinator.join()
        >>> sum(steps.read_all()).item()
        10

        Source: the `per_worker_variable` of variables under `tf.distribute.ParameterServerStrategy`.
        """
        coordinator = self._coordinator()
        if coordinator is None:
            raise ValueError("per_worker_variable: construct the ClusterCoordinator of the strategy first")
        wanted = None if dtype is None else as_dtype(dtype)
        make_value = partial(_initial, initial_value, wanted, name)
        own = HostStore(make_value(), ["/device:CPU:0"])
        values = coordinator.create_per_worker_resource(MakeOwn(make_value))
        return PerWorkerVariable(
            own, values, values._key, VariablePolicy(trainable=False), name, self, (own.dtype, own.shape)
        )

    # ---- the end

    def close(self) -> None:
        """End the coordinator, and release the workers and servers. Closing again does nothing."""
        owned, self._owned = self._owned, None
        self._servers = None
        coordinator = self._coordinator()
        if coordinator is not None:
            coordinator.close()
        if owned is not None:
            owned.close()

    def __repr__(self) -> str:
        workers, servers = self._numbers
        return (
            f"ParameterServerStrategy({self._engine}, {workers} worker{'s' * (workers > 1)}, "
            f"{servers} parameter server{'s' * (servers > 1)})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "ParameterServerStrategy":
        raise RuntimeError("ParameterServerStrategy cannot be copied: its workers and variables belong to this object")

    def __reduce__(self) -> tuple[Any, ...]:
        return _found, (self._cluster, self._numbers, tuple(self._replicas.devices.local), self._backend)


_strategies: "weakref.WeakValueDictionary[str, ParameterServerStrategy]" = weakref.WeakValueDictionary()
"""The strategies made in this process, by the id of their cluster."""


def _found(cluster: str, numbers: tuple[int, int], devices: tuple[str, ...], backend: str) -> ParameterServerStrategy:
    """The strategy of a cluster: the one made in this process, or at a worker, its stand-in."""
    return _strategies.get(cluster) or _at_worker(os.getpid(), cluster, numbers, devices, backend)


@lru_cache(maxsize=16)  # every function that comes to this worker meets the same object
def _at_worker(
    _: int, cluster: str, numbers: tuple[int, int], devices: tuple[str, ...], backend: str
) -> ParameterServerStrategy:
    made = ParameterServerStrategy.__new__(ParameterServerStrategy)
    Strategy.__init__(made, devices, backend=backend)
    made._resolver, made._partitioner, made._engine = TFConfigClusterResolver(), None, "at a worker"
    made._cluster, made._owned, made._seats, made._servers, made._numbers = cluster, None, None, None, numbers
    made._parameter_devices = tuple(f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in range(numbers[1]))
    return made


def _warn_on_coordinator(method: str) -> None:
    if not is_worker():
        _log.warning(
            "ParameterServerStrategy: %s is called without ClusterCoordinator.schedule, so it runs on the coordinator alone, "
            "without a worker; call it in a function that is given to schedule",
            method,
        )


def _initial(value: Any, dtype: Any, name: str) -> Any:
    return as_initial(value() if callable(value) else value, dtype, name)


def _distribute(strategy: ParameterServerStrategy, dataset: Any, options: InputOptions) -> Any:
    return distribute_dataset(strategy._consumer(), dataset, options)


def _distribute_from_function(
    strategy: ParameterServerStrategy, dataset_fn: Callable[[InputContext], Any], options: InputOptions
) -> Any:
    return distribute_from_function(strategy._consumer(), dataset_fn, options)


def check_cluster(resolver: ClusterResolver) -> None:
    """Check that a coordinator can work with the cluster, as TensorFlow does.

    Raises:
      ValueError: it cannot.
    """
    spec = resolver.cluster_spec()
    if not spec:
        raise ValueError(
            "Cluster spec must be non-empty in `tf.distribute.cluster_resolver.ClusterResolver`. Set TF_CONFIG, or use "
            "LocalClusterResolver for workers that are threads of this process"
        )
    if any(job not in _JOBS for job in spec.jobs):
        raise ValueError(
            f"Disallowed task type found in cluster spec. Allowed types are {_JOBS} and the cluster spec is {spec}."
        )
    task = resolver.task_type
    if task is not None and task not in _JOBS:
        raise ValueError(f"Unrecognized task_type: {task}, valid task types are: {_JOBS}")
    numbers = {job: spec.num_tasks(job) if job in spec.jobs else 0 for job in _JOBS}
    for job in ("chief", "evaluator"):
        if numbers[job] > 1:
            raise ValueError(f"There must be at most one '{job}' job, got {numbers[job]}.")
    if not numbers["ps"]:
        raise ValueError("There must be at least one ps.")
    if not numbers["worker"]:
        raise ValueError("There must be at least one worker.")
    if task in ("worker", "ps"):
        raise ValueError(
            "coordinator name should not be 'worker' or 'ps': ParameterServerStrategy is made by the coordinator alone, whose "
            f"task is 'chief', but this process is {task} {resolver.task_id}; start `distinput worker` there"
        )
