# SPDX-License-Identifier: Apache-2.0
"""How a variable is created: once, although every replica runs the code that creates it."""

import re
import sys
from collections.abc import Callable
from inspect import Parameter, signature
from types import FrameType
from typing import Any

import numpy as np

from distinput.distribute.core.current import get_strategy
from distinput.distribute.core.modes import modes
from distinput.distribute.core.replicas import CallDescription, Peers
from distinput.distribute.variables.conversion import as_initial
from distinput.distribute.variables.kinds import (
    AggregatingVariable,
    MirroredVariable,
    ResourceVariable,
    SyncOnReadVariable,
)
from distinput.distribute.variables.policy import VariablePolicy
from distinput.distribute.variables.variable import Variable
from distinput.values.leaves import as_dtype
from distinput.values.shape import TensorShape

__all__ = ["InitialValue", "aggregating", "create_variable", "from_chief", "mirrored", "single"]

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


# ---- How a variable is created: once, although every replica runs the code that creates it


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


_RUN = "distinput.distribute.core.run"
_NUMBER = re.compile(r"_[0-9]+(?=/|$)")


def single(strategy: Any, make_value: Callable[[], Any], policy: VariablePolicy, name: str, shape: Any) -> Variable:
    """A variable with one value, as strategies with one replica have it."""
    value = make_value()
    store = strategy._open_store(value, policy, name)
    return ResourceVariable(store, 0, policy, name, TensorShape(value.shape) if shape is None else shape, strategy)


def mirrored(
    strategy: Any, make_value: Callable[[], Any], policy: VariablePolicy, name: str, shape: Any, peers: Peers | None
) -> Variable:
    """A variable with a copy for each replica, all with the value that the chief makes."""
    value = from_chief(peers, make_value, name)
    policy = policy.distributed(name, value.dtype)
    store = strategy._open_store(value, policy, name)
    kind = SyncOnReadVariable if policy.on_read else MirroredVariable
    return kind(strategy, store, policy, name, TensorShape(value.shape) if shape is None else shape)


def aggregating(
    strategy: Any, make_value: Callable[[], Any], policy: VariablePolicy, name: str, shape: Any
) -> Variable:
    """A variable with one value for several replicas."""
    value = make_value()
    store = strategy._open_store(value, policy, name)
    return AggregatingVariable(strategy, store, policy, name, TensorShape(value.shape) if shape is None else shape)


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
        return [own[0].dtype.str, list(own[0].shape)], own if peers.rank == 0 else []

    found = peers.exchange(description, make)
    for worker, (note, _) in enumerate(found):
        if note != found[0][0]:
            raise ValueError(
                f"Variable {name}: all workers must create it with the same dtype and shape, got {found[0][0]} on worker 0 "
                f"and {note} on worker {worker}"
            )
    return np.array(found[0][1][0])
