# SPDX-License-Identifier: Apache-2.0
"""A strategy: how many replicas there are, what is done for all of them, and what libraries need besides."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, Self

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.contexts import (
    Mode,
    Scope,
    ValueContext,
    modes,
    require_cross_replica,
    run_on_replicas,
)
from distinput.distribute.core.options import InputContext, InputOptions, RunOptions
from distinput.distribute.core.replica_reducer import LocalReducer, gather_nest, reduce_nest
from distinput.distribute.core.replicas import Consumer, Replicas, missing, part
from distinput.distribute.core.values import (
    DistributedValues,
    Mirrored,
    local_results,
    only_masked,
    regroup,
    replica_leaves,
    row_counts,
    select_replica,
)
from distinput.distribute.devices import open_devices

# ----------------------------------------------------------------------------
# The parts of a strategy that libraries need and training loops do not.
# ----------------------------------------------------------------------------


class StrategyExtended:
    """The interface of a strategy for libraries; `Strategy.extended` returns it.

    Args:
      container_strategy: the strategy.

    Source: `tf.distribute.StrategyExtended`.
    """

    __slots__ = ("_strategy",)

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            return missing(self, name)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this process's replicas."""
        devices: tuple[str, ...] = self._strategy._replicas.devices.local
        return devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that variables live on."""
        devices: tuple[str, ...] = self._strategy._parameter_devices
        return devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: batches may differ in size."""
        return False

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The same as `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """`Strategy.reduce` of one value with `axis=None`; in one process every destination is the host."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]], options: Any = None
    ) -> list[Any]:
        """`reduce_to` of several values."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call `fn(copy, *args, **kwargs)` for each copy of a variable, in cross-replica context.

        Args:
          var: a variable of this strategy.
          fn: called with the copy, and its components of distributed values; with distributed values as they are if the
            strategy keeps one value of a variable.
          args: positional arguments.
          kwargs: named arguments.
          group: False returns the nest with a tuple of local results in the place of each leaf.

        Returns:
          The results, each leaf a `Mirrored` unless it is the same object for all copies.

        Source: `tf.distribute.StrategyExtended.update`.
        """
        strategy = self._strategy
        stack = modes.stack
        context = stack[-1].replica if stack else None
        if context is not None:

            def merge(_: Any, *merged: Any, **named: Any) -> Any:
                return self.update(var, fn, merged, named, group)

            return context.merge_call(merge, args, kwargs)
        require_cross_replica(strategy)
        results = []
        if not hasattr(var, "_parts"):
            raise ValueError(f"You can not update `var` {var!r}. It must be a Variable.")
        parts = var._parts()
        if strategy._mirrors and not isinstance(var, DistributedValues):
            raise AssertionError(
                f"update: the strategy keeps a copy for each replica, but {var!r} is a single value, created outside of its "
                "scope; create it in the scope, or write to it directly"
            )
        given, named = tuple(args), dict(kwargs or {})
        for copy, of_copy in enumerate(parts):
            with Mode(strategy, None, copy):
                if strategy._mirrors:  # else values of several replicas stay together: there is one value to update
                    results.append(fn(of_copy, *select_replica(copy, given), **select_replica(copy, named)))
                else:
                    results.append(fn(of_copy, *given, **named))
        made = regroup(results, wrap=Mirrored) if len(parts) > 1 else results[0]
        if group:
            return made
        structure, leaves = replica_leaves(made)
        return structure.build([strategy.experimental_local_results(leaf) for leaf in leaves])

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was created under this strategy.

        Source: `tf.distribute.StrategyExtended.variable_created_in_scope`.
        """
        return getattr(v, "_strategy", None) is self._strategy

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """A scope in which variables are created on the devices of another variable.

        Raises:
          ValueError: the variable belongs to another strategy.

        Source: `tf.distribute.StrategyExtended.colocate_vars_with`.
        """
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ValueError(
                "`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), not: "
                f"{colocate_with_variable!r}"
            )
        with self._strategy._beside(colocate_with_variable):
            yield

    def value_container(self, value: Any) -> Any:
        """The distributed variable that a copy belongs to; the value itself if there is none."""
        container = getattr(value, "_container", None)
        return value if container is None else container()


# ----------------------------------------------------------------------------
# A strategy: how many replicas there are, and what is done for all of them.
# ----------------------------------------------------------------------------


