# SPDX-License-Identifier: Apache-2.0
"""Grain: datasets as its data sources, and its data sources and map datasets as datasets.

Iterators of this library have `get_state`, `set_state` and `start_prefetch`, so `grain.checkpoint.CheckpointSave` and
`CheckpointRestore` take them as they are.
"""

import sys
from collections.abc import Sequence
from typing import Any

from distinput.columns.state import Digest
from distinput.data.dataset import Dataset
from distinput.errors import importing
from distinput.plan.fingerprint import fingerprint

with importing("interop.grain: needs Grain, which is not installed ({error}); use `pip install grain`"):
    import grain

__all__ = ["from_grain", "source"]


class _Source:
    """The elements of a dataset by position; `source` makes it."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The elements at these positions."""
        found: list[Any] = self._dataset.__getitems__(indices)
        return found

    _getitems = __getitems__  # Grain's name

    def __repr__(self) -> str:
        """Grain's loader saves this, and compares it when it restores."""
        steps = Digest(8).add(str(fingerprint(self._dataset.node))).word
        return f"distinput.interop.grain.source(elements={len(self)}, pipeline={steps})"


def source(dataset: Any) -> Any:
    """A dataset as a `RandomAccessDataSource` of Grain.

    Its elements are those of the first pass. Grain reads them in the order of its own sampler, in batches where it can, and
    sends the source to its worker processes. A checkpoint of Grain's `DataLoader` says which pipeline it is of.

    Args:
      dataset: a dataset whose elements can be counted and reached by position; see `Dataset.__getitem__`.

    Raises:
      TypeError: no dataset, or the number of its elements is not known.

    >>> import distinput as di
    >>> import grain
    >>> squares = di.data.Dataset.range(6).map(lambda x: x * x)
    >>> batches = grain.MapDataset.source(di.interop.grain.source(squares)).seed(1).shuffle().batch(3)
    >>> sorted(int(x) for batch in batches for x in batch)
    [0, 1, 4, 9, 16, 25]

    Source: `grain.sources.RandomAccessDataSource`.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"interop.grain.source: needs a dataset, got a {type(dataset).__name__}")
    len(dataset)
    return _Source(dataset)


class _Items:
    """A data source of Grain that is asked for several items at once where it can be."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Any:
        return _there(self._items[index], index)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The items at these positions."""
        return [_there(item, index) for item, index in zip(self._items._getitems(list(indices)), indices, strict=True)]

    def __repr__(self) -> str:
        return repr(self._items)


def from_grain(
    items: Any, *, element_spec: Any = None, num_parallel_calls: int | None = None, processes: bool = False
) -> Dataset[Any]:
    """The items of a data source or `MapDataset` of Grain as a dataset; see `Dataset.from_source`.

    They are counted, so they can be shuffled globally, sharded and distributed by position, and a restart reads nothing again.

    Args:
      items: a `RandomAccessDataSource` or a `MapDataset`. A map dataset that is repeated without end is refused: repeat the
        dataset that is made of it.
      element_spec: as for `Dataset.from_source`.
      num_parallel_calls: threads, or processes, that read.
      processes: read in worker processes.

    Raises:
      TypeError: `items` cannot be reached by position, such as an `IterDataset`; at iteration, an item was left out by a
        filter of Grain.
      ValueError: `items` is endless.

    >>> import distinput as di
    >>> import grain
    >>> ds = di.interop.grain.from_grain(grain.MapDataset.range(5).map(lambda x: {"x": x * 10}))
    >>> ds.skip(3).to_list()
    [{'x': 30}, {'x': 40}]
    """
    if isinstance(items, grain.IterDataset):
        raise TypeError(
            "interop.grain.from_grain: an IterDataset cannot be reached by position; give its MapDataset, before "
            "to_iter_dataset, or use Dataset.from_generator(lambda: iter(items), output_signature=...)"
        )
    if isinstance(items, grain.MapDataset) and len(items) == sys.maxsize:
        raise ValueError(
            "interop.grain.from_grain: the MapDataset is endless; give it without repeat, and repeat the dataset that is made "
            "of it"
        )
    wrapped = _Items(items) if hasattr(items, "_getitems") else items
    return Dataset.from_source(
        wrapped, element_spec=element_spec, num_parallel_calls=num_parallel_calls, processes=processes
    )


def _there(item: Any, index: int) -> Any:
    if item is None:
        raise TypeError(
            f"interop.grain.from_grain: item {index} is None, which is how Grain marks what a filter has left out; filter the "
            "dataset that is made of it instead"
        )
    return item
