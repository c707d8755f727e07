# SPDX-License-Identifier: Apache-2.0
"""A simulated job: what it says follows from the plan and the costs, and is right where the right answer is known."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import distinput as di
from distinput.data.experimental import SHARD_HINT, AutoShardPolicy, shard_plan
from distinput.distribute import rehearsal
from distinput.distribute.input.lockstep import Lockstep
from distinput.distribute.input.sources import CutBatches, OwnPiecesSource
from distinput.errors import InvalidArgumentError
from distinput.reports import InputCosts, Machines, Simulation, StorageLimits, measured_costs, simulate, simulation

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


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_function_over_whole_batches_makes_no_more_steps(workers: int) -> None:
    batches = di.data.Dataset.range(64).batch(8)
    costs = InputCosts(1e-6, 0.0, 1e-6)
    for dataset in (batches, batches.map(lambda batch: batch + 1), batches.map(lambda batch: batch + 1).prefetch(2)):
        (told,) = simulate(dataset, [workers], step_seconds=0.01, costs=costs, rows=64)
        assert told.steps == 8


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


def generated(rows: int) -> Any:
    return di.data.Dataset.from_generator(lambda: iter(range(rows)), output_signature=di.TensorSpec((), np.int64))


def test_a_row_is_measured_once_for_each_kind_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def measured(mine: Any, seconds: float) -> InputCosts:
        seen.append(str(mine.node))
        return replace(AHEAD, rows=640)

    monkeypatch.setattr("distinput.reports.simulation._measured", measured)
    simulate(generated(640).batch(64), (1, 2, 4), step_seconds=0.1)
    assert len(seen) == 1  # each of several workers makes all batches, as a lone one does
    seen.clear()
    simulate(BATCHES, (2, 4, 8), step_seconds=0.1)
    assert len(seen) == 1


# ----------------------------------------------------------------------------
# When the loop of a worker gets its steps.
# ----------------------------------------------------------------------------


def test_workers_that_agree_on_the_end_draw_several_batches_between_two_steps() -> None:
    # A batch takes 1 s to make, a step 1 s. Before step 0 the loops draw 6 batches, which are there after 6 s. During steps
    # 0 and 1 the thread makes 2 more: one waits in the buffer, one in its hands. Before step 2 the loops draw 4, of which the
    # last two take 1 s each, up to 10 s. Then there are all 10 batches, and 8 steps are left.
    costs = InputCosts(row_seconds=1 / 8, wait_seconds=0.0, cpu_seconds=0.0, rows=80)
    for workers in (2, 3, 8):
        told = one(workers, costs, generated(80).batch(8), step_seconds=1.0)
        assert (told.steps, told.first_seconds, told.seconds) == pytest.approx((10, 6.0, 18.0))
    alone = one(1, costs, generated(80).batch(8), step_seconds=1.0)
    assert (alone.first_seconds, alone.seconds) == pytest.approx((1.0, 11.0))


def test_workers_that_know_the_number_of_steps_draw_one_at_a_time() -> None:
    costs = InputCosts(row_seconds=1 / 8, wait_seconds=0.0, cpu_seconds=0.0)
    batches = di.data.Dataset.range(80).cache().batch(8)  # no rows by position: each worker makes all batches
    for workers in (1, 2, 8):
        told = one(workers, costs, batches, step_seconds=1.0)
        assert (told.first_seconds, told.seconds) == pytest.approx((1.0, 11.0))


def test_a_batch_of_a_worker_s_own_files_is_several_steps(tmp_path: Path) -> None:
    # Of 4 workers each makes a global batch of its own rows, 4 s long, and takes 4 steps of it: the first one after 4 s.
    costs = InputCosts(row_seconds=1 / 2, wait_seconds=0.0, cpu_seconds=0.0)
    told = one(4, costs, files(tmp_path, 32, 32, 32, 32).batch(8), step_seconds=0.5)
    assert (told.policy, told.steps) == ("FILE", 16)
    # Batches are there at 4, 8, 12 and 16 s; the last 4 steps take 0.5 s each.
    assert (told.first_seconds, told.seconds) == pytest.approx((4.0, 18.0))


def test_each_worker_takes_all_rows_where_nobody_divides_them() -> None:
    costs = InputCosts(row_seconds=1e-3, wait_seconds=0.0, cpu_seconds=0.0)
    for workers in (1, 2, 4):
        told = one(workers, costs, generated(640).batch(64), policy=AutoShardPolicy.OFF, rows=640)
        assert (told.steps, told.skew) == (10 * workers, 1.0)
        assert told.seconds == pytest.approx(max(0.064 / workers, 0.02) * 10 * workers, rel=0.25)


def test_a_buffer_is_filled_before_the_first_step() -> None:
    costs = replace(AHEAD, fill_seconds=2.0)  # 2,000 of 6,400 rows
    assert one(1, costs).first_seconds == pytest.approx(2.064)
    assert one(1, costs, step_seconds=0.1).seconds == pytest.approx(2.064 + 10.0)
    assert one(1, costs, step_seconds=0.0).seconds == pytest.approx(6.4)  # the rows are only made earlier
    # The last batches are there: they take no longer than their steps.
    assert one(1, costs, step_seconds=0.05).seconds == pytest.approx(6.4 + 0.05 * 2000 / 64, rel=0.02)


def clocked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """1,000 rows that take a second each, on a clock on which nothing else takes any time."""
    now = [0.0]

    def rows() -> Iterator[int]:
        for number in range(1000):
            now[0] += 1.0
            yield number

    monkeypatch.setattr(simulation, "perf_counter", lambda: now[0])
    monkeypatch.setattr(simulation, "sleep", lambda _: None)
    one_by_one = di.data.Options()
    one_by_one.run_ahead = 0  # a generator is asked for several elements at once, as the clock of the machine says
    return di.data.Dataset.from_generator(rows, output_signature=di.TensorSpec((), np.int64)).with_options(one_by_one)


def test_what_a_pass_keeps_does_not_make_it_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    told = measured_costs(clocked(monkeypatch).cache().batch(10), seconds=5000.0, ahead=False)
    assert (told.row_seconds, told.wait_seconds, told.fill_seconds) == (1.0, 1.0, 0.0)


def test_filling_a_buffer_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    source = clocked(monkeypatch)
    told = measured_costs(source.shuffle(500, seed=1).batch(10), seconds=100.0, ahead=False)
    assert told.rows is None
    assert told.fill_seconds == pytest.approx(500, rel=0.1)
    assert told.row_seconds == pytest.approx(
        1, rel=0.1
    )  # although filling took longer than the seconds that were given
    whole = measured_costs(source.shuffle(500, seed=1).batch(10), seconds=5000.0, ahead=False)
    assert whole.rows == 1000
    assert whole.row_seconds == pytest.approx(1, rel=0.1)  # although the last 500 rows came at no cost
    assert whole.fill_seconds == pytest.approx(500, rel=0.1)
    assert measured_costs(source.batch(10), seconds=100.0, ahead=False).fill_seconds == pytest.approx(0, abs=20)


def test_passes_beside_one_another_share_the_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    rows: list[int] = []  # each costs a second of a core

    def source() -> Iterator[int]:
        begun.append(1)
        for number in range(40):
            rows.append(number)
            yield number

    monkeypatch.setattr(simulation, "process_time", lambda: float(len(rows)))
    dataset = di.data.Dataset.from_generator(source, output_signature=di.TensorSpec((), np.int64)).batch(8)
    assert measured_costs(dataset).cpu_seconds == 1.0
    assert len(begun) == 2
    assert measured_costs(dataset, beside=2).cpu_seconds == 1.0
    assert len(begun) == 7
    with pytest.raises(InvalidArgumentError, match="beside must be at least 0"):
        measured_costs(dataset, beside=-1)


class _Alone:
    """Agreements of two workers that draw the same."""

    size = 2

    def agree(self, facts: list[int], about: str) -> Any:
        return SimpleNamespace(result=lambda: [2 * fact for fact in facts])


@pytest.mark.parametrize("steps", [1, 5, 23])
def test_draws_are_those_of_the_lockstep(steps: int) -> None:
    left, seen = iter(range(steps + 100)), []
    drawn: list[int] = []

    def draw() -> tuple[list[Any], Any]:
        drawn.append(next(left))
        return [drawn[-1]], {}

    lockstep: Any = Lockstep(_Alone(), draw, {})  # type: ignore[arg-type]
    for step in range(steps):
        before = len(drawn)
        assert lockstep.next() == [step]
        seen.append(len(drawn) - before)
    feed = simulation._feed_of(generated(8).batch(4).node, shard_plan(generated(8).batch(4), 2), None)
    assert feed.agrees
    assert [*feed.draws(steps)] == seen


INPUTS: dict[str, Callable[[Any], Any]] = {
    "generator": lambda _: generated(64).batch(8),
    "prefetch": lambda _: generated(64).batch(8).prefetch(3),
    "filter": lambda _: di.data.Dataset.range(64).filter(lambda x: x % 2 == 0).batch(8),
    "own rows": lambda _: di.data.Dataset.range(64).map(lambda x: x + 1).batch(8).prefetch(2),
    "cache": lambda _: di.data.Dataset.range(64).cache().batch(8),
    "shuffle": lambda _: di.data.Dataset.range(64).shuffle(8).batch(8),
    "interleave": lambda _: di.data.Dataset.range(8).interleave(lambda _: di.data.Dataset.range(8)).batch(8),
    "zip": lambda _: di.data.Dataset.zip((di.data.Dataset.range(64), generated(64))).batch(8),
    "counted files": lambda folder: files(folder, 32, 16, 8, 8).batch(8).prefetch(2),
    "padded": lambda folder: (
        files(folder, 32, 16, 8, 8)
        .map(lambda x: np.arange(x), output_signature=di.TensorSpec((None,), np.int64))
        .padded_batch(8)
    ),
    "hint": lambda _: generated(64).shard(SHARD_HINT, SHARD_HINT).batch(8),
}
FED = [
    *[
        (name, policy)
        for name in INPUTS
        if name != "hint"
        for policy in (None, AutoShardPolicy.DATA, AutoShardPolicy.OFF)
    ],
    ("counted files", AutoShardPolicy.BALANCED),
    ("hint", AutoShardPolicy.HINT),
]


@pytest.mark.parametrize("name, policy", FED)
def test_a_loop_is_fed_as_in_a_job(name: str, policy: Any, tmp_path: Path) -> None:
    dataset = INPUTS[name](tmp_path)
    if policy is not None:
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        dataset = dataset.with_options(options)
    for workers, replicas in ((1, 1), (1, 2), (2, 1), (2, 2)):
        feed = simulation._feed_of(dataset.node, shard_plan(dataset, workers, replicas), None)
        source = rehearsal.rehearse(dataset, workers, replicas, lambda steps, _: steps._source)[0]
        assert feed.agrees == source.agrees
        assert feed.alone == isinstance(source, OwnPiecesSource)
        assert feed.whole == (workers > 1 and isinstance(source, CutBatches))
        match source:
            case CutBatches():
                assert feed.room == simulation._ahead(source.dataset.node)[0]
            case OwnPiecesSource():
                assert feed.room == max(1, simulation._ahead(source.batches.pieces.node)[0] // replicas)
            case _:
                assert feed.room == max(1, simulation._ahead(source.datasets[0].node)[0] // replicas)


def test_a_dataset_that_is_divided_where_it_says_so() -> None:
    dataset = INPUTS["hint"](Path())
    for workers in (1, 2):  # measured as a worker reads it: the place alone cannot be iterated
        (told,) = simulate(dataset, (workers,), step_seconds=0.0, policy=AutoShardPolicy.HINT)
        assert (told.policy, told.steps) == ("HINT", 8)


class _Clock:
    """Processes that are generators: each yields seconds to sleep, or a condition to wait for."""

    def __init__(self) -> None:
        self.now = 0

    def run(self, processes: list[Iterator[Any]]) -> None:
        waits: dict[Iterator[Any], Any] = dict.fromkeys(processes, 0)  # a time, or a condition
        while waits:
            able = [p for p, until in waits.items() if (until() if callable(until) else until <= self.now)]
            for process in able:
                until = next(process, None)
                if until is None:
                    del waits[process]
                else:
                    waits[process] = until if callable(until) else self.now + until
            times = [until for until in waits.values() if not callable(until)]
            if not able and times:
                self.now = min(times)
            assert able or times, "nothing can go on"


def by_events(steps: int, makes: list[int], step: int, room: int, block: int, below: int, lockstep: bool) -> int:
    """The time of a pass, by threads with buffers between them, one event after the other."""
    clock = _Clock()
    arrived = [0] * steps
    left = [0]

    def worker(make: int) -> list[Iterator[Any]]:
        elements: list[int] = []  # below
        inputs: list[int] = []
        sizes = [min(block, steps - first) for first in range(0, steps, block)]

        def maker() -> Iterator[Any]:
            for size in sizes:
                yield make * size
                yield lambda: len(elements) < below
                elements.append(size)

        def cutter() -> Iterator[Any]:
            for size in sizes:
                if below:
                    yield lambda: bool(elements)
                    elements.pop(0)
                else:
                    yield make * size
                yield lambda: len(inputs) < room
                inputs.extend([1] * size)

        def loop() -> Iterator[Any]:
            drawn = several = 0
            for number in range(steps):
                while drawn - number <= (4 if lockstep else 0):
                    several = min(several + 1, 4) if lockstep else 1
                    for _ in range(several):
                        if drawn < steps:
                            yield lambda: bool(inputs)
                            inputs.pop()
                        drawn += 1
                arrived[number] += 1
                yield lambda number=number: arrived[number] == len(makes)
                yield step
            left.append(clock.now)

        return [*([maker()] if below else []), cutter(), loop()]

    clock.run([process for make in makes for process in worker(make)])
    return max(left)


@given(
    steps=st.integers(1, 30),
    makes=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    step=st.integers(0, 9),
    room=st.integers(1, 4),
    block=st.integers(1, 4),
    below=st.integers(0, 3),
    agrees=st.booleans(),
)
@example(
    steps=9, makes=[2], step=5, room=1, block=1, below=1, agrees=True
)  # the first thread goes on while the second waits
def test_the_recurrence_is_what_threads_with_buffers_do(
    steps: int, makes: list[int], step: int, room: int, block: int, below: int, agrees: bool
) -> None:
    rows = np.array(makes, np.float64) * steps
    feed = simulation._Feed(BATCHES.node, False, True, False, room, block, below, agrees)
    job = simulation._Job(steps, rows, rows, rows, None, None, float(step), feed, len(makes))
    time = simulation._Time(job, InputCosts(1.0, 0.0, 0.0), StorageLimits(), Machines())
    assert time.passes()[0] == by_events(steps, makes, step, room, block, below, agrees)


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
