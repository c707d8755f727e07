# SPDX-License-Identifier: Apache-2.0
"""The few functions of TensorFlow that input code and training loops name: NumPy underneath, with TensorFlow's dtypes.

What a function takes from JAX stays with JAX, so that the same code runs while `TPUStrategy` compiles it. Every other
function of TensorFlow is left to NumPy; its name says so ("What to change" in docs/tensorflow.md).
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, overload

import numpy as np

from distinput.distribute.core.values import DistributedValues
from distinput.distribute.devices import device_name as checked_device
from distinput.distribute.input.dealing import PerReplicaSpec
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import (
    STRING,
    as_dtype,
    as_eager_leaf,
    as_wide_leaf,
    cast_within,
    dtype_name,
    dtype_of,
    shape_of,
)
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import TensorSpec, TypeSpec

# ruff: noqa: ARG001, ARG004, N801 - names and arguments of TensorFlow


_RANGES = tuple(np.dtype(code) for code in ("i4", "i8", "f4", "f8"))
"""From weakest to strongest, as `tf.range` chooses among the dtypes of its arguments."""


class _TensorType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.ndarray | np.generic | bytes) or _is_elsewhere(instance)


class Tensor(metaclass=_TensorType):
    """The type of values, for `isinstance`: NumPy arrays and scalars, bytes, and arrays of JAX.

    >>> import distinput as di
    >>> isinstance(di.constant(1.0), di.Tensor), isinstance(1.0, di.Tensor)
    (True, False)

    Source: `tf.Tensor`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise TypeError("Tensor: values are made with constant, or with NumPy; the name is for isinstance alone")


class device:
    """Name a device for a block of code. Values stay in the memory of the host; a strategy puts them on its devices.

    The name is checked, and does nothing else.

    Args:
      device_name: such as "CPU:0"; None for no device.

    Raises:
      ValueError: it is not the name of a device.

    >>> import distinput as di
    >>> with di.device("/GPU:0"):
    ...     di.constant([1, 2])
    array([1, 2], dtype=int32)

    Source: `tf.device`.
    """

    def __init__(self, device_name: str | None) -> None:
        self.name = None if device_name is None else checked_device(device_name)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def constant(value: Any, dtype: Any = None, shape: Sequence[int] | None = None, name: str = "Const") -> Any:
    """A NumPy array, scalar or bytes. Python's numbers become int32 and float32, as in TensorFlow.

    Args:
      value: a number, text, bytes, an array, or lists of them.
      dtype: the dtype; None for that of `value`.
      shape: the shape; a single number fills it.
      name: ignored.

    Raises:
      TypeError: it cannot be made an array, or not of this dtype.
      ValueError: it does not fill the shape.

    >>> import distinput as di
    >>> di.constant([1.0, 2.0]).dtype, di.constant(1).dtype, di.constant(7, di.int64, [2])
    (dtype('float32'), dtype('int32'), array([7, 7]))

    Source: `tf.constant`.
    """
    made = convert_to_tensor(value, dtype)
    if made is value and isinstance(made, np.ndarray):
        made = made.copy()
    if shape is None:
        return made
    array = np.asarray(made, STRING if isinstance(made, bytes) else None)
    return np.full(tuple(shape), made, array.dtype)[()] if array.size == 1 else array.reshape(shape)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Any:
    """As `constant`, but an array that has the right dtype is returned as it is.

    Args:
      value: as for `constant`; variables and arrays of JAX too.
      dtype: the dtype; None for that of `value`.
      dtype_hint: used where `value` can have it.
      name: ignored.

    Raises:
      TypeError: it cannot be made an array, or not of this dtype.

    >>> import distinput as di
    >>> di.convert_to_tensor([1, 2], dtype_hint="float64")
    array([1., 2.])

    Source: `tf.convert_to_tensor`.
    """
    if _is_elsewhere(value):
        return value if dtype is None else value.astype(np.dtype(getattr(dtype, "as_numpy_dtype", dtype)))
    wanted = dtype if dtype is not None else dtype_hint
    if wanted is None:
        return as_eager_leaf(value)
    to = as_dtype(wanted)
    with np.errstate(over="ignore"):  # floats that `to` may hold; they are taken from `value` below
        made = np.asarray(value, to)[()] if _beyond_int64(value, to) else as_wide_leaf(value, to)
    have = STRING if isinstance(made, bytes) else made.dtype
    is_array = isinstance(value, np.ndarray | np.generic)
    if have == to and (is_array or to.kind != "f" or np.isfinite(made).all()):
        return made
    if STRING in (have, to) or not (is_array or _can_be(have, to) or (have != STRING and not made.size)):
        if dtype is None:
            return made
        raise TypeError(f"Cannot convert {value!r} to a value of dtype {to}; give numbers of this kind, or use astype")
    try:
        return cast_within(np.asarray(value if not is_array else made), to)[()]
    except InvalidArgumentError:
        if dtype is None:
            return as_eager_leaf(value)
        raise TypeError(f"Cannot convert {value!r} to a value of dtype {to}: it is out of range") from None


