# SPDX-License-Identifier: Apache-2.0
"""The kinds of variables, and how one is created: once, although every replica runs the code."""

import re
import sys
import weakref
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from types import FrameType
from typing import Any, Self

import numpy as np

from distinput.distribute.core.array_arithmetic import reduce_undistributed
from distinput.distribute.core.contexts import Mode, modes
from distinput.distribute.core.current import get_strategy
from distinput.distribute.core.replica_reducer import IndexedSlices, LocalReducer, ReplicaCall, reduce_slices
from distinput.distribute.core.replicas import CallDescription, Peers, Replicas
from distinput.distribute.core.values import DistributedValues, PerReplica
from distinput.distribute.variables.policy import (
    VariableAggregation,
    VariablePolicy,
    as_indices,
    as_initial,
    as_operand,
    kind_of,
    reduce_op_of,
)
from distinput.distribute.variables.store import HostStore, Store, plain, shown
from distinput.distribute.variables.variable import Variable
from distinput.values.leaves import TensorShape, as_dtype, dtype_code

# ----------------------------------------------------------------------------
# The kinds of variables: one value, a copy for each replica, one value for several replicas; how writes are put together.
# ----------------------------------------------------------------------------


# ---- Variables with one value


class _StoredVariable(Variable):
    """A variable whose copies are in a store of its own.

    Args:
      strategy: the strategy under which it was created.
      store: where the copies are.
      policy: how they are kept in step; a single value needs none.
      name: the name.
      shape: the shape, None for sizes that may change.
    """

    def __init__(self, strategy: Any, store: Store, policy: VariablePolicy, name: str, shape: TensorShape) -> None:
        self._strategy, self._store, self._policy, self._name, self._shape = strategy, store, policy, name, shape

    def _in_store(self, store: Store) -> Self:
        """A variable like this one, in another store."""
        made = type(self)(self._strategy, store, self._policy, self._name, self._shape)
        made._constraint = self._constraint
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._in_store(self._strategy._open_store(self.numpy(), self._policy, self._name))


