# SPDX-License-Identifier: Apache-2.0
"""Variables: a value that a program changes, a part of it, and a key that stands for it."""

from collections.abc import Callable
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.distribute.core.replica_reducer import IndexedSlices
from distinput.distribute.core.replicas import missing
from distinput.distribute.core.values import DistributedValues, LocalOperators, PerReplica
from distinput.distribute.variables.policy import (
    VariableAggregation,
    VariablePolicy,
    VariableSynchronization,
    as_indices,
    as_operand,
)
from distinput.distribute.variables.store import Store, places_of
from distinput.values.leaves import TensorShape, dtype_name

# ---- A key for dictionaries and sets that stands for a variable


class Reference:
    """Equal to another reference if both refer to the very same object.

    Source: the result of `tf.Variable.ref`.
    """

    __slots__ = ("_referent",)

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """The object."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._referent is self._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referent!r}>"


# ---- A part of a variable: `v[1:3]`, whose value can be computed with and whose place can be written to


class VariableSlice(LocalOperators):
    """The part of a variable that an index selects, as it was when it was read, and where it is.

    In arithmetic, in NumPy functions and as an argument it is an array or a scalar.

    Args:
      variable: the variable.
      key: the index.
      value: the selected part of its value.

    >>> import distinput as di
    >>> v = di.Variable([1.0, 2.0, 3.0])
    >>> v[1:].assign([5.0, 6.0]).numpy()
    array([1., 5., 6.], dtype=float32)
    >>> v[0] + 1
    np.float32(2.0)

    Source: slices of `tf.Variable`.
    """

    __slots__ = ("_key", "_value", "_variable")

    def __init__(self, variable: Any, key: Any, value: Any) -> None:
        self._variable, self._key, self._value = variable, key, value

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Write to this part of the variable; return what `Variable.assign` returns."""
        return self._variable._write("slice_assign", value, self._key)

    def assign_add(self, delta: Any, name: str | None = None) -> Any:
        """Add to this part of the variable."""
        return self._variable._write("slice_assign_add", delta, self._key)

    def assign_sub(self, delta: Any, name: str | None = None) -> Any:
        """Subtract from this part of the variable."""
        return self._variable._write("slice_assign_sub", delta, self._key)

    def numpy(self) -> Any:
        """The part as a NumPy array of the caller's own, or a scalar."""
        return np.array(self._value)[()]

    def _here(self) -> Any:
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._value, dtype) if copy else np.asarray(self._value, dtype)

    def __jax_array__(self) -> Any:
        return self._value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._value, name)

    def __repr__(self) -> str:
        return repr(self._value)


# ---- Variables: values that a program changes, with a copy for each replica under a strategy


