# SPDX-License-Identifier: Apache-2.0
"""`MapView`: the elements of a dataset by their positions, for the samplers of PyTorch."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
import torch
import torch.utils.data

from distinput.data.dataset import Dataset
from distinput.distribute.devices.tensors import tensor_of
from distinput.errors import ElementTypeError, InputWarning, InvalidArgumentError
from distinput.plan.families import walk_made
from distinput.plan.node import INFINITE
from distinput.streaming.by_position import is_integer, positions_of
from distinput.values.leaves import STRING
from distinput.values.nest import Structure, component
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# Elements as tensors in the same memory; what PyTorch has no tensor for stays as it is, or is refused by name.
# ----------------------------------------------------------------------------


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
        return _converted(structure, element, iter(leaves))

    return nested


def _converted(structure: Structure, value: Any, leaves: Iterator[Convert]) -> Any:
    if structure.kind == "tuple":
        return tuple([_converted(child, part, leaves) for child, part in zip(structure.children, value, strict=True)])
    if structure.kind == "dict" and isinstance(value, list | None):  # rows of `as_rows`, of which there are no tensors
        for _ in range(structure.num_leaves):
            next(leaves)
        return value
    if structure.kind == "dict":
        pairs = zip(structure.keys, structure.children, strict=True)
        made = {key: _converted(child, value[key], leaves) for key, child in pairs}
        found = {key: made[key] for key in structure.order or structure.keys}
        return found if structure.mapping is None else structure.mapping(found)
    return structure.build([next(leaves)(part) for part in structure.flatten(value)])


def _leaf(leaf: Any, path: str, who: str, *, shared: bool) -> Convert:
    if not isinstance(leaf, TensorSpec):
        raise ElementTypeError(f"{who}: {component(path)} is {leaf}, of which there are no tensors; flat_map it first")
    dtype, ragged_rank = leaf.dtype, leaf.ragged_rank or 0
    if dtype == STRING:
        return _text
    if ragged_rank > 1:
        raise ElementTypeError(
            f"{who}: {component(path)} has {ragged_rank} ragged dimensions, and PyTorch's nested tensors have one; map it to "
            "value.to_padded(), or to its values and row_splits"
        )
    if ragged_rank:
        values = _leaf(TensorSpec([None], dtype), path, who, shared=shared)
        nested = torch.nested.nested_tensor_from_jagged  # over the same memory
        return lambda value: nested(values(value.values), tensor_of(value.row_splits, shared=shared))
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


def _instead(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "mM":
        return "int64 (value.astype('int64'))"
    return "float64" if dtype.kind == "f" else f"{dtype.newbyteorder('=')}" if not dtype.isnative else "int64"


def _text(value: Any) -> Any:
    """Bytes as they are; of `as_text`, an array of `str` as a list."""
    return value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind == "T" else value


_WHO = "MapView"


class MapView(torch.utils.data.Dataset):  # type: ignore[misc]
    """A map-style dataset of PyTorch: `len`, `[i]` and `__getitems__`, with elements as tensors.

    For programs whose sampler decides on the order and on the ranks: `DataLoader(MapView(ds), batch_size=32, shuffle=True)`, a
    `DistributedSampler`, or the Trainer of Hugging Face. Where ranks cannot have equally many records, such samplers repeat
    some or leave some out; an `IterableView` does neither.

    Args:
      dataset: its elements can be reached by position (see `Dataset.__getitem__`); usually not batched and not shuffled, since
        the DataLoader does that here.
      share_memory: as for `IterableView`; a DataLoader that batches copies the elements itself.

    Raises:
      TypeError: `dataset` is not a Dataset, or its elements cannot be reached by position, or it has no end.
      ElementTypeError: PyTorch has no tensors of the dtype of a component.

    Warns:
      InputWarning: the dataset is shuffled: positions have the order of its first pass in every epoch.

    >>> import distinput as di
    >>> from torch.utils.data import DataLoader
    >>> view = di.interop.torch.MapView(di.data.Dataset.range(5).map(lambda x: x * x))
    >>> len(view), view[3], view[-1]
    (5, tensor(9), tensor(16))
    >>> [batch.tolist() for batch in DataLoader(view, batch_size=2)]
    [[0, 1], [4, 9], [16]]

    Source: distinput's own; `torch.utils.data.Dataset` is the interface.
    """

    def __init__(self, dataset: Dataset[Any], *, share_memory: bool = False) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"{_WHO}: expected a distinput Dataset, got {type(dataset).__name__}")
        self._share_memory = share_memory
        self._convert: Convert = converter(dataset.element_spec, _WHO, shared=share_memory)
        try:
            self._size = positions_of(dataset.node).size
        except TypeError as error:
            raise TypeError(f"{_WHO}: {error}; or use IterableView, which reads in order") from None
        if self._size == INFINITE:
            raise TypeError(f"{_WHO}: the dataset is infinite, so no sampler can choose from it; use IterableView")
        if any(step.reshuffles for step in walk_made(dataset.node)):
            warnings.warn(
                f"{_WHO}: positions have the order of the first pass in every epoch, though the dataset is shuffled; leave the "
                "shuffle to the DataLoader (shuffle=True), or use IterableView",
                InputWarning,
                stacklevel=2,
            )
        self._dataset = dataset

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: SupportsIndex | slice | Sequence[int]) -> Any:
        """The element at a position; for a slice or several positions, which a `BatchSampler` may ask for, their list."""
        found: Any = self._dataset[index]
        return self._convert(found) if is_integer(index) else [self._convert(element) for element in found]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The elements at these positions; what several of them need is read once."""
        return [self._convert(element) for element in self._dataset.__getitems__(indices)]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_convert": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._convert = converter(self._dataset.element_spec, _WHO, shared=self._share_memory)
