# SPDX-License-Identifier: Apache-2.0
"""What is known about a dataset, and its elements one at a time: the functions of `tf.data.experimental` for that."""

from typing import Any

from distinput.data.by_position import is_integer
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.data.optional import Optional
from distinput.errors import OutOfRangeError, UnimplementedError

__all__ = ["at", "cardinality", "get_next_as_optional", "get_single_element", "get_structure"]


def at(dataset: Dataset[Any], index: int) -> Any:
    """The element at a position, from 0 on; `dataset[index]` also takes negative positions, slices and lists.

    Args:
      dataset: a dataset whose elements can be reached by position; see `Dataset.__getitem__`.
      index: the position.

    Raises:
      OutOfRangeError: there is no such element.
      UnimplementedError: a step of the dataset can only be iterated; the message names it, and the cure.
      TypeError: `index` is no integer.

    >>> import distinput as di
    >>> di.data.experimental.at(di.data.Dataset.range(5).map(lambda x: x * x), 3)
    np.int64(9)

    Source: `tf.data.experimental.at`.
    """
    if not is_integer(index):
        raise TypeError(f"at: index must be an integer, got {index!r}")
    if int(index) < 0:
        raise OutOfRangeError(f"at: index must be from 0 on, got {int(index)}; dataset[index] counts from the end")
    try:
        dataset._by_position()
    except TypeError as error:
        raise UnimplementedError(f"at: {error}") from error
    try:
        return dataset[index]
    except IndexError as error:
        raise OutOfRangeError(f"at: {error}") from error


def cardinality(dataset: Dataset[Any]) -> int:
    """`dataset.cardinality()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.cardinality(di.data.Dataset.range(3))
    3

    Source: `tf.data.experimental.cardinality`.
    """
    return dataset.cardinality()


def get_next_as_optional(iterator: DatasetIterator[Any]) -> Optional[Any]:
    """`iterator.get_next_as_optional()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.get_next_as_optional(iter(di.data.Dataset.range(1)))
    Optional(np.int64(0))

    Source: `tf.data.experimental.get_next_as_optional`.
    """
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset[Any]) -> Any:
    """`dataset.get_single_element()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.get_single_element(di.data.Dataset.range(1))
    np.int64(0)

    Source: `tf.data.experimental.get_single_element`.
    """
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The `element_spec` of a dataset or an iterator.

    Raises:
      TypeError: it is neither.

    >>> import distinput as di
    >>> di.data.experimental.get_structure(di.data.Dataset.range(3))
    TensorSpec(shape=(), dtype=int64)

    Source: `tf.data.experimental.get_structure`.
    """
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(f"get_structure: expected a dataset or an iterator, got {dataset_or_iterator!r}")
    return dataset_or_iterator.element_spec
