# SPDX-License-Identifier: Apache-2.0
"""A pass over a dataset whose progress is shown."""

from collections.abc import Iterator
from typing import Any, Generic, Self

from distinput.core.state import State
from distinput.data.element import T_co
from distinput.data.iterator import DatasetIterator
from distinput.data.progress_bar import ProgressBar
from distinput.data.stats import Stats

__all__ = ["ShownPass"]


class ShownPass(Iterator[T_co], Generic[T_co]):
    """The elements of a dataset's next pass, and a bar for them; `Dataset.progress` makes it.

    Args:
      elements: the pass, at its beginning.
      bar: what shows how far it is.
    """

    def __init__(self, elements: DatasetIterator[T_co], bar: ProgressBar) -> None:
        self.bar = bar
        self._elements = elements
        self._before = elements.mark()
        self._waiting: tuple[T_co] | None = None  # taken, but not delivered when an interrupt came

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        try:
            if self._waiting is None:
                self._before = self._elements.mark()
                for element in self._elements:
                    self._waiting = (element,)
                    break
                else:
                    raise StopIteration
            self.bar.step()
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, StopIteration):
                self.bar.close()
            raise
        (element,), self._waiting = self._waiting, None
        return element

    @property
    def element_spec(self) -> Any:
        """The spec of an element."""
        return self._elements.element_spec

    def state(self) -> State:
        """The position after the last element; see `DatasetIterator.state`."""
        elements = self._elements
        return elements.sealed(elements.place(self._before if self._waiting else None))

    def stats(self) -> Stats:
        """Statistics of the steps so far."""
        return self._elements.stats()

    def close(self) -> None:
        """End the pass and its bar; may be called again."""
        self.bar.close()
        self._elements.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