def _can_be(have: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether numbers of Python may become a dtype: integers any integers, and integers and floats any floats."""
    if np.can_cast(have, to, "same_kind") or (have.kind, to.kind) == ("i", "u"):
        return True
    return to.kind == "V" and (have.kind in "iu" or (have.kind == "f" and "float" in to.name))  # of ml_dtypes


def _beyond_int64(value: Any, to: np.dtype[Any]) -> bool:
    """Whether the value is an integer of Python that uint64 alone can hold."""
    return to == np.uint64 and type(value) is int and 2**63 <= value < 2**64


def identity(input: Any, name: str | None = None) -> Any:
    """A copy of a value.

    >>> import distinput as di
    >>> di.identity([1, 2])
    array([1, 2], dtype=int32)

    Source: `tf.identity`.
    """
    made = convert_to_tensor(input)
    return made.copy() if isinstance(made, np.ndarray) else made  # nothing else can be modified


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Any:
    """Numbers from `start` up to `limit`, which is left out; `range(limit)` begins at 0.

    >>> import distinput as di
    >>> di.range(3), di.range(1, 2, 0.5)
    (array([0, 1, 2], dtype=int32), array([1. , 1.5], dtype=float32))

    Source: `tf.range`.
    """
    first, last = (0, start) if limit is None else (start, limit)
    given = [convert_to_tensor(number) for number in (first, last, delta)]
    if dtype is None:
        kinds = [number.dtype for number in given]
        to = max(kinds, key=lambda kind: _RANGES.index(kind) if kind in _RANGES else -1)
    else:
        to = as_dtype(dtype)
    return np.arange(*[number.astype(to) for number in given], dtype=to)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    """The same numbers in another shape.

    >>> import distinput as di
    >>> di.reshape(di.range(4), (2, -1))
    array([[0, 1],
           [2, 3]], dtype=int32)

    Source: `tf.reshape`.
    """
    made = convert_to_tensor(tensor)
    return np.array([made], STRING).reshape(shape) if isinstance(made, bytes) else made.reshape(shape)


def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The sum over all axes or some, in the dtype of the numbers. What is left of a ragged tensor may be ragged.

    Raises:
      InvalidArgumentError: bools or strings are no numbers, or `keepdims` of a ragged tensor.

    >>> import distinput as di
    >>> di.reduce_sum([[1, 2], [3, 4]], axis=0)
    array([4, 6], dtype=int32)

    Source: `tf.reduce_sum`.
    """
    made, axes = _numbers("reduce_sum", input_tensor, keepdims), _axes(axis)
    if isinstance(made, RaggedTensor):
        return made.sum(axis=axes)
    return made.sum(axis=axes, dtype=made.dtype, keepdims=keepdims)


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The mean over all axes or some, in the dtype of the numbers: the mean of integers is an integer, as in TensorFlow.

    Means of ragged integers are float64, as there.

    Raises:
      InvalidArgumentError: bools or strings are no numbers, or `keepdims` of a ragged tensor.

    >>> import distinput as di
    >>> di.reduce_mean([1.0, 2.0]), di.reduce_mean([1, 2])
    (np.float32(1.5), np.int32(1))

    Source: `tf.reduce_mean`, which cuts off the fraction too.
    """
    made, axes = _numbers("reduce_mean", input_tensor, keepdims), _axes(axis)
    if isinstance(made, RaggedTensor):
        return made.mean(axis=axes)
    if made.dtype.kind in "iu" and not _is_elsewhere(made):
        return _mean_of_integers(made, axes, keepdims)
    return made.mean(axis=axes, keepdims=keepdims).astype(made.dtype)


def _numbers(op: str, value: Any, keepdims: bool) -> Any:
    """The value as numbers that can be added."""
    made = convert_to_tensor(value)
    dtype = dtype_of(made)
    if dtype == STRING or dtype.kind == "b":
        cure = "; count what is true with np.count_nonzero, or convert with .astype" if dtype.kind == "b" else ""
        raise InvalidArgumentError(f"{op}: input_tensor must be numbers, got {dtype_name(dtype)}{cure}")
    if keepdims and isinstance(made, RaggedTensor):
        raise InvalidArgumentError(f"{op}: keepdims must be False for a ragged tensor; reshape what is left instead")
    return made


def _mean_of_integers(made: Any, axis: Any, keepdims: bool) -> Any:
    """The mean without its fraction, also where the sum does not fit into 64 bits; that of nothing is 0."""
    count = max(1, made.size // max(1, made.sum(axis=axis).size))
    wide = made.astype(np.uint64 if made.dtype.kind == "u" else np.int64, copy=False)
    parts, rest = np.divmod(wide, count)
    more, left = np.divmod(rest.sum(axis=axis, keepdims=keepdims), count)
    low = parts.sum(axis=axis, keepdims=keepdims) + more
    return (low + ((low < 0) & (left > 0))).astype(made.dtype)  # cut off towards zero


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _is_elsewhere(value: object) -> bool:
    """Whether it is an array of a library other than NumPy, such as JAX."""
    return hasattr(value, "__array_namespace__") and not isinstance(value, np.ndarray | np.generic)


# ----------------------------------------------------------------------------
# `distinput.function`: what `tf.function` decorates runs here as the Python that it is.
# ----------------------------------------------------------------------------


# ruff: noqa: ARG001 - the arguments of tf.function


F = TypeVar("F", bound=Callable[..., Any])


@overload
def function(
    func: F,
    input_signature: Sequence[Any] | None = ...,
    autograph: bool = ...,
    jit_compile: bool | None = ...,
    reduce_retracing: bool = ...,
) -> F: ...
@overload
def function(
    func: None = ...,
    input_signature: Sequence[Any] | None = ...,
    autograph: bool = ...,
    jit_compile: bool | None = ...,
    reduce_retracing: bool = ...,
) -> Callable[[F], F]: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Return the function as it is: it runs as Python, each time, and `if` and loops are plain.

    `TPUStrategy.run` compiles functions whether or not they are decorated. Works with and without parentheses, on
    methods too.

    Args:
      func: the function; None returns a decorator.
      input_signature: a spec, or a nest of specs, for each argument but `self`. Then another function is returned, which
        converts Python's numbers and lists to the dtypes of the signature, refuses arrays of another dtype or shape, and
        has `python_function` and `get_concrete_function`.
      autograph: ignored.
      jit_compile: ignored; see `TPUStrategy`.
      reduce_retracing: ignored: nothing is traced.
      experimental_implements: ignored.
      experimental_autograph_options: ignored.
      experimental_attributes: ignored.
      experimental_relax_shapes: ignored.
      experimental_compile: ignored.
      experimental_follow_type_hints: ignored.

    Raises:
      TypeError: `func` is not a function, or `input_signature` is not a list or tuple.

    >>> import distinput as di
    >>> @di.function(jit_compile=True)
    ... def step(x):
    ...     return 2 * x
    >>> step(3)
    6
    >>> @di.function(input_signature=[di.TensorSpec([None], di.float32)])
    ... def total(x):
    ...     return x.sum()
    >>> total([1, 2])
    np.float32(3.0)

    Source: `tf.function`.
    """
    if input_signature is not None and not isinstance(input_signature, list | tuple):
        raise TypeError(
            f"function: input_signature must be a list or tuple with a spec for each argument, got {input_signature!r}"
        )
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if not callable(func):
        raise TypeError(f"function: needs a function, got {func!r}")
    return func if input_signature is None else _signed(func, tuple(input_signature))


def _signed(python_function: Callable[..., Any], input_signature: tuple[Any, ...]) -> Callable[..., Any]:
    """A function whose arguments are checked; a plain function, so that it can be a method, be pickled and be compiled."""
    names = _positional(python_function)
    own = 1 if len(names) > len(input_signature) and names[0] == "self" else 0
    what = getattr(python_function, "__name__", "function")

    @functools.wraps(python_function)
    def signed(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for name in names[len(given) :]:
            if name not in kwargs:
                break
            given.append(kwargs.pop(name))
        if len(given) != own + len(input_signature) or kwargs:
            told = f"{len(given) - own} by position{''.join(f', {name}=' for name in kwargs)}"
            raise TypeError(f"{what}: its input_signature is of {len(input_signature)} arguments, got {told}")
        for i, spec in enumerate(input_signature):
            given[own + i] = _fit(f"{what}: argument {i}", spec, given[own + i])
        return python_function(*given)

    facts = {"python_function": python_function, "input_signature": input_signature}
    vars(signed).update(facts, get_concrete_function=functools.partial(_itself, signed))
    return signed


def _itself(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """What `get_concrete_function` returns: the function, which runs as Python for all arguments."""
    return function


def _positional(fn: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # a function of C that does not say
        return ()
    return tuple([one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)])


def _fit(what: str, spec: Any, value: Any) -> Any:
    """The argument, converted where the spec allows it.

    Raises:
      TypeError: it does not fit the spec.
    """
    structure = structure_of(spec, lists=True, is_leaf=lambda one: isinstance(one, TypeSpec | PerReplicaSpec))
    if structure.is_leaf:
        return _fit_leaf(what, spec, value)
    given = structure_of(value, lists=True, is_leaf=lambda one: isinstance(one, DistributedValues))
    leaves = structure.flatten(spec)
    try:
        values = structure.flatten(value)
    except (TypeError, ValueError, KeyError) as error:
        raise TypeError(f"{what} must have the structure {structure}, got {given}") from error
    return structure.build([_fit_leaf(what, *pair) for pair in zip(leaves, values, strict=True)])


def _fit_leaf(what: str, spec: Any, value: Any) -> Any:
    if isinstance(spec, PerReplicaSpec):
        if not isinstance(value, DistributedValues) or len(value.values) != len(spec.value_specs):
            raise TypeError(f"{what} must be a distributed value of {len(spec.value_specs)} replicas, got {value!r}")
        for one, part in zip(spec.value_specs, value.values, strict=True):
            _fit_leaf(what, one, part)
        return value
    if not isinstance(spec, TensorSpec):
        if isinstance(spec, TypeSpec) and not spec.holds(value):
            raise TypeError(f"{what} must fit {spec}, got {value!r}")
        return value
    if hasattr(value, "shape") and hasattr(value, "dtype"):  # arrays of any library, variables
        made, shape, dtype = value, tuple(value.shape), np.dtype(value.dtype)
    else:
        try:
            made = convert_to_tensor(value, spec.dtype)
        except TypeError as error:
            raise TypeError(f"{what} must fit {spec}, got {value!r}") from error
        shape, dtype = shape_of(made), dtype_of(made)
    if not spec.fits(shape, dtype):
        raise TypeError(f"{what} must fit {spec}, got shape {list(shape)} of {dtype}")
    return made