class _Creating(type):
    """Makes `Variable(...)` ask the current strategy which kind of variable to create."""

    _create: Callable[..., Any]
    """Set by the package, to `create_variable`, which knows the kinds."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return Variable._create(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    @property
    def __signature__(cls) -> Signature:
        """The arguments that a user gives, which `inspect` would take from `__call__`."""
        made = signature(cls.__init__)  # type: ignore[misc]  # of this class alone
        return made.replace(parameters=list(made.parameters.values())[1:])


class Variable(LocalOperators, metaclass=_Creating):
    """A value that a program changes; under a strategy, with a copy for each replica.

    A variable that is created inside `Strategy.scope` or `Strategy.run` belongs to that strategy, which chooses what it
    is; it may be used outside of the scope, but not under another strategy. Outside of all scopes it is a single value.

    In arithmetic, in NumPy functions and as an argument of other libraries a variable is its value.

    Args:
      initial_value: the first value, or a function without arguments that returns it. Under a strategy it is evaluated on
        replica 0 and copied; with several workers, all take the chief's.
      trainable: whether it is a parameter of a model; None means True unless synchronization is ON_READ.
      validate_shape: False lets `assign` change the shape; the same as `shape=None` with an unknown rank.
      caching_device: ignored.
      name: a name; "Variable" if None. The copies of replica i after the first are named "NAME/replica_i".
      variable_def: only None, since there are no graphs.
      dtype: the dtype of the value; None for that of the initial value, where Python floats are float32 and ints int32.
      import_scope: ignored.
      constraint: kept for optimizers, which should apply it to the value after an update.
      synchronization: a `VariableSynchronization`.
      aggregation: a `VariableAggregation`.
      shape: the shape, if it is to be less definite than that of the initial value: None for sizes that `assign` may
        change.
      experimental_enable_variable_lifting: ignored.

    Raises:
      ValueError: no initial value, an unknown or unsupported policy, or a shape that the value does not have.
      TypeError: the initial value cannot become an array of the dtype.

    >>> import distinput as di
    >>> v = di.Variable(1.0)
    >>> v.assign_add(2.0)
    <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>
    >>> with di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    ...     w = di.Variable([1, 2], name="w")
    >>> w
    MirroredVariable:{
      0: <tf.Variable 'w:0' shape=(2,) dtype=int32, numpy=array([1, 2], dtype=int32)>,
      1: <tf.Variable 'w/replica_1:0' shape=(2,) dtype=int32, numpy=array([1, 2], dtype=int32)>
    }

    Source: `tf.Variable`.
    """

    _store: Store
    _policy: VariablePolicy
    _name: str
    _shape: TensorShape
    _strategy: Any
    _constraint: Callable[[Any], Any] | None = None

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        raise TypeError(f"{type(self).__name__}: make variables with distinput.Variable, which chooses their class")

    # ---- what kinds of variables decide

    def _parts(self) -> tuple["Variable", ...]:
        """The variables that `StrategyExtended.update` calls its function with."""
        return (self,)

    def _here(self) -> Any:
        """The value that the running code sees."""
        raise NotImplementedError

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        """Change the value and return what the write method returns.

        Args:
          kind: a key of `UPDATES`.
          value: what to write, which replicas may have to aggregate: a value, or an `IndexedSlices`.
          key: the index of a slice.
        """
        raise NotImplementedError

    # ---- facts

    @property
    def name(self) -> str:
        """The name, with ":0" as in TensorFlow."""
        return f"{self._name}:0"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype; `distinput.string` for byte strings."""
        return self._store.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, None for sizes that may change."""
        return self._shape

    @property
    def trainable(self) -> bool:
        """Whether it is a parameter of a model."""
        return self._policy.trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """When copies are synchronized."""
        return self._policy.synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How values of replicas are combined."""
        return self._policy.aggregation

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that an optimizer should apply to the value after an update."""
        return self._constraint

    @property
    def device(self) -> str:
        """The device of the first copy."""
        return self._store.device(0)

    @property
    def initializer(self) -> None:
        """None: a variable has its first value from the beginning."""
        return None

    @property
    def initial_value(self) -> Any:
        """Refused: the first value is not kept.

        Raises:
          RuntimeError: always, as in TensorFlow's eager mode.
        """
        raise RuntimeError("This property is not supported when eager execution is enabled: initial_value is not kept")

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Declare more of a shape that was declared in part.

        Raises:
          ValueError: it contradicts the declared shape.
        """
        self._shape = self._shape.merge_with(TensorShape(shape))

    def is_initialized(self) -> bool:
        """True: a variable has its first value from the beginning."""
        return True

    def ref(self) -> Reference:
        """A key for dictionaries and sets; `ref().deref()` is the variable."""
        return Reference(self)

    def experimental_ref(self) -> Reference:
        """The same as `ref`."""
        return Reference(self)

    def __hash__(self) -> int:
        raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key.")

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            return missing(self, name)

    # ---- reading

    def value(self) -> Any:
        """The value: an array that must not be modified and that later writes do not change; a scalar without axes."""
        return self._here()

    def read_value(self) -> Any:
        """The same as `value`."""
        return self._here()

    def numpy(self) -> Any:
        """The value as a NumPy array of the caller's own, or a scalar."""
        return np.array(self._on_host())[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._on_host(), dtype) if copy else np.asarray(self._on_host(), dtype)

    def __jax_array__(self) -> Any:
        return self._here()

    def initialized_value(self) -> Any:
        """The same as `value`."""
        return self._here()

    def __getitem__(self, key: Any) -> VariableSlice:
        key = _index(key)
        return VariableSlice(self, key, self._here()[key])

    # ---- writing

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Replace the value.

        Args:
          value: the new value.
          use_locking: ignored; every write is atomic.
          name: ignored.
          read_value: False returns None.

        Returns:
          The variable; in replica context the replica's copy of it.

        Raises:
          ValueError: the shape or the dtype does not fit.
          TypeError: a Python value does not fit the dtype.
        """
        made = self._write("assign", value)
        return made if read_value else None

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value; see `assign`. The shapes must be equal."""
        made = self._write("assign_add", delta)
        return made if read_value else None

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value; see `assign`. The shapes must be equal."""
        made = self._write("assign_sub", delta)
        return made if read_value else None

    def count_up_to(self, limit: int) -> Any:
        """Add 1 and return the value before. Only for variables with one value, as in TensorFlow.

        Raises:
          OutOfRangeError: the value has reached the limit.
          NotImplementedError: the variable has copies.
        """
        raise NotImplementedError(f"count_up_to: a {type(self).__name__} has no single counter; use assign_add")

    def load(self, value: Any, session: Any = None) -> None:
        """The same as `assign`."""
        self._write("assign", value)

    # ---- reading and writing some of the rows: `sparse_read`, `gather_nd`, and the scatter methods

    def _rows(self, what: str, indices: Any) -> Any:
        """The parts at these places, [..., k] for the first k axes."""
        return rows_at(what, self._here(), indices)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """The rows at these places: value [n, ...], indices [...] -> [..., ...].

        Raises:
          TypeError: indices that are not integers.
          InvalidArgumentError: there is no such row.
        """
        return self._rows("sparse_read", as_indices(indices, "sparse_read")[..., None])

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """The parts at these places; the last axis of `indices` has the indices along the first axes of the value.

        Raises:
          As `sparse_read`.
        """
        return self._rows("gather_nd", as_indices(indices, "gather_nd"))

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Add rows to rows of the value.

        Rows that are named twice are added twice. The other scatter methods work alike.

        Args:
          sparse_delta: an `IndexedSlices`; its values are rows of the shape of the variable's rows, or a scalar for all.
          use_locking: ignored; every write is atomic.
          name: ignored.

        Raises:
          TypeError: not an `IndexedSlices`, or indices that are not integers.
          InvalidArgumentError: an index or a shape that does not fit.
          NotImplementedError: the policy does not allow it: ON_READ variables have no scatter methods, and the ones that
            are not sums need aggregation NONE or ONLY_FIRST_REPLICA.
        """
        return self._write("scatter_add", _slices("scatter_add", sparse_delta))

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtract rows from rows of the value. See `scatter_add`."""
        return self._write("scatter_sub", _slices("scatter_sub", sparse_delta))

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiply rows of the value by rows. See `scatter_add`."""
        return self._write("scatter_mul", _slices("scatter_mul", sparse_delta))

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divide rows of the value by rows; integers are rounded towards zero. See `scatter_add`."""
        return self._write("scatter_div", _slices("scatter_div", sparse_delta))

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of the value by the larger of the two, number by number. See `scatter_add`."""
        return self._write("scatter_max", _slices("scatter_max", sparse_delta))

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of the value by the smaller of the two, number by number. See `scatter_add`."""
        return self._write("scatter_min", _slices("scatter_min", sparse_delta))

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of the value. See `scatter_add`."""
        return self._write("scatter_update", _slices("scatter_update", sparse_delta))

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of each array of a batch: value [b, n, ...], indices [b, k], values [b, k, ...]."""
        slices = _slices("batch_scatter_update", sparse_delta)
        if isinstance(slices, DistributedValues):
            return self._write("scatter_nd_update", PerReplica(list(map(_of_batch, slices.values))))
        return self._write("scatter_nd_update", _of_batch(slices))

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add parts to parts of the value.

        Args:
          indices: places, [..., k]: the last axis gives the indices along the first k axes of the variable.
          updates: what to write there, [..., *variable.shape[k:]].
          name: ignored.

        Raises:
          As `scatter_add`.
        """
        return self._write("scatter_nd_add", IndexedSlices(updates, indices))

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract parts from parts of the value. See `scatter_nd_add`."""
        return self._write("scatter_nd_sub", IndexedSlices(updates, indices))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts of the value. See `scatter_nd_add`."""
        return self._write("scatter_nd_update", IndexedSlices(updates, indices))

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts of the value by the larger of the two, number by number. See `scatter_nd_add`."""
        return self._write("scatter_nd_max", IndexedSlices(updates, indices))

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts of the value by the smaller of the two, number by number. See `scatter_nd_add`."""
        return self._write("scatter_nd_min", IndexedSlices(updates, indices))

    # ---- saving

    def _saved(self) -> Any:
        """The value that a checkpoint keeps, a NumPy array."""
        return np.asarray(self._store.read(0))

    def _restored(self, array: Any) -> None:
        """Take a value back that `_saved` returned."""
        self._write_copies("assign", array)

    def _write_copies(self, kind: str, value: Any, key: Any = None) -> None:
        """Change all copies that this process can reach; a distributed value gives each copy its own."""
        parts = value.values if isinstance(value, DistributedValues) and not isinstance(value, Variable) else None
        if parts is None:
            args = self._prepared(kind, value, key)
            for copy in range(self._store.copies):
                self._store.update(copy, kind, *args)
            return
        for copy in range(self._store.copies):
            self._write_copy(copy, kind, parts[copy], key)

    def _write_copy(self, copy: int, kind: str, value: Any, key: Any = None) -> None:
        self._store.update(copy, kind, *self._prepared(kind, value, key))

    def _prepared(self, kind: str, value: Any, key: Any) -> tuple[Any, ...]:
        """The arguments of an update, converted and checked as far as the store need not know of it."""
        dtype = self._store.dtype
        if isinstance(value, Variable):
            value = value.value()
        if kind.startswith("scatter"):
            if not isinstance(value, IndexedSlices):
                raise TypeError(f"{kind}: every replica must give IndexedSlices, got {value!r}")
            return as_indices(value.indices, kind), as_operand(value.values, dtype, kind)
        operand = as_operand(value, dtype, kind)
        if kind == "assign":
            if operand.shape != self._store.shape and not self._shape.is_compatible_with(operand.shape):
                raise ValueError(
                    f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape {self._shape}, and "
                    f"the assigned value shape {tuple(operand.shape)} are incompatible."
                )
            return (np.array(operand) if isinstance(operand, np.ndarray) else operand,)
        return (operand,) if key is None else (key, operand)

    def __repr__(self) -> str:
        return _told(self, self._on_host())

    def _on_host(self) -> Any:
        """The value where NumPy can look at it."""
        value = self._here()
        if type(value) is np.ndarray:
            return value
        to_host = getattr(getattr(self, "_store", None), "to_host", None)  # a sharded variable has no store of its own
        return value if to_host is None else to_host(value)


