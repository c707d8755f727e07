# SPDX-License-Identifier: Apache-2.0
"""Where passes begin, whatever the order in which Keras asks for batches."""

import random
from collections.abc import Iterator
from itertools import count

import pytest

from distinput.interop.pass_starts import PassStarts


class Loop:
    """What Keras asks and says in a call of `fit`, after its `EpochIterator` and `PyDatasetAdapter`."""

    def __init__(
        self, starts: PassStarts, batches: int | None, steps: int | None = None, shuffle: int | None = 0
    ) -> None:
        self.starts, self.batches, self.steps = starts, batches, steps
        self.shuffle = random.Random(shuffle) if shuffle is not None and batches else None
        self.iterator: Iterator[int] | None = None
        self.seen = 0
        self.again = False
        starts.ask()

    def generator(self) -> Iterator[int]:
        if self.batches is None:
            yield from count()
            return
        self.starts.ask()
        order = list(range(self.batches))
        if self.shuffle:
            self.shuffle.shuffle(order)
        yield from order

    def another(self) -> Iterator[int]:
        self.starts.ask()
        return self.generator()

    def reset(self) -> None:
        self.iterator, self.seen = None, 0
        self.starts.ask()
        self.again = self.starts.leave()

    def epoch(self, stop: int | None = None) -> list[bool]:
        """The requests of an epoch with which a pass begins; `stop`: it is given up after so many batches."""
        self.starts.enter()
        steps = self.steps or self.batches
        assert steps
        if self.iterator is None or self.steps is None:
            self.iterator, self.seen = self.another(), 0
        begun = []
        for step in range(steps):
            if step == stop:
                return begun
            if self.batches and self.seen >= self.batches:
                break
            self.seen += 1
            begun.append(self.starts.request(next(self.iterator)))
        if self.batches and self.seen >= self.batches:
            self.iterator, self.seen = self.another(), 0
        self.again = self.starts.leave()
        return begun

    def look(self, batches: int) -> bool:
        self.epoch(stop=batches)
        self.reset()
        return self.again


@pytest.fixture(params=range(6))
def seed(request: pytest.FixtureRequest) -> int | None:
    return None if request.param == 0 else int(request.param)


def test_every_epoch_is_a_pass(seed: int | None) -> None:
    starts = PassStarts(3)
    loop = Loop(starts, 3, shuffle=seed)
    loop.reset()
    for _ in range(3):
        assert loop.epoch() == [True, False, False]
        assert not loop.again


@pytest.mark.parametrize("looked", [1, 2])
def test_batches_that_are_looked_at_come_again(looked: int, seed: int | None) -> None:
    starts = PassStarts(4)
    for _ in range(2):  # two models
        loop = Loop(starts, 4, shuffle=seed)
        assert loop.look(looked)
        assert loop.epoch() == [False] * 4, "the pass has begun already"
        assert loop.epoch() == [True, False, False, False]


def test_epochs_that_are_less_than_a_pass(seed: int | None) -> None:
    starts = PassStarts(4)
    loop = Loop(starts, 4, steps=3, shuffle=seed)
    loop.reset()
    epochs = [loop.epoch() for _ in range(4)]
    assert epochs == [[True, False, False], [False], [True, False, False], [False]], "Keras ends every second one early"


def test_epochs_of_one_batch(seed: int | None) -> None:
    starts = PassStarts(4)
    loop = Loop(starts, 4, steps=1, shuffle=seed)
    loop.reset()
    assert [loop.epoch() for _ in range(8)] == [[index % 4 == 0] for index in range(8)]


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_after_an_epoch_that_was_given_up_the_next_call_begins_a_pass(stop: int, seed: int | None) -> None:
    starts = PassStarts(4)
    loop = Loop(starts, 4, shuffle=seed)
    loop.reset()
    loop.epoch(stop=stop)
    following = Loop(starts, 4, shuffle=seed)
    following.reset()
    again = following.again
    assert again == (stop <= 2), "its batches come again, or it begins anew"
    assert following.epoch() == [not again, False, False, False]


def test_the_same_data_for_training_and_some_steps_of_validation(seed: int | None) -> None:
    starts = PassStarts(4)
    training = Loop(starts, 4, shuffle=seed)
    training.reset()
    validation = Loop(starts, 4, steps=3, shuffle=None)
    for _ in range(3):
        assert training.epoch() == [True, False, False, False]
        validation.reset()
        assert validation.epoch() == [True, False, False]


def test_predictions_of_less_than_a_pass() -> None:
    starts = PassStarts(4)
    for _ in range(3):
        assert Loop(starts, 4, steps=3, shuffle=None).epoch() == [True, False, False]


def test_without_epochs() -> None:
    starts = PassStarts(2)
    assert [starts.request(index) for index in (0, 1, 0, 0, 1)] == [True, False, True, True, False]


def test_a_pass_that_never_ends_starts_once() -> None:
    starts = PassStarts(None)
    loop = Loop(starts, None, steps=3)
    loop.reset()
    assert [loop.epoch() for _ in range(2)] == [[True, False, False], [False, False, False]]
    another = Loop(starts, None, steps=3)
    another.reset()
    assert another.epoch() == [True, False, False], "another call of fit"


def test_a_pass_of_one_batch_needs_no_second_look() -> None:
    starts = PassStarts(1)
    loop = Loop(starts, 1)
    assert not loop.look(1)
    assert [loop.epoch(), loop.epoch()] == [[True], [True]]
