# SPDX-License-Identifier: Apache-2.0
"""What rows are filled up with: a value for each leaf, from the argument `padding_values` of an op."""

from typing import Any

import numpy as np

from distinput.core.adopt import leaf_of
from distinput.core.leaves import dtype_name, dtype_of, shape_of, zero
from distinput.core.nest import Structure, component
from distinput.core.spec import Spec, TensorSpec
from distinput.errors import InvalidArgumentError
from distinput.plan.node import Node

__all__ = ["for_leaves", "padding_fills"]


def padding_fills(op: str, spec: Spec, values: Any) -> tuple[Any, ...]:
    """The padding value of each leaf.

    Args:
      op: for messages.
      spec: what an element looks like.
      values: a nest of scalars, or one for all leaves; None, for all or for a part of the nest, stands for 0 or
        an empty string.

    Raises:
      InvalidArgumentError: a value is no scalar.
      TypeError: a value has another dtype than its leaf, or the values are nested in another way.
    """
    leaves = spec.tensors(op)
    if values is None or not isinstance(values, tuple | dict):
        given: list[Any] = [values] * len(leaves)
    else:
        given = for_leaves(op, "padding_values", spec.structure, _spread(values, spec.structure))
    paths = spec.structure.paths
    return tuple([_fill(op, v, leaf, component(p)) for v, leaf, p in zip(given, leaves, paths, strict=True)])


def for_leaves(op: str, argument: str, structure: Structure, given: Any) -> list[Any]:
    """The value that an argument, nested like the elements, has for each leaf.

    Raises:
      TypeError: the values are not nested like the elements.
    """
    try:
        return structure.flatten(given)
    except TypeError as error:
        raise TypeError(f"{op}: {argument}: {error}; nest it as the elements, {structure}") from None


def _spread(given: Any, structure: Structure) -> Any:
    """A nest in which None may stand for whole parts of the structure, with a None for each of their leaves."""
    if given is None:
        return structure.build([None] * structure.num_leaves)
    if structure.kind in ("tuple", "namedtuple") and isinstance(given, tuple) and len(given) == len(structure.children):
        return tuple([_spread(part, child) for part, child in zip(given, structure.children, strict=True)])
    if structure.kind == "dict" and isinstance(given, dict) and given.keys() == set(structure.keys):
        return {key: _spread(given[key], child) for key, child in zip(structure.keys, structure.children, strict=True)}
    return given


def _fill(op: str, given: Any, leaf: TensorSpec, path: str) -> Any:
    if given is None:
        return zero(leaf.dtype, ())
    if isinstance(given, tuple | dict):
        raise TypeError(f"{op}: padding_values must be nested as the element, got {given!r} for {path}")
    try:
        value = leaf_of(given)
    except TypeError as error:
        raise TypeError(f"{op}: the padding value of {path} must be a scalar: {error}") from None
    if isinstance(value, Node):
        raise TypeError(f"{op}: the padding value of {path} must be a scalar, got {given!r}")
    if shape_of(value):
        raise InvalidArgumentError(f"{op}: the padding value of {path} must be a scalar, got {given!r}")
    if dtype_of(value) == leaf.dtype:
        return value
    if isinstance(given, int | float) and not isinstance(given, np.generic) and _holds(leaf.dtype, given):
        return leaf.dtype.type(given)
    raise TypeError(
        f"{op}: the padding value of {path} must have its dtype {dtype_name(leaf.dtype)}, got "
        f"{dtype_name(dtype_of(value))}"
    )


def _holds(dtype: np.dtype[Any], number: int | float) -> bool:
    """Whether this dtype can hold a Python number: 1.5 is not an integer, and 300 is not a uint8."""
    if dtype.kind in "iu":
        return isinstance(number, int) and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))  # those of ml_dtypes are of kind V
