# SPDX-License-Identifier: Apache-2.0
from distinput.run.run import ReadAheadBudget


def test_a_single_piece_may_take_more_than_all_together() -> None:
    budget = ReadAheadBudget(pieces=2, nbytes=10)
    assert budget.enter(99)
    assert not budget.enter(1)
    budget.leave(99)
    assert budget.enter(9)
    assert not budget.enter(2)
    assert budget.enter(1)


def test_there_are_so_many_pieces_at_most() -> None:
    budget = ReadAheadBudget(pieces=2, nbytes=10)
    assert [budget.enter(0) for _ in range(3)] == [True, True, False]
    budget.leave(0)
    assert budget.enter(0)


def test_pieces_that_mostly_wait_enter_beyond_that_within_four_times_the_memory() -> None:
    budget = ReadAheadBudget(pieces=2, nbytes=10)
    assert [budget.enter(6, waits=True) for _ in range(7)] == 6 * [True] + [False]
    assert not budget.enter(0)
    assert [budget.enter(0, waits=True) for _ in range(11)] == 10 * [True] + [False]
    assert budget.most(waits=True) == 8 * budget.most(waits=False) == 16


def test_of_those_that_wait_some_are_not_under_way_until_others_have_come() -> None:
    budget = ReadAheadBudget(pieces=2, nbytes=10)
    assert budget.under_way(1, waits=False) == budget.most(waits=False)
    assert budget.under_way(1, waits=True) == 10 < budget.most(waits=True)
    assert budget.under_way(5, waits=True) == 4  # in half of the memory
    assert budget.under_way(100, waits=True) == 2
    assert budget.under_way(0, waits=True) == 10
