# SPDX-License-Identifier: Apache-2.0
"""Where passes begin, whatever the order in which Keras asks for batches."""

from distinput.interop.pass_starts import PassStarts


def epoch(starts: PassStarts, indices: list[int]) -> tuple[list[bool], bool]:
    """The requests of an epoch with which a pass begins, and whether its batch comes again."""
    starts.enter()
    return [starts.request(index) for index in indices], starts.leave()


def test_epochs_in_order() -> None:
    starts = PassStarts(3)
    starts.leave()
    for _ in range(2):
        assert epoch(starts, [0, 1, 2]) == ([True, False, False], False)


def test_epochs_in_orders_of_their_own() -> None:
    starts = PassStarts(3)
    starts.leave()
    for indices in ([2, 0, 1], [1, 2, 0], [0, 2, 1]):
        assert epoch(starts, indices) == ([True, False, False], False)


def test_a_batch_that_is_looked_at_comes_again() -> None:
    for looked, indices in ((0, [0, 1, 2]), (2, [1, 0, 2]), (1, [0, 2, 1])):
        starts = PassStarts(3)
        assert epoch(starts, [looked]) == ([True], True)
        assert epoch(starts, indices) == ([False] * 3, False), "the pass has begun already"
        assert epoch(starts, [0, 1, 2]) == ([True, False, False], False)


def test_another_model_looks_again() -> None:
    starts = PassStarts(3)
    for _ in range(2):
        assert epoch(starts, [1])[1]
        assert epoch(starts, [0, 2, 1])[0] == [False] * 3


def test_epochs_that_are_less_than_a_pass() -> None:
    starts = PassStarts(4)
    starts.leave()
    assert epoch(starts, [0, 1, 2]) == ([True, False, False], False)
    assert epoch(starts, [3, 0, 1]) == ([False, True, False], False)
    steps = PassStarts(4)
    steps.leave()
    assert [epoch(steps, [index % 4]) for index in range(8)] == [([index % 4 == 0], False) for index in range(8)]


def test_an_epoch_that_was_given_up() -> None:
    starts = PassStarts(4)
    starts.leave()
    assert epoch(starts, [0, 1])[0] == [True, False]
    assert epoch(starts, [0, 1, 2, 3])[0] == [True, False, False, False]


def test_without_epochs() -> None:
    starts = PassStarts(2)
    assert [starts.request(index) for index in (0, 1, 0, 0, 1)] == [True, False, True, True, False]


def test_without_end() -> None:
    starts = PassStarts(None)
    starts.leave()
    assert epoch(starts, [0, 1])[0] == [True, False]
    assert epoch(starts, [2, 3])[0] == [False, False]
    assert epoch(starts, [0, 1])[0] == [True, False], "another call of fit"


def test_a_pass_of_one_batch_needs_no_second_look() -> None:
    starts = PassStarts(1)
    assert epoch(starts, [0]) == ([True], False)
    assert epoch(starts, [0]) == ([True], False)
