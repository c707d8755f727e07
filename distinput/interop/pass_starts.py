# SPDX-License-Identifier: Apache-2.0
"""Where passes begin, for a consumer that asks for batches by index but gets them in the order of the dataset."""

_LOOKED = 2  # batches that Keras takes at most to build a model: one, and one more that is on its way to a device


class PassStarts:
    """Follows the requests of a Keras loop.

    Keras asks for the indices of a pass in order, or in a random order (`fit` shuffles them), so an index does not tell where
    a pass begins. But whenever Keras makes another iterator over the batches, it asks for their number. What it takes between
    `enter` and `leave` is an epoch, which may be less than a pass: with `steps_per_epoch` the next epoch goes on with the same
    iterator, after `stop_training` the next call of `fit` does not. Before the first epoch Keras may look at the first batch
    or two to build the model, and then begin again.

    Args:
      batches: of a pass; None if it has no end.

    >>> starts = PassStarts(3)
    >>> starts.enter()
    >>> starts.ask()
    >>> [starts.request(index) for index in (2, 0, 1, 0)]
    [True, False, False, True]

    Source: `keras.src.trainers.epoch_iterator.EpochIterator` and `PyDatasetAdapter` of Keras 3.
    """

    def __init__(self, batches: int | None) -> None:
        self._batches = batches
        self._begun = self._inside = False
        self._asked = False  # for the number of batches, since the latest request
        self._served = 0  # of the pass
        self._drawn = 0  # since `enter`

    @property
    def may_be_looked_at(self) -> bool:
        """True while all batches of the pass may have to be returned again."""
        return self._drawn == self._served <= _LOOKED

    def ask(self) -> None:
        """Keras asks for the number of batches."""
        self._asked = True

    def request(self, index: int) -> bool:
        """Count a request; True if a pass begins with it."""
        another = self._drawn == 0 and self._asked if self._inside else index == 0
        begins = not self._begun or self._served == self._batches or (another and self._served > 0)
        self._begun, self._asked = True, False
        self._served = 1 if begins else self._served + 1
        self._drawn += 1
        return begins

    def enter(self) -> None:
        """An epoch begins."""
        self._inside, self._asked, self._drawn = True, False, 0

    def leave(self) -> bool:
        """An epoch ends; True if the batches of the pass were only looked at, and have to be returned again."""
        looked = self._inside and self._asked and self.may_be_looked_at and 0 < self._served != self._batches
        self._inside = False
        if looked:
            self._served = 0
        return looked
