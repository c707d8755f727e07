# SPDX-License-Identifier: Apache-2.0
"""Values of Python where somebody has stated what they are: numbers and lists have no dtype of their own, and take that one."""

from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.values.leaves import STRING, as_leaf, members_of
from distinput.values.nest import component
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import ElementsSpec, LeafSpec, Spec

__all__ = ["as_nest", "as_stated", "as_stated_leaves", "leaves_for"]

_BECOMES: dict[type, str] = {bool: "b", int: "iufc", float: "fc", complex: "c"}
"""The kinds of dtypes that a number of Python may become: an integer any number, a float no integer."""

_OF_PACKAGES = 2
"""`isbuiltin` of dtypes that a package has added, all of which are floats."""


def as_nest(result: Any, said: Spec | None) -> Any:
    """What a function returned, with a tuple in the place of a list, unless an array is stated there.

    Source: the convention of `tf.data.Dataset.map`.
    """
    return tuple(result) if type(result) is list and (said is None or not said.structure.is_leaf) else result


def leaves_for(structure: Any, said: Spec | None) -> tuple[LeafSpec, ...] | None:
    """What is stated of the leaves of a nest; None if nothing is, or of another nest."""
    return said.leaves if said is not None and len(said.leaves) == structure.num_leaves else None


def as_stated(value: Any, leaf: LeafSpec | None, *, cast: bool = False) -> Any:
    """A value as a leaf, as `as_leaf` makes it, with the stated dtype where the value has none of its own.

    An empty list has no rank of its own either.

    Args:
      value: as users write it.
      leaf: what is stated; None: nothing.
      cast: numbers of Python become of the dtype in any case, as NumPy casts them; otherwise only where none is changed.

    Raises:
      TypeError: the value cannot be an array, or no ragged tensor where one is stated.
      InvalidArgumentError: an integer does not fit into the dtype.

    >>> from distinput.values.spec import TensorSpec
    >>> as_stated([], TensorSpec([None, 2], "int64")).shape, as_stated(1, TensorSpec([], "float64"))
    ((0, 2), np.float64(1.0))
    """
    if leaf is None or isinstance(leaf, ElementsSpec):
        return as_leaf(value)
    listed = isinstance(value, list | tuple | range)
    if leaf.ragged_rank and listed:
        return RaggedTensor.from_list(value, leaf.dtype, leaf.ragged_rank)
    members = members_of(value) if listed else [value]
    if not members:
        return _empty(value, leaf)
    kinds = {next((base for base in _BECOMES if issubclass(kind, base)), None) for kind in set(map(type, members))}
    if None in kinds or leaf.dtype == STRING:
        return as_leaf(value)
    added = leaf.dtype.isbuiltin == _OF_PACKAGES
    if not cast and not added and not all(leaf.dtype.kind in _BECOMES[kind] for kind in kinds if kind is not None):
        return as_leaf(value)
    try:
        made = np.array(value, leaf.dtype)
    except OverflowError:
        wrong = next(x for x in members if not _holds(leaf.dtype, x))
        raise InvalidArgumentError(
            f"the integer {wrong} does not fit into {leaf.dtype}, which is stated; state a wider dtype"
        ) from None
    except ValueError:  # lists of several lengths, say
        return as_leaf(value)
    return made if made.ndim else made[()]


def as_stated_leaves(values: Any, paths: Any, leaves: tuple[LeafSpec, ...] | None) -> list[Any]:
    """The values as leaves; an error names the component whose value it is.

    Raises:
      TypeError: a value cannot be an array.
      InvalidArgumentError: an integer does not fit.
    """
    made: list[Any] = []
    try:
        made.extend(map(as_stated, values, leaves or (None,) * len(values)))  # keeps what was made before an error
    except (TypeError, InvalidArgumentError) as error:
        path = paths[len(made)]
        if not path:
            raise
        raise type(error)(f"{component(path)}: {error}") from error
    return made


def _holds(dtype: Any, number: Any) -> bool:
    try:
        np.array(number, dtype)
    except OverflowError:
        return False
    return True


def _empty(value: Any, leaf: Any) -> Any:
    """Lists without a member."""
    made = np.array(value, leaf.dtype)
    missing = [] if leaf.shape is None else list(leaf.shape)[made.ndim :]
    return made.reshape(made.shape + tuple([size or 0 for size in missing]))