def _slices(what: str, value: Any) -> Any:
    if isinstance(value, IndexedSlices | DistributedValues):
        return value
    raise TypeError(
        f"{what}: sparse_delta is not IndexedSlices: {value!r}; write distinput.IndexedSlices(values, indices)"
    )


def _of_batch(slices: Any) -> IndexedSlices:
    """The slices of each array of a batch as places in all of them: indices [b, k] -> [b, k, 2]."""
    indices = as_indices(slices.indices, "batch_scatter_update")
    batch = np.indices(indices.shape)[:-1]
    return IndexedSlices(slices.values, np.stack([*batch, indices], axis=-1))


def rows_at(what: str, value: Any, indices: Any) -> Any:
    """The parts of a value at these places, [..., k] for the first k axes.

    Raises:
      InvalidArgumentError: there are none.
    """
    return value[places_of(what, indices, value)]


def _told(variable: Variable, value: Any) -> str:
    """A variable and its value as TensorFlow shows them."""
    array = np.asarray(value)
    text = repr(array) if array.ndim else repr(array.item())
    return f"<tf.Variable '{variable.name}' shape={variable.shape} dtype={dtype_name(variable.dtype)}, numpy={text}>"


def _no_in_place(name: str, method: str) -> Callable[..., Any]:
    def refused(self: Variable, other: Any) -> Any:  # noqa: ARG001 - refused whatever it is
        raise RuntimeError(
            f"`variable {name}= value` with `tf.Variable`s is not supported. Use {method} to modify the variable, or `out = "
            f"variable {name} value` if you need to get a new output Tensor."
        )

    return refused


_SIGNS = {
    "add": "+", "and": "&", "floordiv": "//", "lshift": "<<", "matmul": "@", "mod": "%", "mul": "*", "or": "|", "pow": "**",
    "rshift": ">>", "sub": "-", "truediv": "/", "xor": "^",
}  # fmt: skip
for _name, _sign in _SIGNS.items():
    _own = _name in ("add", "sub")
    _method = f"`variable.assign_{_name}(value)`" if _own else f"`variable.assign(variable {_sign} value)`"
    setattr(Variable, f"__i{_name}__", _no_in_place(_sign, _method))


def _index(key: Any) -> Any:
    """An index in which variables and lists are arrays."""
    if isinstance(key, tuple):
        return tuple([_index(part) for part in key])
    return np.asarray(key) if isinstance(key, Variable | VariableSlice | list) else key
