# SPDX-License-Identifier: Apache-2.0
"""A simulated job: what it says follows from the plan and the costs, and is right where the right answer is known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.experimental import AutoShardPolicy, shard_plan
from distinput.errors import InvalidArgumentError
from distinput.reports import InputCosts, Machines, Simulation, StorageLimits, measured_costs, simulate

ROWS, BATCH = 6400, 64
BATCHES = di.data.Dataset.range(ROWS).batch(BATCH)
AHEAD = InputCosts(row_seconds=1e-3, wait_seconds=0.0, cpu_seconds=1e-3)
IN_THE_LOOP = replace(AHEAD, wait_seconds=1e-3)


def one(workers: int = 1, costs: InputCosts = AHEAD, dataset: Any = BATCHES, **given: Any) -> Simulation:
    (told,) = simulate(dataset, (workers,), costs=costs, **{"step_seconds": 0.02, **given})
    return told


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 64])
@pytest.mark.parametrize("step", [0.0, 0.005, 0.02, 0.1])
def test_a_step_takes_the_longer_of_input_and_step_if_input_runs_ahead(workers: int, step: float) -> None:
    told = one(workers, step_seconds=step)
    assert told.steps == ROWS // BATCH
    assert told.steps_per_second == pytest.approx(1 / max(step, 0.064 / workers))
    assert told.limit == ("trainer" if step > 0.064 / workers else "input")


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_what_nothing_makes_ahead_comes_on_top(workers: int) -> None:
    assert one(workers, IN_THE_LOOP).steps_per_second == pytest.approx(1 / (0.02 + 0.064 / workers))


def files(tmp_path: Path, *sizes: int) -> Any:
    for number, size in enumerate(sizes):
        np.save(tmp_path / f"{number}.npy", np.arange(size, dtype=np.int64))
    return di.data.NpyDataset([str(tmp_path / f"{number}.npy") for number in range(len(sizes))])


def test_the_worker_with_the_most_rows_sets_the_pace(tmp_path: Path) -> None:
    dataset = files(tmp_path, 300, 100).batch(40)
    plan = shard_plan(dataset, 2)
    assert [worker.rows for worker in plan.workers] == [300, 100]
    told = one(2, dataset=dataset, step_seconds=0.0)
    assert told.skew == 1.5
    assert told.seconds == pytest.approx(0.3, rel=0.1)  # the 300 rows of the first worker
    assert told.saved["uneven workers"] == pytest.approx(0.1, rel=0.1)
    even = one(2, dataset=dataset, step_seconds=0.0, policy=AutoShardPolicy.BALANCED)
    assert even.seconds == pytest.approx(0.2, rel=0.1)


def test_storage_is_shared(tmp_path: Path) -> None:
    dataset = files(tmp_path, 1000, 1000, 1000, 1000).batch(100)
    free = replace(AHEAD, row_seconds=0.0)
    nbytes = sum(worker.nbytes or 0 for worker in shard_plan(dataset, 4).workers)
    for workers in (1, 2, 4):
        told = one(workers, free, dataset, step_seconds=0.0, storage=StorageLimits(bandwidth=1000.0))
        assert told.seconds == pytest.approx(nbytes / 1000, rel=0.05)
        assert told.limit == "storage bandwidth"
        assert told.bytes_per_second == pytest.approx(1000, rel=0.05)
        told = one(workers, free, dataset, step_seconds=0.0, storage=StorageLimits(requests=2.0))
        assert told.seconds == pytest.approx(2.0, rel=0.1)
        assert told.limit == "storage requests"
        told = one(workers, free, dataset, step_seconds=0.0, storage=StorageLimits(latency=1.0, at_once=1))
        assert told.seconds == pytest.approx(4.0 / workers, rel=0.1)
        assert told.limit == "storage latency"


def test_input_workers_and_cores() -> None:
    assert one(1, machines=Machines(input_workers=4), step_seconds=0.0).steps_per_second == pytest.approx(4 / 0.064)
    assert one(8, machines=Machines(input_workers=4), step_seconds=0.0).steps_per_second == pytest.approx(4 / 0.064)
    assert one(1, machines=Machines(cores=0.5), step_seconds=0.0).steps_per_second == pytest.approx(0.5 / 0.064)
    assert one(1, machines=Machines(cores=0.5), step_seconds=0.0).saved["cores"] == pytest.approx(6.4, rel=0.05)


def test_slow_inputs_cost_more_the_more_workers_there_are() -> None:
    times = [
        one(workers, machines=Machines(slow=0.01), dataset=di.data.Dataset.range(64 * 4000).batch(4000)).seconds
        / one(workers, dataset=di.data.Dataset.range(64 * 4000).batch(4000)).seconds
        for workers in (1, 64)
    ]
    assert 1.0 <= times[0] < times[1]


def test_failures_cost_a_restart_and_half_of_what_was_not_saved() -> None:
    told = one(machines=Machines(kill_every=1000.0, restart=50.0, checkpoint_every=100.0))
    calm = one()
    assert told.lost_seconds == pytest.approx(calm.seconds * 100 / 900)
    assert told.seconds == pytest.approx(calm.seconds + told.lost_seconds)
    with pytest.raises(InvalidArgumentError, match="the job never ends; save checkpoints more often"):
        one(machines=Machines(kill_every=100.0, restart=50.0, checkpoint_every=100.0))


def test_thousands_of_workers_are_planned_by_some() -> None:
    told = one(4096, dataset=di.data.Dataset.range(4096 * 8 * 20).batch(4096 * 8), replicas=8)
    assert (told.steps, told.planned, told.skew) == (20, 256, 1.0)
    assert "256 workers at even distances were planned, and stand for all" in str(told)


def test_where_each_worker_makes_everything_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    made = di.data.Dataset.from_generator(lambda: iter(range(640)), output_signature=di.TensorSpec((), np.int64)).batch(
        64
    )
    seen: list[str] = []

    def measured(mine: Any, seconds: float) -> InputCosts:
        seen.append(str(mine.node))
        return replace(AHEAD, rows=640)

    monkeypatch.setattr("distinput.reports.simulation._measured", measured)
    simulate(made, (1, 2, 4), step_seconds=0.1)
    assert len(seen) == 3  # the whole once, and what a worker of 2 and one of 4 does
    seen.clear()
    simulate(BATCHES, (2, 4, 8), step_seconds=0.1)
    assert len(seen) == 1


@given(
    st.integers(1, 9),
    st.sampled_from([0.0, 0.01, 0.1]),
    st.floats(0, 2e-3),
    st.floats(0, 1),
    st.sampled_from([None, 1.0]),
)
def test_without_a_limit_a_pass_is_never_slower(
    workers: int, step: float, row: float, waits: float, cores: float | None
) -> None:
    costs = InputCosts(row, row * waits, row)
    told = one(workers, costs, step_seconds=step, machines=Machines(cores=cores))
    assert min(told.saved.values()) >= -1e-9
    assert told.seconds >= told.steps * step - 1e-9


def test_costs_are_those_of_a_whole_pass() -> None:
    told = measured_costs(di.data.Dataset.range(103).batch(10))
    assert told.rows == 103
    assert told.wait_seconds <= told.row_seconds
    assert told.state_bytes > 50
    lines = measured_costs(di.data.Dataset.range(103).filter(lambda x: x % 2 == 0).batch(10))
    assert lines.rows == 52


@pytest.mark.parametrize(
    "given, says",
    [
        ({"workers": 0}, "workers must be greater than zero"),
        ({"replicas": 0}, "replicas must be greater than zero"),
        ({"step_seconds": -1.0}, "step_seconds must be a time from 0 on"),
        ({"step_seconds": float("nan")}, "step_seconds must be a time from 0 on"),
        ({"dataset": BATCHES.repeat()}, "the dataset has no end"),
    ],
)
def test_what_cannot_be_simulated(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        one(**given)


def test_numbers_out_of_range() -> None:
    for wrong in (
        {"bandwidth": 0.0},
        {"latency": -1.0},
        {"requests": float("nan")},
        {"at_once": 0},
        {"request_bytes": 0},
    ):
        with pytest.raises(InvalidArgumentError, match=f"StorageLimits: {next(iter(wrong))} must be"):
            StorageLimits(**wrong)
    for wrong in (
        {"cores": 0.0},
        {"input_workers": -1},
        {"kill_every": 0.0},
        {"slow": -0.1},
        {"restart": float("inf")},
    ):
        with pytest.raises(InvalidArgumentError, match=f"Machines: {next(iter(wrong))} must be"):
            Machines(**wrong)
    with pytest.raises(InvalidArgumentError, match="slow is a part"):
        Machines(slow=1.5)


def test_rows_that_nobody_knows_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("line\n" * 100, encoding="utf-8")
    lines = di.data.TextLineDataset(str(tmp_path / "a.txt")).batch(10)
    with pytest.raises(InvalidArgumentError, match="it is not known how many rows the dataset has: say rows="):
        one(dataset=lines)
    assert one(dataset=lines, rows=100).steps == 10
    for wrong in (-500, 0, float("nan"), float("inf")):
        with pytest.raises(InvalidArgumentError, match="simulate: rows must be a number from 1 on, got"):
            one(dataset=lines, rows=wrong)
    (told,) = simulate(lines, (1,), step_seconds=0.0)
    assert told.steps == 10


def test_nothing_to_measure() -> None:
    with pytest.raises(InvalidArgumentError, match="the dataset has no rows"):
        measured_costs(di.data.Dataset.range(0).batch(2))
