# SPDX-License-Identifier: Apache-2.0
"""Variables: values that a program changes, with a copy for each replica under a strategy."""

from collections.abc import Callable
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.core.leaves import dtype_name
from distinput.core.shape import TensorShape
from distinput.distribute.missing import missing
from distinput.distribute.operators import LocalOperators
from distinput.distribute.values import DistributedValues
from distinput.distribute.variables.conversion import as_indices, as_operand
from distinput.distribute.variables.indexed_slices import IndexedSlices
from distinput.distribute.variables.policy import VariableAggregation, VariablePolicy, VariableSynchronization
from distinput.distribute.variables.reference import Reference
from distinput.distribute.variables.row_methods import RowMethods
from distinput.distribute.variables.store import Store
from distinput.distribute.variables.variable_slice import VariableSlice

__all__ = ["Variable"]


class _Creating(type):
    """Makes `Variable(...)` ask the current strategy which kind of variable to create."""

    _create: Callable[..., Any]
    """Set by `creation`, which knows the kinds."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return Variable._create(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    @property
    def __signature__(cls) -> Signature:
        """The arguments that a user gives, which `inspect` would take from `__call__`."""
        made = signature(cls.__init__)  # type: ignore[misc]  # of this class alone
        return made.replace(parameters=list(made.parameters.values())[1:])


class Variable(RowMethods, LocalOperators, metaclass=_Creating):
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


for _name, _sign, _method in (
    ("add", "+", "`variable.assign_add(value)`"),
    ("sub", "-", "`variable.assign_sub(value)`"),
    *[
        (name, sign, f"`variable.assign(variable {sign} value)`")
        for name, sign in (
            ("and", "&"),
            ("floordiv", "//"),
            ("lshift", "<<"),
            ("matmul", "@"),
            ("mod", "%"),
            ("mul", "*"),
            ("or", "|"),
            ("pow", "**"),
            ("rshift", ">>"),
            ("truediv", "/"),
            ("xor", "^"),
        )
    ],
):
    setattr(Variable, f"__i{_name}__", _no_in_place(_sign, _method))


def _index(key: Any) -> Any:
    """An index in which variables and lists are arrays."""
    if isinstance(key, tuple):
        return tuple([_index(part) for part in key])
    return np.asarray(key) if isinstance(key, Variable | VariableSlice | list) else key
