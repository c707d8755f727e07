# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: ARG001 - the arguments of tf.function
"""`distinput.function`: what `tf.function` decorates runs here as the Python that it is."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from distinput.distribute.core.values import DistributedValues
from distinput.distribute.input.dealing import PerReplicaSpec
from distinput.tf.tensors import convert_to_tensor
from distinput.values.leaves import dtype_of, shape_of
from distinput.values.nest import structure_of
from distinput.values.spec import TensorSpec, TypeSpec

__all__ = ["function"]

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
