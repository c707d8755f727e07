# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any

import pytest

from distinput.distribute.input.lockstep import Lockstep
from distinput.errors import AbortedError, FailedPreconditionError
from tests.distribute.workers import on_workers


def drawn_by(lockstep: Lockstep) -> list[Any]:
    steps = []
    while (parts := lockstep.next()) is not None:
        steps.append((parts, lockstep.state["at"]))
    return steps


def run(inputs: Sequence[Sequence[Any]], **options: Any) -> list[Any]:
    """What each worker draws, whose input gives these parts step by step; an error among them is raised."""

    def body(strategy: Any, worker: int) -> Any:
        rest = list(enumerate(inputs[worker], 1))
        at = 0

        def draw() -> Any:
            nonlocal at
            if not rest:
                return [], {"at": at}
            at, parts = rest.pop(0)
            if isinstance(parts, Exception):
                raise parts
            return parts, {"at": at}

        return drawn_by(Lockstep(strategy._replicas.peers.control, draw, {"at": 0}, about=lambda: "input", **options))

    return on_workers([1] * len(inputs), body, timeout=60)


@pytest.mark.parametrize("steps", [0, 1, 3, 9])
def test_workers_end_together_and_those_that_ran_out_get_nothing(steps: int) -> None:
    long, short = [[i] for i in range(steps)], [[i] for i in range(steps // 2)]
    zero, one = run([long, short])
    assert zero == [([i], i + 1) for i in range(steps)]
    assert one == [([i], i + 1) for i in range(steps // 2)] + [([], steps // 2)] * (steps - steps // 2)


def test_steps_in_which_nobody_has_a_row_are_passed_over() -> None:
    zero, one = run([[[0], [3], [0]], [[0], [0], [2]]], rows_of=sum)
    assert [parts for parts, _ in zero] == [[3], [0]]
    assert [parts for parts, _ in one] == [[0], [2]]


def test_a_failure_is_raised_by_all_in_its_step() -> None:
    def body(strategy: Any, worker: int) -> Any:
        given = iter([[0], [1], ValueError("poison") if worker else [2], [3]])

        def draw() -> Any:
            parts = next(given)
            if isinstance(parts, Exception):
                raise parts
            return parts, {}

        lockstep = Lockstep(strategy._replicas.peers.control, draw, {}, about=lambda: "input")
        seen = [lockstep.next(), lockstep.next()]
        with pytest.raises(ValueError if worker else AbortedError, match="poison") as caught:
            lockstep.next()
        return seen, lockstep.next(), str(caught.value)

    zero, one = on_workers([1, 1], body, timeout=60)
    assert zero[:2] == one[:2] == ([[0], [1]], None)
    assert zero[2] == "the input of worker 1 of 2 failed in this step: ValueError: poison"


def test_workers_that_should_read_the_same_and_do_not_are_told() -> None:
    for error in run([[[3]], [[4]]], rows_of=sum, alike=True, hints=["their files differ"]):
        assert isinstance(error, FailedPreconditionError)
        assert "worker 0 has a batch of 3 rows, worker 1 has a batch of 4 rows; their files differ" in str(error)
    for error in run([[[3], [3]], [[3]]], rows_of=sum, alike=True):
        assert isinstance(error, FailedPreconditionError)
        assert "worker 0 has a batch of 3 rows, worker 1 has nothing" in str(error)


def test_closing_leaves_the_channel_in_order_for_the_next_iteration() -> None:
    def body(strategy: Any, worker: int) -> Any:
        control = strategy._replicas.peers.control
        first = Lockstep(control, lambda: ([1], {}), {}, about=lambda: "first")
        assert first.next() == [1]
        first.close()
        first.close()
        assert first.next() is None
        given = iter([[2], []])
        second = Lockstep(control, lambda: (next(given, []), {}), {}, about=lambda: "second")
        return [second.next(), second.next()]

    assert on_workers([1, 1], body, timeout=60) == [[[2], None]] * 2


def test_all_workers_know_in_which_steps_one_of_them_lacks_rows() -> None:
    def body(strategy: Any, worker: int) -> Any:
        rest = [[[2], [1], [1]], [[3], [0]]][worker]
        lockstep = Lockstep(
            strategy._replicas.peers.control,
            lambda: (rest.pop(0) if rest else [], {}),
            {},
            about=lambda: "input",
            lacks=lambda parts: not sum(parts),
        )
        found = []
        while lockstep.next() is not None:
            found.append(lockstep.lacking)
        return found

    assert on_workers([1, 1], body, timeout=60) == [[False, True, True]] * 2
