# SPDX-License-Identifier: Apache-2.0
"""Items of an object with a length, read by position: what is called for `from_source`, as functions are for `map`."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from distinput.core.adopt import adopt
from distinput.core.block import Block
from distinput.core.failure import of_all
from distinput.core.owned import Promise, owned
from distinput.core.spec import Spec
from distinput.errors import FailedPreconditionError, InvalidArgumentError

__all__ = ["Reads"]


class Reads:
    """Reads items of a source: one by one with `__getitem__`, or many in one call if it has `__getitems__`.

    It stands where a chain of functions stands, with positions as the elements.

    Args:
      source: has `__len__` and `__getitem__`.
      length: how many items it had when the dataset was made.
      copy: False: it does not change an array that it has given.
      said: what the user says about the items.

    Attributes:
      lends: whether arrays in the items are the source's own, which nobody may write to.
    """

    settled, kinds = True, ()  # as a chain of one function

    def __init__(self, source: Any, length: int, *, copy: bool = True, said: Spec | None = None) -> None:
        self.source, self.length, self.copy, self.said = source, length, copy, said
        plain = type(source) in (list, tuple)  # no function runs that could change an item
        self.lends = plain or not copy
        self._looked_at: Callable[[Any], Any] = (
            adopt if plain else owned if copy else Promise("from_source: the source")
        )
        self._many: Callable[[list[int]], Sequence[Any]] | None = getattr(source, "__getitems__", None)

    @property
    def functions(self) -> tuple[Any, ...]:
        """What is called, for messages."""
        return (self.source,)

    def settle(self, kinds: tuple[Spec | None, ...]) -> None:
        """Do nothing: there are no functions whose results the next one gets."""

    def results(self, rows: Block) -> Iterator[Any]:
        """The items at these positions, read as they are requested; an array that the source may still change is copied."""
        self.check_length()
        indices = [int(index) for index in rows.elements()]
        items = map(self.source.__getitem__, indices) if self._many is None else self._together(indices)
        return map(self._looked_at, items)

    def check_length(self) -> None:
        """Refuse a source that has another length than it had when the dataset was made.

        Raises:
          FailedPreconditionError: it has.
        """
        length = len(self.source)
        if length != self.length:
            raise of_all(
                FailedPreconditionError(
                    f"from_source: the source must keep its length while it is read, got {length} items now and {self.length} "
                    "when the dataset was made; make the dataset again after the source has changed"
                )
            )

    def place(self, error: BaseException, element: Any) -> tuple[int, Any]:
        """Which function raised an error, and its argument."""
        return 0, element

    def told(self, given: Any) -> str:
        """A position in words, for notes on errors."""
        return f"index {int(given)} of a {type(self.source).__qualname__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Reads, copy=self.copy, said=self.said), (self.source, self.length)

    def _together(self, indices: list[int]) -> Iterator[Any]:
        """The items of one call; if it fails, those of one call each, so that those before the error are delivered."""
        assert self._many is not None
        items: list[Any] = []
        try:
            items += self._many(indices)
        except Exception as error:
            if len(indices) == 1:
                raise
            for index in indices[:-1]:
                yield from self._many([index])
            self._many(indices[-1:])
            error.add_note(f"__getitems__ failed for {len(indices)} positions, each of which can be read alone")
            raise
        if len(items) != len(indices):
            raise InvalidArgumentError(
                f"from_source: __getitems__ must return one item for each index, got {len(items)} for {len(indices)} indices"
            )
        items.reverse()
        while items:
            yield items.pop()  # held by nobody else, so `owned` need not copy its arrays
