# SPDX-License-Identifier: Apache-2.0
"""How the copies of a variable are kept in step, and how what users give becomes an array of its dtype."""

from enum import Enum
from typing import Any, Self

import numpy as np

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.leaves import (
    STRING,
    as_dtype,
    as_eager_leaf,
    as_leaf,
    as_wide_leaf,
    cast_within,
    dtype_name,
    members_of,
)

# ----------------------------------------------------------------------------
# What users give to a variable becomes an array of the variable's dtype.
#
# Python numbers and NumPy arrays are converted if nothing is lost in kind: integers fit into integers, floats and complex
# numbers, floats into floats and complex numbers. Other arrays, such as JAX's, stay what they are.
# ----------------------------------------------------------------------------


_INTO = {"b": "b", "i": "iufc", "u": "iufc", "f": "fc", "c": "c", "O": "O"}
"""For each kind of dtype, the kinds that it may become."""
_HOST = (bool, bytes, complex, float, int, list, np.generic, np.ndarray, range, str, tuple)


def kind_of(dtype: np.dtype[Any]) -> str:
    """The kind of a dtype, also of the floats and integers of few bits that other packages add to NumPy."""
    if dtype.kind != "V":
        return dtype.kind
    name = dtype.name
    return "f" if "float" in name else "u" if name.startswith("uint") else "i" if name.startswith("int") else "V"


def as_initial(value: Any, dtype: np.dtype[Any] | None, what: str) -> Any:
    """The first value of a variable: a NumPy array of its own, of the dtype asked for or of TensorFlow's default.

    Raises:
      TypeError: the value cannot become an array of this dtype.
    """
    with np.errstate(over="ignore"):  # floats that `dtype` may hold; they are taken from `value` below
        plain = _without_gradient(value)
        leaf = as_eager_leaf(plain) if dtype is None else as_wide_leaf(plain, dtype)
    array = np.asarray(leaf, STRING) if isinstance(leaf, bytes) else np.asarray(leaf)
    if dtype is None or (dtype == array.dtype and _is_as_given(value, array)):
        return np.array(array)
    _check_kind(value, array.dtype, dtype, what)
    return _cast(value, array, dtype)


def as_operand(value: Any, dtype: np.dtype[Any], what: str) -> Any:
    """A value to compute with or to assign, as an array of the dtype; it may share memory with `value`.

    Raises:
      TypeError: a Python value cannot become an array of this dtype.
      ValueError: an array has a dtype that does not fit.
    """
    if type(value) is np.ndarray and value.dtype == dtype and dtype != STRING:
        return value
    if isinstance(value, _HOST):
        with np.errstate(over="ignore"):  # as above
            leaf = as_wide_leaf(value, dtype)
        array = np.asarray(leaf, STRING) if isinstance(leaf, bytes) else np.asarray(leaf)
    elif not isinstance(getattr(value, "dtype", None), np.dtype) or not hasattr(value, "shape"):
        array = np.asarray(as_leaf(_without_gradient(value)))
    else:
        array = value  # of another library, or traced: it is not converted by way of NumPy
    if array.dtype == dtype and _is_as_given(value, array):
        return array
    _check_kind(value, array.dtype, dtype, what)
    return _cast(value, array, dtype)


def as_indices(value: Any, what: str) -> Any:
    """Integers that point into an axis.

    Raises:
      TypeError: they are not integers.
    """
    array = value if not isinstance(value, _HOST) and hasattr(value, "at") else np.asarray(_without_gradient(value))
    if array.dtype.kind not in "iu":
        if array.size:
            raise TypeError(f"{what}: indices must be integers, got {array.dtype}")
        array = array.astype(np.int32)
    return array


