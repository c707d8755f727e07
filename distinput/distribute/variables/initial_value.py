# SPDX-License-Identifier: Apache-2.0
"""The first value of a variable, made as a whole or, for tables too large for one process, some rows at a time."""

from inspect import Parameter, signature
from typing import Any

import numpy as np

from distinput.core.shape import TensorShape
from distinput.distribute.variables.conversion import as_initial
from distinput.distribute.variables.variable import Variable

__all__ = ["InitialValue"]

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
