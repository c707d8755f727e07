# SPDX-License-Identifier: Apache-2.0
"""`MapView`: the elements of a dataset by their positions, for the samplers of PyTorch."""

import warnings
from collections.abc import Sequence
from typing import Any, SupportsIndex

import torch.utils.data

from distinput.data.dataset import Dataset
from distinput.errors import InputWarning
from distinput.interop.torch.leaves import Convert, converter
from distinput.plan.node import INFINITE
from distinput.plan.seeds import walk_made
from distinput.streaming.by_position import positions_of

__all__ = ["MapView"]

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

    def __getitem__(self, index: SupportsIndex) -> Any:
        return self._convert(self._dataset[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The elements at these positions; what several of them need is read once."""
        return [self._convert(element) for element in self._dataset.__getitems__(indices)]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_convert": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._convert = converter(self._dataset.element_spec, _WHO, shared=self._share_memory)