def _without_gradient(value: Any) -> Any:
    """The values of a tensor of PyTorch on the host, wherever it is and whatever it is part of; anything else itself."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    return tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy()  # NumPy has no bfloat16


def _cast(value: Any, array: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu" and isinstance(value, int):
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise TypeError(f"Cannot convert {value} to a value of dtype {dtype}: it is out of range")
        return np.array(value, dtype)
    if dtype.kind in "fc" and _has_floats(value):
        array = np.array(value)  # the numbers themselves, which have more digits than float32
    if not isinstance(array, _HOST):
        return array.astype(dtype)
    try:
        return cast_within(array, dtype)
    except InvalidArgumentError:
        raise TypeError(f"Cannot convert {value} to a value of dtype {dtype}: it is out of range") from None


def _is_as_given(value: Any, array: Any) -> bool:
    """Whether no float of Python has become infinite."""
    return not isinstance(value, float | list | tuple) or array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _has_floats(value: Any) -> bool:
    """Whether it is a float of Python, or a list of numbers among which is one."""
    if not isinstance(value, list | tuple):
        return isinstance(value, float | complex)
    kinds = set(map(type, members_of(value)))
    return float in kinds and all(issubclass(kind, int | float | complex | np.number) for kind in kinds)


def _check_kind(value: Any, given: np.dtype[Any], dtype: np.dtype[Any], what: str) -> None:
    kind = kind_of(given)
    if kind_of(dtype) in _INTO.get(kind, kind):
        return
    if isinstance(value, list | tuple) and np.shape(value)[-1:] == (0,):  # an empty list has no dtype of its own
        return
    if hasattr(value, "dtype"):
        raise ValueError(
            f"{what}: Tensor conversion requested dtype {dtype_name(dtype)} for Tensor with dtype {dtype_name(given)}; "
            f"convert it first, with x.astype({dtype_name(as_dtype(dtype))!r})"
        )
    raise TypeError(f"{what}: Cannot convert {value!r} to EagerTensor of dtype {dtype_name(dtype)}")


# ----------------------------------------------------------------------------
# How the copies of a variable are kept in step: when they are synchronized, and how writes of replicas are combined.
# ----------------------------------------------------------------------------


class VariableSynchronization(Enum):
    """When the copies of a distributed variable are synchronized.

    >>> import distinput as di
    >>> di.VariableSynchronization.ON_READ.name
    'ON_READ'

    Source: `tf.VariableSynchronization`.
    """

    AUTO = 0
    """The strategy chooses; all strategies here choose ON_WRITE."""
    NONE = 1
    """Never; refused under a strategy with copies."""
    ON_WRITE = 2
    """Each write keeps the copies equal, if it is made in cross-replica context or aggregated."""
    ON_READ = 3
    """Each replica writes its own copy; a read in cross-replica context aggregates the copies."""


class VariableAggregation(Enum):
    """How values of a variable from different replicas are combined.

    >>> import distinput as di
    >>> di.VariableAggregation("MEAN") is di.VariableAggregation.MEAN
    True

    Source: `tf.VariableAggregation`.
    """

    NONE = 0
    """They are not: each replica writes its own copy."""
    SUM = 1
    """Their sum."""
    MEAN = 2
    """Their mean."""
    ONLY_FIRST_REPLICA = 3
    """The value of replica 0."""

    @classmethod
    def _missing_(cls, value: object) -> "VariableAggregation | None":
        return cls.__members__.get(value) if isinstance(value, str) else None


@dataclass(frozen=True)
class VariablePolicy:
    """The synchronization, the aggregation, and whether an optimizer should train the variable.

    Args:
      synchronization: when copies are synchronized.
      aggregation: how values of replicas are combined.
      trainable: whether it is a parameter of a model.

    >>> import distinput as di
    >>> policy = VariablePolicy.of("AUTO", di.VariableAggregation.SUM, None)
    >>> policy.trainable, policy.distributed("w", np.dtype("int32")).synchronization.name
    (True, 'ON_WRITE')
    """

    synchronization: VariableSynchronization = VariableSynchronization.AUTO
    aggregation: VariableAggregation = VariableAggregation.NONE
    trainable: bool = True

    @classmethod
    def of(cls, synchronization: Any, aggregation: Any, trainable: bool | None, name: str = "Variable") -> Self:
        """The policy of what a user gave; None means the default.

        Raises:
          ValueError: an unknown synchronization or aggregation.
        """
        when = _member(VariableSynchronization, synchronization, VariableSynchronization.AUTO, "synchronization", name)
        how = _member(VariableAggregation, aggregation, VariableAggregation.NONE, "aggregation", name)
        return cls(when, how, when is not VariableSynchronization.ON_READ if trainable is None else bool(trainable))

    def distributed(self, name: str, dtype: np.dtype[Any]) -> "VariablePolicy":
        """The policy under a strategy that keeps a copy for each replica.

        Raises:
          ValueError: synchronization is NONE, or integers would have to be averaged.
        """
        if self.synchronization is VariableSynchronization.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change the "
                f"`synchronization` for variable: {name}"
            )
        if self.aggregation is VariableAggregation.MEAN and kind_of(dtype) != "f":
            raise ValueError(
                "creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, please "
                f"use a different aggregation or dtype (variable {name}, dtype {dtype})"
            )
        when = VariableSynchronization.ON_READ if self.on_read else VariableSynchronization.ON_WRITE
        return VariablePolicy(when, self.aggregation, self.trainable)

    @property
    def on_read(self) -> bool:
        """True if copies are combined only when they are read in cross-replica context."""
        return self.synchronization is VariableSynchronization.ON_READ

    @property
    def reduce_op(self) -> ReduceOp:
        """The reduction that combines values.

        Raises:
          ValueError: the aggregation is not a reduction.
        """
        return reduce_op_of(self.aggregation)


def reduce_op_of(aggregation: VariableAggregation) -> ReduceOp:
    """SUM or MEAN as a `ReduceOp`.

    Raises:
      ValueError: the aggregation is neither.
    """
    if aggregation is VariableAggregation.SUM:
        return ReduceOp.SUM
    if aggregation is VariableAggregation.MEAN:
        return ReduceOp.MEAN
    raise ValueError(
        f"Could not convert from `tf.VariableAggregation` {aggregation.name} to `tf.distribute.ReduceOp` type: the copies "
        "of this variable differ and have no common value; create it with aggregation=SUM, MEAN or ONLY_FIRST_REPLICA, or "
        "read the copies with `strategy.experimental_local_results`"
    )


def _member(kind: type[Any], given: Any, default: Any, what: str, name: str) -> Any:
    if given is None:
        return default
    if isinstance(given, kind):
        return given
    by_name = kind.__members__.get(given) if isinstance(given, str) else None
    found = by_name or next((member for member in kind if member.value == given), None)
    if found is None:
        raise ValueError(
            f"Invalid variable {what} mode: {given} for variable: {name}; use one of {', '.join(kind.__members__)}"
        )
    return found
