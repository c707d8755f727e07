# SPDX-License-Identifier: Apache-2.0
"""Datasets that read no file, under the names of `tf.data.experimental`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.adopt import adopt, leaf_of
from distinput.core.block import Block
from distinput.core.nest import map_leaves, structure_of
from distinput.core.owned import kept
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.ops.random import Random
from distinput.ops.slices import slices_of

__all__ = ["Counter", "RandomDataset", "choose_from_datasets", "from_list", "sample_from_datasets"]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset[Any]:  # noqa: N802 - TensorFlow's name
    """`Dataset.counter`, under its older name.

    Args:
      start: the first number.
      step: the distance between numbers.
      dtype: their dtype.

    >>> import distinput as di
    >>> di.data.experimental.Counter(start=1, step=2).take(3).to_list()
    [1, 3, 5]

    Source: `tf.data.experimental.Counter`.
    """
    return Dataset.counter(start, step, dtype)


class RandomDataset(Dataset[np.int64]):
    """`Dataset.random`, under its older name.

    Args:
      seed: any integer; None draws one, and gives other numbers in each pass.
      rerandomize_each_iteration: True: other numbers in each pass, with a seed too.
      name: a label.

    >>> import distinput as di
    >>> di.data.experimental.RandomDataset(seed=4).take(3).to_list() == di.data.Dataset.random(seed=4).take(3).to_list()
    True

    Source: `tf.data.experimental.RandomDataset`.
    """

    def __init__(
        self, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> None:
        super().__init__(Random(seed, rerandomize_each_iteration, name=name))


def choose_from_datasets(
    datasets: Sequence[Dataset[Any]], choice_dataset: Dataset[Any], stop_on_empty_dataset: bool = False
) -> Dataset[Any]:
    """`Dataset.choose_from_datasets`, which by default skips datasets that have run out.

    Args:
      datasets: at least one; same structure and dtypes.
      choice_dataset: int64 scalars.
      stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip its numbers.

    >>> import distinput as di
    >>> a, choices = di.data.Dataset.range(2), di.data.Dataset.from_tensor_slices(np.array([0, 0, 0, 1]))
    >>> di.data.experimental.choose_from_datasets([a, a], choices).to_list()
    [0, 1, 0]

    Source: `tf.data.experimental.choose_from_datasets`.
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def from_list(elements: list[Any], name: str | None = None) -> Dataset[Any]:
    """The items of a list, which may differ in shape.

    A list inside of an item becomes an array, a tuple or dict is part of its structure.

    Args:
      elements: at least one; same structure and dtypes.
      name: a label.

    Raises:
      InvalidArgumentError: it is empty, or no list.
      TypeError: the items differ in structure or dtype.

    >>> import distinput as di
    >>> ds = di.data.experimental.from_list([(1, "a"), (2, "b")])
    >>> ds.to_list(), di.data.experimental.from_list([[1], [2, 3]]).to_list()
    ([(1, b'a'), (2, b'b')], [[1], [2, 3]])

    Source: `tf.data.experimental.from_list`.
    """
    if not isinstance(elements, list):
        raise InvalidArgumentError(f"from_list: elements must be a list, got {type(elements).__name__}")
    if not elements:
        raise InvalidArgumentError("from_list: elements must not be empty; for an empty dataset use Dataset.range(0)")
    if isinstance(elements[0], Dataset):
        return Dataset.from_tensor_slices(elements, name)
    items = [kept(map_leaves(_leaf, adopt(element), lists=False)) for element in elements]
    try:
        block = Block.of_elements(structure_of(items[0]), items)
        return Dataset(slices_of(block, f"{len(items)} items", name=name))
    except TypeError as error:
        raise TypeError(f"from_list: the items must be alike: {error}") from error


def _leaf(value: Any) -> Any:
    return leaf_of(getattr(value, "node", value))


def sample_from_datasets(
    datasets: Sequence[Dataset[Any]], weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Dataset[Any]:
    """`Dataset.sample_from_datasets`, under its older name.

    Args:
      datasets: at least one; same structure and dtypes.
      weights: one for each dataset; equal if None. Or a dataset of vectors of weights, one for each draw.
      seed: any integer; None draws one, which a saved state remembers.
      stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip it.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3)
    >>> di.data.experimental.sample_from_datasets([ds, ds], weights=[1.0, 0.0]).to_list()
    [0, 1, 2]

    Source: `tf.data.experimental.sample_from_datasets`.
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)
