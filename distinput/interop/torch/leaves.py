# SPDX-License-Identifier: Apache-2.0
"""Elements as tensors in the same memory; what PyTorch has no tensor for stays as it is, or is refused by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from distinput.core.leaves import STRING
from distinput.core.nest import component
from distinput.core.spec import Spec, TensorSpec
from distinput.distribute.devices.tensors import tensor_of
from distinput.errors import ElementTypeError, InvalidArgumentError

__all__ = ["Convert", "converter"]

Convert = Callable[[Any], Any]


def converter(element_spec: Any, who: str, *, shared: bool = False) -> Convert:
    """The function that turns an element of NumPy arrays into one of tensors: the same nest, in the same memory.

    Memory that is read-only, as that of a file or of an array of the user's, is copied: nothing protects it from a program that
    changes tensors in place. Text stays as it is: bytes, arrays of bytes objects, or a `RaggedTensor` of them. A `RaggedTensor`
    of numbers becomes a nested tensor of jagged layout.

    Args:
      element_spec: of the elements.
      who: for the message.
      shared: use read-only memory as well; nobody may change the tensors.

    Raises:
      ElementTypeError: PyTorch has no tensors of the dtype of a component, or the component is a dataset or has several
        ragged dimensions.
    """
    spec = Spec.of(element_spec)
    leaves = [
        _leaf(leaf, path, who, shared=shared) for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True)
    ]
    structure = spec.structure
    if structure.is_leaf:
        return leaves[0]
    if structure.kind == "dict" and structure.mapping is None and all(c.is_leaf for c in structure.children):
        by_key = dict(zip(structure.keys, leaves, strict=True))
        return lambda element: {key: by_key[key](value) for key, value in element.items()}
    if structure.is_flat_tuple:
        return lambda element: tuple([make(value) for make, value in zip(leaves, element, strict=True)])

    def nested(element: Any) -> Any:
        values = structure.flatten(element)
        return structure.build([make(value) for make, value in zip(leaves, values, strict=True)])

    return nested


def _leaf(leaf: Any, path: str, who: str, *, shared: bool) -> Convert:
    if not isinstance(leaf, TensorSpec):
        raise ElementTypeError(f"{who}: {component(path)} is {leaf}, of which there are no tensors; flat_map it first")
    dtype, ragged_rank = leaf.dtype, leaf.ragged_rank or 0
    if dtype == STRING:
        return _as_it_is
    if ragged_rank > 1:
        raise ElementTypeError(
            f"{who}: {component(path)} has {ragged_rank} ragged dimensions, and PyTorch's nested tensors have one; map it to "
            "value.to_padded(), or to its values and row_splits"
        )
    if ragged_rank:
        values = _leaf(TensorSpec([None], dtype), path, who, shared=shared)
        return lambda value: _nested(values(value.values), tensor_of(value.row_splits, shared=shared))
    try:
        if not dtype.isnative:
            raise InvalidArgumentError("another byte order")
        tensor_of(np.zeros(1, dtype))
    except InvalidArgumentError:
        raise ElementTypeError(
            f"{who}: {component(path)} has dtype {dtype}, of which PyTorch has no tensors; map it to another one, such as "
            f"{_instead(dtype)}, or leave it out"
        ) from None
    return partial(tensor_of, shared=True) if shared else tensor_of


def _nested(values: torch.Tensor, splits: torch.Tensor) -> torch.Tensor:
    """Rows of different lengths as a nested tensor, over the same memory."""
    return torch.nested.nested_tensor_from_jagged(values, splits)


def _instead(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "mM":
        return "int64 (value.astype('int64'))"
    return "float64" if dtype.kind == "f" else f"{dtype.newbyteorder('=')}" if not dtype.isnative else "int64"


def _as_it_is(value: Any) -> Any:
    return value