class Strategy:
    """The base class of all strategies; use one of them, such as `MirroredStrategy`.

    Args:
      devices: a name for each replica of this process, such as "CPU:0".
      backend: what the replicas run on, a key of `distinput.distribute.devices.BACKENDS`.

    Source: `tf.distribute.Strategy`.
    """

    is_default = False
    """True for the strategy that is current outside all scopes."""
    splits_batches = True
    """False if `experimental_distribute_dataset` leaves global batches whole."""
    keeps_partial_steps = True
    """False if iterating drops a last step that lacks elements for some replicas, as TensorFlow does in this case."""
    per_replica_input: Literal["made", "ignored", "refused"] = "refused"
    """What `InputReplicationMode.PER_REPLICA` does in `distribute_datasets_from_function`."""
    puts_only_numbers = False
    """True if steps that are put on the devices must consist of numbers."""

    _mirrors = True
    """True if variables have a copy for each replica."""
    _alone = False
    """True if values are never wrapped, since there is one replica."""

    def __init__(self, devices: Sequence[str], *, backend: str = "threads") -> None:
        self._backend = backend
        self._replicas = Replicas.of(open_devices(backend, devices))
        self._parameter_devices = self._replicas.devices.local
        self._reducer = LocalReducer(self._replicas.devices)

    # ---- facts

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas over all workers.

        Source: `tf.distribute.Strategy.num_replicas_in_sync`.
        """
        return self._replicas.total

    @property
    def cluster_resolver(self) -> Any:
        """The description of the cluster; None for strategies of one process.

        Source: `tf.distribute.Strategy.cluster_resolver`.
        """
        return None

    @property
    def extended(self) -> StrategyExtended:
        """Properties and methods for libraries.

        Source: `tf.distribute.Strategy.extended`.
        """
        return StrategyExtended(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._replicas.devices.local)})"

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            return missing(self, name)

    def __copy__(self) -> "Strategy":
        raise RuntimeError("Must only deepcopy DistributionStrategy: a shallow copy would share its threads")

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or the strategy in another process, has threads of its own.
        return _remade, (type(self), self._replicas.devices.local, self._backend, self._parameter_devices)

    # ---- contexts and running

    def scope(self) -> Scope[Self]:
        """A context manager that makes this strategy current, in cross-replica context.

        Raises:
          RuntimeError: on entering, inside another strategy's scope or inside `run`.

        Source: `tf.distribute.Strategy.scope`.
        """
        return Scope(self)

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Call `fn` on every replica, all at the same time.

        Args:
          fn: called with the replica's components of distributed values; everything else is passed to all replicas
            unchanged, so replicas must not modify it.
          args: a list or tuple of positional arguments, each any nest.
          kwargs: named arguments.
          options: ignored in one process.

        Returns:
          One nest of the replicas' results; leaves are `PerReplica`, or plain if all replicas returned the very same object,
          such as None. Numbers of several replicas are `PerReplica` always, equal or not. The result of a replica that had a
          placeholder of zeros instead of data does not count: `reduce` and `gather` leave it out.

        Raises:
          ValueError: `args` is not a list or tuple.
          RuntimeError: inside another strategy's scope or inside `run`, or replicas made different numbers of
            `merge_call` calls.
          AssertionError: the structures of the results differ.
          BaseException: the error of the replica that failed first, with a note that names the replica.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.run(lambda x: 10 * x, args=(di.distribute.PerReplica([1, 2]),))
        PerReplica:{
          0: 10,
          1: 20
        }

        Source: `tf.distribute.Strategy.run`.
        """
        if not isinstance(args, tuple | list):
            raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                f"run: positional args must be a list or tuple, got a {type(args).__name__}; write args=(x,) for one"
            )
        require_cross_replica(self)
        return self._run(fn, tuple(args), dict(kwargs) if kwargs else {})

    def _run(self, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What `run` does with arguments that can be."""
        return run_on_replicas(self, self._replicas, fn, given, named)

    # ---- cross-replica arithmetic

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
        """Reduce the values of all replicas to one, by sum or mean.

        Args:
          reduce_op: "SUM", "MEAN" or a `ReduceOp`.
          value: a distributed value, or a nest of them, each leaf of which is reduced.
          axis: None reduces element by element; all shapes must be equal. An int or a tuple of ints first sums over
            these axes of each component, along which sizes may differ; the mean then divides by the true number of
            items, so a row of a short batch weighs as much as any other and empty replicas have no weight.
          deterministic: round exact sums of floats once: the same bits however the rows are divided among replicas and
            workers. Slower for floats, and computed on the host; sums of integers are exact anyway.
          mask: a distributed value that is true for the rows of `value`, `[n, ...]`, that count; `tail="pad"` of
            `InputOptions` makes one. The mask is looked at on the host; the rows stay where they are.
          name: a name for the call, the same on every worker. The workers compare it instead of the call site.

        Returns:
          A nest of arrays or scalars. Sums keep the dtype; means of integers are float64, of sums of 64 bits that wrap around
          as in TensorFlow: make large ones, such as times in nanoseconds, float64 first. Values on JAX or PyTorch devices are
          reduced there, and the result is an array of that framework on the device of the first replica, without a gradient;
          without 64 bits JAX's means of integers are float32.

        Raises:
          RuntimeError: inside `run`, or inside another strategy's scope.
          Mismatch: the workers did not make the same call, or made it at different places of the program.
          ValueError: an unknown reduce_op, an axis out of range, or a sum of a value that is not distributed.
          TypeError: reduce_op or axis is of the wrong type.
          InvalidArgumentError: shapes or dtypes that must agree do not, or values are text or bool.

        >>> import distinput as di
        >>> import numpy as np
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> uneven = di.distribute.PerReplica([np.array([1, 2, 3]), np.array([4])])
        >>> float(strategy.reduce("MEAN", uneven, axis=0))
        2.5

        Source: `tf.distribute.Strategy.reduce`.
        """
        require_cross_replica(self)
        op = ReduceOp.of(reduce_op)
        if mask is not None:
            value = only_masked("reduce", value, mask, self._reducer.arrays)
        if axis is None and self._is_reduced(value):
            return value
        return reduce_nest(self._reducer, self._replicas, op, value, axis, deterministic=deterministic, name=name)

    def _is_reduced(self, value: Any) -> bool:
        """Whether `reduce` without an axis returns a value as it is."""
        return self._alone and not isinstance(value, DistributedValues)

    def gather(self, value: Any, axis: int, *, mask: Any = None, name: str = "") -> Any:
        """The components of all replicas, one after the other along `axis`, in replica order.

        Args:
          value: a distributed value or a nest of them; other leaves stay as they are.
          axis: the axis to concatenate along, along which sizes may differ. It may be negative.
          mask: a distributed value that is true for the rows of `value`, `[n, ...]`, to keep; see `reduce`.
          name: as in `reduce`.

        Raises:
          RuntimeError: inside `run`, or inside another strategy's scope.
          InvalidArgumentError: scalars, an axis out of range, or dtypes or other dimensions that differ.

        >>> import distinput as di
        >>> import numpy as np
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.gather(di.distribute.PerReplica([np.array([1, 2, 3]), np.array([4])]), axis=0)
        array([1, 2, 3, 4])

        Source: `tf.distribute.Strategy.gather`.
        """
        require_cross_replica(
            self,
            "tf.distribute.Strategy.gather method requires cross-replica context, use "
            "get_replica_context().all_gather()",
        )
        if mask is not None:
            value = only_masked("gather", value, mask, self._reducer.arrays)
        return gather_nest(self._reducer, self._replicas, value, axis, name=name)

    def row_counts(self, value: Any) -> tuple[int, ...]:
        """The number of rows of data of each replica of this process, however many there are.

        Args:
          value: a step of a distributed dataset, or any other nest; all its leaves must have as many rows.

        Returns:
          For each replica the first dimension of its part: `PerReplica.row_counts`, or the number of rows of a plain value
          where there is one replica; 1 for a scalar, 0 for a placeholder.

        Raises:
          InvalidArgumentError: a value without leaves, or leaves with different numbers of rows.

        >>> import distinput as di
        >>> batches = di.data.Dataset.range(3).batch(2)
        >>> one = di.distribute.OneDeviceStrategy("CPU:0")
        >>> [one.row_counts(step) for step in one.experimental_distribute_dataset(batches)]
        [(2,), (1,)]
        >>> two = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> [two.row_counts(step) for step in two.experimental_distribute_dataset(batches)]
        [(1, 1), (1, 0)]
        """
        return row_counts(value, self._replicas.count)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The components of a value, one for each replica of this process.

        Args:
          value: a distributed value, or a nest; leaves of a nest that are not distributed are repeated. For anything
            else the result is a tuple of one.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.experimental_local_results({"x": di.distribute.PerReplica([1, 2]), "y": 3})
        ({'x': 1, 'y': 3}, {'x': 2, 'y': 3})

        Source: `tf.distribute.Strategy.experimental_local_results`.
        """
        if self._alone:
            return value.values if isinstance(value, DistributedValues) else (value,)
        return local_results(value, self._replicas.count)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Make a distributed value from the results of `value_fn` for each replica.

        Args:
          value_fn: called with a `ValueContext` for each replica of this process; it returns a nest.

        Returns:
          The nest with a `PerReplica` for every leaf; the nest itself where there is one replica that is never wrapped.

        Raises:
          AssertionError: the structures differ.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group * 10)
        PerReplica:{
          0: 0,
          1: 10
        }

        Source: `tf.distribute.Strategy.experimental_distribute_values_from_function`.
        """
        first, count, total = self._replicas.first, self._replicas.count, self._replicas.total
        if self._alone:
            return value_fn(ValueContext(0, 1))
        return regroup([value_fn(ValueContext(i, total)) for i in range(first, first + count)], always_wrap=True)

    # ---- variables

    def _create_variable(self, make_value: Callable[[], Any], policy: Any, *, name: str, dtype: Any, shape: Any) -> Any:
        """The variable that `Variable(...)` makes under this strategy.

        Args:
          make_value: makes the initial value, a NumPy array of the final dtype that belongs to the variable.
          policy: what the user asked for, a `VariablePolicy`.
          name: the name.
          dtype: the dtype that the user asked for; None if they did not.
          shape: the shape that the user asked for, a `TensorShape`; None if they did not.
        """
        if self._alone:
            return part("single")(self, make_value, policy, name, shape)
        return part("mirrored")(self, make_value, policy, name, shape, self._replicas.peers)

    def _beside(self, variable: Any) -> AbstractContextManager[None]:
        """A block in which variables are created on the devices of another one."""
        return nullcontext()

    def _open_store(self, value: Any, policy: Any, name: str) -> Any:
        """Where the copies of a variable are kept, all with this first value: a `Store`."""
        devices = self._replicas.devices
        to_host = None if devices.host_memory else devices.get
        return part("HostStore")(value, self._parameter_devices, to_host, getattr(devices, "variable_value", None))

    def _read_other(self, store: Any, copy: int) -> Any:
        """The value of a variable that was created outside of all scopes, read while this strategy is current."""
        return store.read(copy)

    def _check_write_other(self, name: str) -> None:
        """Called before such a variable is written while this strategy is current."""

    # ---- input

    def experimental_distribute_dataset(self, dataset: Any, options: InputOptions | None = None) -> Any:
        """A distributed dataset, each step of which gives every replica its part of one global batch.

        Args:
          dataset: batched by the global batch size. Batches are cut for the replicas as TensorFlow cuts them, or evenly
            with `InputOptions(balanced_split=True)`.
          options: settings.

        Returns:
          A `DistributedDataset`.

        Raises:
          TypeError: not a dataset, or one that is already distributed.
          ValueError: elements without a batch axis on several replicas.
          NotImplementedError: PER_REPLICA replication.
          FailedPreconditionError: the workers built different datasets; the message says what differs.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2)):
        ...     print(step)
        PerReplica:{
          0: array([0]),
          1: array([1])
        }
        PerReplica:{
          0: array([2]),
          1: array([], dtype=int64)
        }

        Source: `tf.distribute.Strategy.experimental_distribute_dataset`.
        """
        return part("distribute_dataset")(self._consumer(), dataset, options or InputOptions())

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: InputOptions | None = None
    ) -> Any:
        """A distributed dataset made from datasets that you batch and shard yourself.

        Args:
          dataset_fn: called at once with an `InputContext`, once for each input pipeline; it returns a dataset whose
            elements go to the replicas in turn.
          options: settings; PER_REPLICA makes one dataset for each replica.

        Returns:
          A `DistributedDatasetsFromFunction`.

        Raises:
          TypeError: `dataset_fn` is not callable, or did not return a dataset.
          ValueError: `experimental_place_dataset_on_device` without PER_REPLICA or with fetching to the device.
          NotImplementedError: PER_REPLICA replication, if the strategy does not support it.
          FailedPreconditionError: the elements of the workers' datasets differ in kind, or only some datasets end.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def dataset_fn(context):
        ...     return di.data.Dataset.range(4).batch(context.get_per_replica_batch_size(4))
        >>> for step in strategy.distribute_datasets_from_function(dataset_fn):
        ...     print(step)
        PerReplica:{
          0: array([0, 1]),
          1: array([2, 3])
        }

        Source: `tf.distribute.Strategy.distribute_datasets_from_function`.
        """
        return part("distribute_from_function")(self._consumer(), dataset_fn, options or InputOptions())

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: InputOptions | None = None
    ) -> Any:
        """`distribute_datasets_from_function` under its older name.

        Source: `tf.distribute.Strategy.experimental_distribute_datasets_from_function`.
        """
        return self.distribute_datasets_from_function(dataset_fn, options)

    def _consumer(self) -> Consumer:
        return Consumer(
            self._replicas,
            self,
            type(self).__name__,
            self.splits_batches,
            self.keeps_partial_steps,
            self.per_replica_input,
            self.puts_only_numbers,
        )

    def experimental_make_numpy_dataset(self, numpy_input: Any) -> Any:
        """A dataset of the rows of arrays; the same as `Dataset.from_tensor_slices`.

        Source: `tf.distribute.Strategy.experimental_make_numpy_dataset`.
        """
        return part("Dataset").from_tensor_slices(numpy_input)


def _remade(kind: type[Strategy], devices: Sequence[str], backend: str, parameter_devices: tuple[str, ...]) -> Strategy:
    made = kind.__new__(kind)
    Strategy.__init__(made, devices, backend=backend)
    made._parameter_devices = parameter_devices
    return made