class ResourceVariable(_StoredVariable):
    """One value; also one copy of a distributed variable.

    Args:
      strategy, store, policy, name, shape: see `_StoredVariable`.
      copy: which copy of the store it is.
      container: a weak reference to the distributed variable that it is a copy of.
    """

    def __init__(
        self,
        strategy: Any,
        store: Store,
        policy: VariablePolicy,
        name: str,
        shape: TensorShape,
        copy: int = 0,
        container: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(strategy, store, policy, name, shape)
        self._copy, self._container = copy, container

    @property
    def device(self) -> str:
        """The device that the value is on."""
        return self._store.device(self._copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._container is None:
            return super().__deepcopy__(memo)
        return self._in_store(HostStore(self.numpy(), [self.device]))

    def count_up_to(self, limit: int) -> Any:
        """Add 1 and return the value before; see `Variable.count_up_to`."""
        self._check_current()
        made = self._store.update(self._copy, "count_up_to", *self._prepared("count_up_to", limit, None))
        return (self._here() if made is None else plain(made)) - 1

    def _here(self) -> Any:
        stack = modes.stack
        if stack and stack[-1].strategy is not self._strategy:
            return plain(stack[-1].strategy._read_other(self._store, self._copy))
        return shown(self._store, self._copy)

    def _rows(self, what: str, indices: Any) -> Any:
        read_rows = getattr(self._store, "read_rows", None)
        if read_rows is None or (modes.stack and modes.stack[-1].strategy is not self._strategy):
            return super()._rows(what, indices)
        return read_rows(what, indices)  # without the others, which are elsewhere

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        self._check_current()
        self._write_copy(self._copy, kind, value, key)
        return self

    def _check_current(self) -> None:
        """Ask the current strategy, if it is another one, whether its replicas may write to this variable."""
        stack = modes.stack
        if stack and stack[-1].strategy is not self._strategy:
            stack[-1].strategy._check_write_other(self.name)

    def _saved(self) -> Any:
        return np.asarray(self._store.read(self._copy))

    def _restored(self, array: Any) -> None:
        self._write_copy(self._copy, "assign", array)


# ---- Variables with a copy for each replica


def current_mode(variable: Variable) -> Mode | None:
    """The mode of the running code, which must be one of the variable's strategy; None outside of all scopes.

    Raises:
      RuntimeError: another strategy is current.
    """
    stack = modes.stack
    if not stack:
        return None
    mode = stack[-1]
    if mode.strategy is not variable._strategy:
        raise RuntimeError(
            f"Mixing different tf.distribute.Strategy objects: variable {variable.name} of {variable._strategy!r} was used "
            f"while {mode.strategy!r} is current; leave the scope of the one before using the other"
        )
    return mode


def own_value(value: Any) -> Any:
    """The value that the running code sees of a variable; anything else stays what it is."""
    return value.value() if isinstance(value, Variable) else value


def _with_rows(kind: str, value: Any, store: Store) -> Any:
    """What a replica writes; a scalar that stands for all rows as rows, which those of other replicas come behind."""
    if not isinstance(value, IndexedSlices) or kind.startswith("scatter_nd") or np.ndim(value.values):
        return value
    scalar, indices = as_operand(value.values, store.dtype, kind), as_indices(value.indices, kind)
    indices = indices if indices.shape else indices.reshape(1)  # several replicas' are joined
    rows = scalar + np.zeros((*indices.shape, *store.shape[1:]), scalar.dtype)
    return IndexedSlices(rows, indices, value.dense_shape)


class DistributedVariable(_StoredVariable, DistributedValues):
    """A variable with a copy for each replica of this process; `values` are the copies, variables themselves.

    Strategies make it; the name is for `isinstance`.

    >>> import distinput as di
    >>> with di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    ...     v = di.Variable(1.0)
    >>> isinstance(v, di.distribute.DistributedVariable), isinstance(v, di.distribute.DistributedValues)
    (True, True)

    Source: the distributed variables of `tf.distribute`.
    """

    passed_whole = True
    values: tuple[ResourceVariable, ...]

    def __init__(self, strategy: Any, store: Store, policy: VariablePolicy, name: str, shape: TensorShape) -> None:
        super().__init__(strategy, store, policy, name, shape)
        container = weakref.ref(self)
        self.values = tuple(
            [
                ResourceVariable(strategy, store, policy, f"{name}/replica_{i}" if i else name, shape, i, container)
                for i in range(store.copies)
            ]
        )

    __repr__ = DistributedValues.__repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        first, *others = [np.array(self._store.read(copy)) for copy in range(self._store.copies)]
        store = self._strategy._open_store(first, self._policy, self._name)
        for copy, value in enumerate(others, start=1):
            store.update(copy, "assign", value)
        return self._in_store(store)

    def _parts(self) -> tuple[Variable, ...]:
        return self.values

    def _copy_here(self) -> int | None:
        """The copy that belongs to the running code; None in cross-replica context and outside."""
        mode = current_mode(self)
        if mode is None:
            return None
        own: int | None = mode.copy if mode.replica is None else mode.replica._local
        return own


class MirroredVariable(DistributedVariable):
    """A variable whose copies are kept equal, unless replicas write their own without aggregation."""

    mirrored = True

    def _here(self) -> Any:
        return shown(self._store, self._copy_here() or 0)

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        if kind in _ROW_BY_ROW and self._policy.aggregation in _REDUCED:
            raise NotImplementedError(
                f"{kind} is only supported for mirrored variable (variable created within certain `tf.distribute.Strategy` "
                f"scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: {self._policy.aggregation}."
            )
        copy = self._copy_here()
        if copy is None:
            self._write_copies(kind, value, key)
            return self
        context = modes.stack[-1].replica
        if context is not None and self._policy.aggregation is not VariableAggregation.NONE:
            value = context._aggregate(self._policy.aggregation, _with_rows(kind, own_value(value), self._store))
        self._write_copy(copy, kind, value, key)
        return self.values[copy]


_REDUCED = (VariableAggregation.SUM, VariableAggregation.MEAN)
_ROW_BY_ROW = tuple([f"scatter_{nd}{kind}" for nd in ("", "nd_") for kind in ("max", "min", "update")])
"""Writes of rows for which a sum or mean of the replicas' rows means nothing."""


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies are written by their replicas and aggregated when they are read in cross-replica context."""

    def _here(self) -> Any:
        copy = self._copy_here()
        return self._together() if copy is None else shown(self._store, copy)

    def _together(self) -> Any:
        """The aggregate of all copies; for ONLY_FIRST_REPLICA this worker's first, so that one worker may read alone."""
        if self._policy.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return shown(self._store, 0)
        parts = [self._store.read(copy) for copy in range(self._store.copies)]
        call = ReplicaCall(f"read of variable {self._name}")
        return self._strategy._reducer.reduce(self._policy.reduce_op, parts, None, call)

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        if kind.startswith("scatter"):
            raise NotImplementedError(
                f"{kind}: is not defined for variables with synchronization ON_READ; use assign, or synchronization ON_WRITE"
            )
        copy = self._copy_here()
        if copy is not None:
            self._write_copy(copy, kind, value, key)
            return self.values[copy]
        if self._policy.aggregation is VariableAggregation.SUM:
            if kind != "assign":
                raise ValueError(
                    f"{type(self).__name__} does not support `{kind}` in cross-replica context when aggregation is set to "
                    "`tf.VariableAggregation.SUM`."
                )
            value = self._share(value)
        self._write_copies(kind, value, key)
        if self._policy.aggregation is VariableAggregation.NONE:
            self._together()  # what the write returns is the aggregate, which does not exist
        return self

    def _share(self, value: Any) -> Any:
        """A share of the value for each replica, so that their sum is the value: those of integers differ by at most one."""
        value = own_value(value)
        array = value if hasattr(value, "at") else np.asarray(value)
        dtype, replicas = self._store.dtype, self._strategy.num_replicas_in_sync
        if kind_of(dtype) not in "iu" or array.dtype.kind not in "iu":
            return (array / replicas).astype(dtype)
        first, (each, rest) = self._strategy._replicas.first, (array // replicas, array % replicas)
        return PerReplica([(each + (first + copy < rest)).astype(dtype) for copy in range(self._store.copies)])

    def _saved(self) -> Any:
        return np.asarray(self._together())

    def _restored(self, array: Any) -> None:
        share = self._share(array) if self._policy.aggregation is VariableAggregation.SUM else array
        self._write_copies("assign", share)


# ---- Variables with one value for several replicas


class AggregatingVariable(_StoredVariable):
    """One value for all replicas, which combine what they write; `CentralStorageStrategy` makes such variables."""

    def __init__(self, strategy: Any, store: Store, policy: VariablePolicy, name: str, shape: TensorShape) -> None:
        super().__init__(strategy, store, policy, name, shape)
        self._single = ResourceVariable(strategy, store, policy, name, shape)

    def _parts(self) -> tuple[Variable, ...]:
        return (self._single,)

    def _here(self) -> Any:
        current_mode(self)
        return shown(self._store, 0)

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        mode = current_mode(self)
        if mode is None or mode.replica is None:
            self._write_copy(0, kind, value, key)
            return self
        if self._policy.aggregation is VariableAggregation.NONE:
            raise ValueError(_AGGREGATION_MISSING.format(type(self).__name__))

        def apply(total: Any) -> None:
            self._write_copy(0, kind, total, key)

        mode.replica._aggregate(self._policy.aggregation, _with_rows(kind, own_value(value), self._store), apply)
        return self


_AGGREGATION_MISSING = (
    "You must specify an aggregation method to update a {0} in Replica Context. You can do so by passing an explicit value "
    "for argument `aggregation` to tf.Variable(..), e.g. `tf.Variable(..., aggregation=tf.VariableAggregation.SUM)`: all "
    "replicas share the one value, so what they write must be combined. Or update the {0} in cross-replica context, with "
    "`tf.distribute.get_replica_context().merge_call(merge_fn, ..)`."
)

# ---- The aggregate of the values that replicas write to a variable


def aggregate(reducer: LocalReducer, replicas: Replicas, aggregation: VariableAggregation, given: Sequence[Any]) -> Any:
    """The aggregate of the values that the replicas of this process, and those of the other workers, write to a variable.

    The very same object on all replicas is its own mean; a sum of it is refused, since it may be meant to count once.

    Raises:
      ValueError: a sum of a plain value other than zero.
    """
    if isinstance(given[0], IndexedSlices):
        return _aggregate_slices(reducer, replicas, aggregation, given)
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return given[0] if replicas.peers is None else reducer.first(given, _WRITE)
    op = reduce_op_of(aggregation)
    if replicas.peers is None and all(part is given[0] for part in given):
        return reduce_undistributed(op, given[0], replicas.total, _NUMBERS)
    return reducer.reduce(op, given, None, _WRITE)


_WRITE = ReplicaCall("write to a variable")
_NUMBERS = (
    "write a NumPy value, such as np.float32(x), if that of each replica counts, or use MEAN or ONLY_FIRST_REPLICA"
)


def _aggregate_slices(
    reducer: LocalReducer, replicas: Replicas, aggregation: VariableAggregation, given: Sequence[Any]
) -> Any:
    """The rows of all replicas one after the other; for a mean, divided by the number of replicas."""
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return given[0] if replicas.peers is None else given[0].map(lambda array: reducer.first([array], _WRITE))
    parts = [IndexedSlices(*reducer.on_host([part.values, part.indices])) for part in given]
    return reduce_slices(reducer, reduce_op_of(aggregation), parts, None, _WRITE)


# ----------------------------------------------------------------------------
# How a variable is created: once, although every replica runs the code that creates it.
# ----------------------------------------------------------------------------


# ---- The first value of a variable, made as a whole or, for tables too large for one process, some rows at a time

_PARTITION = ("partition_shape", "partition_offset")


class InitialValue:
    """What a variable starts with. Calling it makes the whole value, a NumPy array of its own.

    Args:
      given: a value, or a function that returns one.
      dtype: the dtype that the user asked for; None if they did not.
      shape: the shape that the user asked for; None if they did not.
      name: the name of the variable, for messages.
    """

    def __init__(self, given: Any, dtype: np.dtype[Any] | None, shape: TensorShape | None, name: str) -> None:
        self._given, self._name = given, name
        self._whole: Any = None
        self.dtype, self.shape = dtype, shape

    def __call__(self) -> Any:
        """The whole value.

        Raises:
          ValueError: it does not have the shape that the user asked for.
        """
        return self._array(self._given() if callable(self._given) else self._given, self.shape)

    @property
    def made_in_parts(self) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
        """The shape and dtype, if they are known before the value is and a function makes it that takes the place of a part.

        Source: the initializers of `tf.distribute.ParameterServerStrategy`, with `partition_shape` and `partition_offset`.
        """
        if self.dtype is None or self.shape is None or not (callable(self._given) and _takes_partition(self._given)):
            return None
        sizes = [size for size in self.shape.as_list() if size is not None] if self.shape.is_fully_defined() else None
        return None if sizes is None else (tuple(sizes), self.dtype)

    def rows(self, start: int, stop: int) -> Any:
        """The rows from `start` to `stop`, made by themselves.

        A function that takes any named argument may refuse these, or return the whole value all the same; it is cut then.

        Raises:
          ValueError: the function returns neither these rows nor all of them.
        """
        assert self.shape is not None
        _, *inner = self.shape.as_list()
        part, whole = (stop - start, *inner), tuple(self.shape.as_list())
        try:
            made = self._given(partition_shape=part, partition_offset=(start, *[0] * len(inner)))
        except (TypeError, ValueError):
            if set(_PARTITION) <= set(signature(self._given).parameters):
                raise
            made = self._whole = self() if self._whole is None else self._whole
        if part != whole and tuple(np.shape(made)) == whole:
            made = made[start:stop]
        return self._array(made, TensorShape(part))

    def _array(self, value: Any, shape: TensorShape | None) -> Any:
        if isinstance(value, Variable):
            value = value.value()
        array = as_initial(value, self.dtype, self._name)
        if shape is not None and not shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Variable: the initial value's shape ({array.shape}) is not compatible with the explicitly supplied `shape` "
                f"argument ({shape})."
            )
        return array


def _takes_partition(function: Any) -> bool:
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # a function of C that does not say
        return False
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return True
    return all(name in parameters for name in _PARTITION)


# ---- `create_variable`


def create_variable(
    initial_value: Any = None,
    trainable: bool | None = None,
    validate_shape: bool = True,
    caching_device: Any = None,  # noqa: ARG001 - accepted and ignored, as TensorFlow does under a strategy
    name: str | None = None,
    variable_def: Any = None,
    dtype: Any = None,
    import_scope: Any = None,  # noqa: ARG001 - the same
    constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
    shape: Any = None,
    experimental_enable_variable_lifting: bool = True,  # noqa: ARG001 - the same
) -> Variable:
    """The variable that the current strategy makes; see `Variable`."""
    if variable_def is not None:
        raise ValueError("Variable: variable_def is for graphs, which do not exist here; give initial_value")
    if initial_value is None:
        raise ValueError(
            "The `initial_value` arg to `tf.Variable` must be specified: a value, or a function that returns one"
        )
    label = name or "Variable"
    policy = VariablePolicy.of(synchronization, aggregation, trainable, label)
    wanted = None if dtype is None else as_dtype(dtype)
    declared = None if shape is None and validate_shape else TensorShape(shape)
    strategy = get_strategy()

    initial = InitialValue(initial_value, wanted, declared, label)

    def make() -> Variable:
        made: Variable = strategy._create_variable(initial, policy, name=label, dtype=wanted, shape=declared)
        made._constraint = constraint
        return made

    context = modes.stack[-1].replica if modes.stack else None
    if context is None or context._meeting is None:
        return make()
    shared: Variable = context._meeting.created(context._local, _keys(label), f"variable {label}", make)
    return shared


def _keys(name: str) -> tuple[Any, ...]:
    """What a variable is recognized by when another replica runs the code that creates it.

    First the places of the program that lead here, with the objects whose methods they are in and the numbers and texts
    of local variables: two layers of one class create their variables at the same places, and a replica may find the
    first layer built already. Then the places and the objects; then the name alone. Last the places and the name without a
    number at its end, which may be that of the replica.
    """
    frame: FrameType | None = sys._getframe(3)
    path, local = [], []
    while frame is not None and frame.f_globals.get("__name__") != _RUN:
        path.append((id(frame.f_code), frame.f_lasti, id(frame.f_locals.get("self"))))
        local += [(key, x) for key, x in frame.f_locals.items() if isinstance(x, int | str)]
        frame = frame.f_back
    stem = _NUMBER.sub("", name)
    return (name, tuple(path), tuple(local)), (name, tuple(path)), name, ("without a number", stem, tuple(path))


_RUN = "distinput.distribute.core.contexts"
_NUMBER = re.compile(r"_[0-9]+(?=/|$)")


def single(strategy: Any, make_value: Callable[[], Any], policy: VariablePolicy, name: str, shape: Any) -> Variable:
    """A variable with one value, as strategies with one replica have it."""
    return _stored(ResourceVariable, strategy, make_value(), policy, name, shape)


def mirrored(
    strategy: Any, make_value: Callable[[], Any], policy: VariablePolicy, name: str, shape: Any, peers: Peers | None
) -> Variable:
    """A variable with a copy for each replica, all with the value that the chief makes."""
    value = from_chief(peers, make_value, name)
    policy = policy.distributed(name, value.dtype)
    kind = SyncOnReadVariable if policy.on_read else MirroredVariable
    return _stored(kind, strategy, value, policy, name, shape)


def aggregating(
    strategy: Any, make_value: Callable[[], Any], policy: VariablePolicy, name: str, shape: Any
) -> Variable:
    """A variable with one value for several replicas."""
    return _stored(AggregatingVariable, strategy, make_value(), policy, name, shape)


def _stored(
    kind: type[_StoredVariable], strategy: Any, value: Any, policy: VariablePolicy, name: str, shape: Any
) -> Variable:
    store = strategy._open_store(value, policy, name)
    return kind(strategy, store, policy, name, TensorShape(value.shape) if shape is None else shape)


def from_chief(peers: Peers | None, make_value: Callable[[], Any], name: str) -> Any:
    """The value that the chief, worker 0, makes; all workers make one, so that an error stops all of them.

    Raises:
      ValueError: the workers' values differ in shape or dtype.
    """
    if peers is None:
        return make_value()
    description = CallDescription(f"creation of variable {name}")
    own: list[np.ndarray[Any, Any]] = []

    def make() -> tuple[Any, list[np.ndarray[Any, Any]]]:
        own.append(make_value())
        return [dtype_code(own[0].dtype), list(own[0].shape)], own if peers.rank == 0 else []

    found = peers.exchange(description, make)
    for worker, (note, _) in enumerate(found):
        if note != found[0][0]:
            raise ValueError(
                f"Variable {name}: all workers must create it with the same dtype and shape, got {found[0][0]} on worker 0 "
                f"and {note} on worker {worker}"
            )
    return np.array(found[0][1][0])
