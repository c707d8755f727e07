# SPDX-License-Identifier: Apache-2.0
"""Workers whose programs differ: each gets the right numbers or an error; never a wrong number, and nobody waits for ever."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.collectives.multi_worker_strategy import MultiWorkerMirroredStrategy
from distinput.errors import CollectiveError, InvalidArgumentError
from tests.depth import cases
from tests.distribute.workers import on_workers

Value = di.distribute.PerReplica


def _in_replicas(strategy: Any, x: Value, op: str) -> Any:
    def step(part: Any) -> Any:
        context = di.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce(op, part)

    return strategy.experimental_local_results(strategy.run(step, args=(x,)))[0]


# Each on a line of its own, as in a program; some differ in nothing else.
STATEMENTS: tuple[Callable[[Any, Value, str, int], Any], ...] = (
    lambda strategy, x, op, axis: strategy.reduce(op, x, axis=None),
    lambda strategy, x, op, axis: strategy.reduce(op, x, axis=None),
    lambda strategy, x, op, axis: strategy.reduce(op, x, axis=axis),
    lambda strategy, x, op, axis: strategy.reduce(op, x, axis=axis),
    lambda strategy, x, op, axis: strategy.reduce(op, x, axis=axis, deterministic=True),
    lambda strategy, x, op, axis: strategy.gather(x, axis=axis),
    lambda strategy, x, op, axis: strategy.gather(x, axis=axis),
    lambda strategy, x, op, axis: strategy.reduce(op, {"a": x, "b": x}, axis=None)["b"],
    lambda strategy, x, op, axis: strategy.extended.reduce_to(op, x, x),
    lambda strategy, x, op, axis: strategy.extended.batch_reduce_to(op, [(x, x), (x, x)])[1],
    lambda strategy, x, op, axis: _in_replicas(strategy, x, op),
)


@dataclass(frozen=True)
class Step:
    """One statement with what it is given; None as statement: the next step of the input."""

    statement: int | None
    number: int
    op: str = "SUM"
    axis: int = 0
    dtype: str = "f8"
    rows: int = 2

    def perform(self, strategy: Any, worker: int, steps: Any) -> Any:
        if self.statement is None:
            return strategy.gather(next(steps), axis=0)
        x = np.full((self.rows, 2), 100 * self.number + 10 * worker, self.dtype)
        return STATEMENTS[self.statement](strategy, Value([x, x + 1]), self.op, self.axis)


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Step], list[Step]]:
    """A program, and what another worker has in its place."""
    chosen = draw(st.lists(st.sampled_from([None, *range(len(STATEMENTS))]), min_size=2, max_size=6, unique=True))
    program = [
        Step(statement, number, draw(st.sampled_from(["SUM", "MEAN"])), draw(st.integers(0, 1)))
        for number, statement in enumerate(chosen)
    ]
    other = list(program)
    at = draw(st.integers(0, len(program) - 1))
    match draw(st.sampled_from(["drop", "insert", "swap", "op", "axis", "dtype", "rows"])):
        case "drop":
            del other[at]
        case "insert":
            left = [number for number in range(len(STATEMENTS)) if number not in chosen]
            other.insert(at, Step(draw(st.sampled_from(left)), 90))
        case "swap":
            to = draw(st.integers(0, len(program) - 1))
            other[at], other[to] = other[to], other[at]
        case "op":
            other[at] = replace(other[at], op="MEAN" if other[at].op == "SUM" else "SUM")
        case "axis":
            other[at] = replace(other[at], axis=1 - other[at].axis)
        case "dtype":
            other[at] = replace(other[at], dtype="f4")
        case "rows":
            other[at] = replace(other[at], rows=3)
    return program, other


def outcomes(sequences: Sequence[Sequence[Step]]) -> list[tuple[dict[Step, Any], Exception | None]]:
    """What the steps gave on each worker, and the error that ended them."""
    found: list[tuple[dict[Step, Any], Exception | None]] = [({}, None) for _ in sequences]

    def body(strategy: MultiWorkerMirroredStrategy, worker: int) -> None:
        source = di.data.Dataset.range(40).filter(lambda x: x >= 0).batch(4)
        steps = iter(strategy.experimental_distribute_dataset(source))
        for step in sequences[worker]:
            try:
                found[worker][0][step] = np.asarray(step.perform(strategy, worker, steps)).tolist()
            except Exception as error:
                found[worker] = (found[worker][0], error)
                raise

    on_workers([2] * len(sequences), body, timeout=60)
    return found


@settings(max_examples=cases(30, 1500))
@given(programs(), st.integers(2, 3), st.integers(0, 2))
def test_a_right_number_or_an_error(pair: tuple[list[Step], list[Step]], workers: int, odd: int) -> None:
    program, other = pair
    odd %= workers
    right = outcomes([program] * workers)
    assert [error for _, error in right] == [None] * workers
    found = outcomes([other if worker == odd else program for worker in range(workers)])
    like = {step.number for step in other if step not in program and _same_for_all(step, program)}
    for worker, (values, error) in enumerate(found):
        for step, value in values.items():
            assert step.number in like or value == right[worker][0].get(step, value), (worker, step)
        assert error is None or isinstance(error, CollectiveError | InvalidArgumentError), repr(error)
    for step in other:  # what only this worker called had no answer that could be right
        assert step in program or step not in found[odd][0] or step.number in like, step
    if [(step.statement, step.number) for step in other] != [(step.statement, step.number) for step in program]:
        assert any(error is not None for _, error in found)


def _same_for_all(step: Step, program: Sequence[Step]) -> bool:
    """Whether a changed step asks what the others ask: sizes may differ along the axis that is summed or concatenated."""
    original = next((one for one in program if one.number == step.number), None)
    if original is None:
        return False
    if step.statement is None or (step.statement in (5, 6) and step.op != original.op):
        return True  # the change is of something that the statement does not look at
    whole = step.statement in (0, 1, 7, 8, 9, 10)
    return (whole and step.axis != original.axis) or (not whole and step.rows != original.rows and step.axis == 0)
