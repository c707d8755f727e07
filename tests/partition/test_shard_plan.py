# SPDX-License-Identifier: Apache-2.0
"""A plan as a value: planned worker by worker when asked, as plain values, and in print."""

import json

import pytest

from distinput.sharding.shard_plan import FileRange, ShardPlan, WorkerPlan, Workers


def plan(workers: int, steps: int | None = 2, parts: int = 1) -> tuple[ShardPlan, list[int]]:
    asked: list[int] = []

    def make(worker: int) -> WorkerPlan:
        asked.append(worker)
        files = tuple([FileRange(f"{worker}-{part}", rows=3, nbytes=12) for part in range(parts)])
        return WorkerPlan(worker, files, 3, 12, steps)

    return ShardPlan(
        "FILE", "AUTO", "enough_files", "whole files", workers, 1, "none", "own", Workers(make, workers)
    ), asked


@pytest.mark.parametrize(
    "part, shown, told",
    [
        (FileRange("a"), "a", {"file": "a", "rows": None, "bytes": None}),
        (FileRange("a", 3, 5, 2, 9), "a[3:5]", {"file": "a", "start": 3, "stop": 5, "rows": 2, "bytes": 9}),
        (FileRange("a", 3), "a[3:]", {"file": "a", "start": 3, "rows": None, "bytes": None}),
        (FileRange("a", None, 5), "a[0:5]", {"file": "a", "stop": 5, "rows": None, "bytes": None}),
    ],
)
def test_a_range_of_a_file(part: FileRange, shown: str, told: dict[str, object]) -> None:
    assert str(part) == shown
    assert part.to_dict() == told


def test_a_file_that_is_read_in_ranges_is_named_once() -> None:
    assert WorkerPlan(0, (FileRange("a", 0, 1), FileRange("b"), FileRange("a", 2)), None, None, None).files == (
        "a",
        "b",
    )


def test_workers_are_planned_when_they_are_asked_for_and_once() -> None:
    made, asked = plan(1000)
    assert len(made.workers) == 1000
    assert made.workers[-1].worker == 999
    assert [w.worker for w in made.workers[3:5]] == [3, 4]
    assert made.workers[3].worker == 3
    assert asked == [999, 3, 4]
    with pytest.raises(IndexError):
        made.workers[1000]


@pytest.mark.parametrize("steps, end", [(2, "beforehand"), (None, "agreed"), (-1, "endless")])
def test_steps_say_how_the_end_is_known(steps: int | None, end: str) -> None:
    made, _ = plan(3, steps)
    assert (made.steps, made.end) == (steps, end)
    assert json.loads(made.to_json())["end"] == end


def test_the_most_steps_of_a_worker_are_those_of_all() -> None:
    workers = Workers(lambda worker: WorkerPlan(worker, (), None, None, worker), 4)
    assert ShardPlan("DATA", "DATA", "asked", "", 4, 1, "", "memory", workers).steps == 3


def test_a_print_of_many_workers_plans_those_it_shows() -> None:
    made, asked = plan(5000, parts=5)
    shown = str(made)
    assert len(asked) == 16
    assert "2 on the first 16 workers" in shown
    assert "0-0, 0-1, 0-2 and 2 more" in shown
    assert "... and 4984 workers more" in shown
    assert "2 on every worker" in str(plan(3)[0])
