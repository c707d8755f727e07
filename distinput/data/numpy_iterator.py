# SPDX-License-Identifier: Apache-2.0
"""`NumpyIterator`: an iterator of a dataset, made by its class, whose position can be saved as bytes."""

import json
from typing import Any, Generic, Self

from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator, T_co
from distinput.errors import StateError


class NumpyIterator(Generic[T_co]):
    """An iterator of a dataset; `dataset.as_numpy_iterator()` and `iter(dataset)` give one that is as good.

    Args:
      dataset: what to iterate.

    Raises:
      TypeError: `dataset` is not a dataset.

    >>> import distinput as di
    >>> it = di.data.NumpyIterator(di.data.Dataset.range(4))
    >>> _ = next(it)
    >>> saved = it.save()
    >>> it.next(), it.next()
    (np.int64(1), np.int64(2))
    >>> it.restore(saved)
    >>> list(it)
    [np.int64(1), np.int64(2), np.int64(3)]

    Source: `tf.data.NumpyIterator`.
    """

    def __init__(self, dataset: Dataset[T_co]) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"NumpyIterator: expected a dataset, got {dataset!r}")
        self._elements: DatasetIterator[T_co] = iter(dataset)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        for element in self._elements:  # an interrupt may come behind a call of `next`
            return element
        raise StopIteration

    @property
    def element_spec(self) -> Any:
        """The spec of an element."""
        return self._elements.element_spec

    def next(self) -> T_co:
        """The next element.

        Raises:
          StopIteration: there is none.
        """
        return self.__next__()

    def save(self) -> bytes:
        """The position, as bytes for `restore`."""
        return json.dumps(self._elements.state()).encode()

    def restore(self, state: bytes) -> None:
        """Go to a position that was saved.

        Args:
          state: what `save` returned, in this process or another.

        Raises:
          StateError: it is no such state, or that of another pipeline.
        """
        try:
            read: Any = json.loads(state)
        except (TypeError, ValueError) as error:
            raise StateError(f"NumpyIterator: the state must be bytes that save returned, got {state!r:.60}") from error
        self._elements.load_state_dict(read)
