# SPDX-License-Identifier: Apache-2.0
"""Where passes begin, for a consumer that asks for batches by index but gets them in the order of the dataset."""

__all__ = ["PassStarts"]


class PassStarts:
    """Follows the requests of a Keras loop.

    Keras asks for the indices of a pass in order, or in a random order (`fit` shuffles them). What it takes between `enter`
    and `leave` is an epoch, which may be less than a pass. Before the first epoch it may take one batch to build the model,
    and then begin again.

    Args:
      batches: of a pass; None if it has no end.

    >>> starts = PassStarts(2)
    >>> starts.enter()
    >>> [starts.request(index) for index in (1, 0, 0, 1)]
    [True, False, True, False]
    """

    def __init__(self, batches: int | None) -> None:
        self._batches = batches
        self._begun = self._inside = False
        self._served = 0  # of the pass
        self._drawn = 0  # since `enter`
        self._has_model = False  # True: the model is built, so Keras does not look at a batch first

    def request(self, index: int) -> bool:
        """Count a request; True if a pass begins with it."""
        first_of_order = index == 0 and (not self._inside or self._drawn == 0) and self._served > 0
        begins = not self._begun or self._served == self._batches or first_of_order
        self._begun = True
        self._served = 1 if begins else self._served + 1
        self._drawn += 1
        return begins

    def enter(self) -> None:
        """An epoch begins."""
        self._inside, self._drawn = True, 0

    def leave(self) -> bool:
        """An epoch ends; True if its only batch was looked at, and has to be returned again."""
        if not self._inside:  # as Keras does before the first epoch, if it did not need to look
            self._has_model = True
            return False
        self._inside = False
        looked = self._drawn == self._served == 1 != self._batches and not self._has_model
        if looked:
            self._has_model, self._served = True, 0
        elif self._served == self._batches and self._drawn > 1:
            self._has_model = False  # another model may come
        return looked
