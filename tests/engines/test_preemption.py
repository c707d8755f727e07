# SPDX-License-Identifier: Apache-2.0
"""SIGTERM to one worker of real processes: all save at the same step, end with 143, and continue exactly."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.depth import cases, new_seed, sampled
from tests.engines.preempted import RECORDS, after, dataset
from tests.engines.processes import LIMIT, environments, mpiexec, start, wait_for

ENDED = 143


def train(engine: str, folder: Path, number: int, workers: int = 2, **order: Any) -> tuple[list[int | None], str]:
    """One start of the job: how the processes ended, and what they printed."""
    path = folder / f"order-{number}.json"
    path.write_text(
        json.dumps(
            {"folder": str(folder), "engine": engine, "stops": {}, "grace": 0, "pause": 0.002, "saves": False, **order}
        )
    )
    words = [sys.executable, "-W", "error", "-m", "tests.engines.preempted", str(path)]
    output = folder / f"output-{number}"
    with output.open("wb") as file:
        if engine == "mpi":
            processes = [start([*mpiexec(), "-n", str(workers), *words], {}, file)]
        else:
            processes = [start(words, environment, file, engine) for environment in environments(workers)]
        codes = wait_for(processes, LIMIT)
    return codes, output.read_text(errors="replace")


def check_result(folder: Path, kind: str) -> None:
    results = [json.loads((folder / f"result-{worker}.json").read_text()) for worker in range(2)]
    assert results[0] == results[1]
    assert results[0]["used"] == [1] * RECORDS, "every record once"
    if kind != "uneven":
        value = np.int64(7)
        for batch in dataset(kind):
            value = after(value, batch.sum())
        assert results[0]["value"] == int(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine, kind",
    sampled([("torch", "counted"), ("mpi", "agreed"), ("jax", "agreed")], [("torch", "agreed"), ("mpi", "counted")]),
)
def test_interrupted_at_random_moments(engine: str, kind: str, tmp_path: Path) -> None:
    """Law: told to end at random moments, one or both, and started again each time: every record once, the same result."""
    seed = new_seed()
    draw = random.Random(seed)
    form = draw.choice(["run", "after the step"])
    stops: list[Any] = [{"0": draw.uniform(0, 0.03), "1": -3}, {"1": -draw.randrange(1, 6)}, {}]
    if engine != "torch":
        del stops[draw.randrange(2)]
    interrupted = 0
    for number, stop in enumerate(stops):
        codes, output = train(engine, tmp_path, number, kind=kind, form=form, stops=stop)
        told = f"seed {seed}, start {number}: {codes}\n{output}"
        if set(codes) == {0}:
            break
        assert set(codes) == {ENDED}, told
        assert "received SIGTERM: saved" in output, told
        assert "Traceback" not in output, told
        interrupted += 1
    assert set(codes) == {0}, told
    assert interrupted >= 1, told
    check_result(tmp_path, kind)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch"])
def test_a_worker_that_has_run_out_of_data_is_told(engine: str, tmp_path: Path) -> None:
    # It has records for 15 steps, the other one for 45; the pauses leave the others time to hear of it.
    codes, output = train(engine, tmp_path, 0, kind="uneven", form="run", stops={"0": -17}, pause=0.05)
    assert codes == [ENDED, ENDED], output
    codes, output = train(engine, tmp_path, 1, kind="uneven", form="run")
    assert codes == [0, 0], output
    check_result(tmp_path, "uneven")
    assert json.loads((tmp_path / "result-0.json").read_text())["first"] >= 17


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch"])
def test_a_grace_period_is_used_and_kept(engine: str, tmp_path: Path) -> None:
    codes, output = train(engine, tmp_path, 0, kind="counted", form="run", stops={"1": -2}, grace=4, pause=0.25)
    assert codes == [ENDED, ENDED], output
    assert "training continues for the grace period" in output
    codes, output = train(engine, tmp_path, 1, kind="counted", form="run")
    assert codes == [0, 0], output
    check_result(tmp_path, "counted")
    assert json.loads((tmp_path / "result-0.json").read_text())["first"] > 4


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch"])
@pytest.mark.parametrize("victim", ["0", "1"])
def test_killed_while_they_save(engine: str, victim: str, tmp_path: Path) -> None:
    """Law: SIGKILL to the worker that writes, or to another, at any moment: the job goes on from a whole checkpoint."""
    seed = new_seed()
    stops = {victim: random.Random(seed).uniform(0, 0.1)}
    codes, output = train(engine, tmp_path, 0, kind="counted", form="run", saves=True, stops=stops)
    told = f"seed {seed}: {codes}\n{output}"
    assert codes[int(victim)] in (-9, 0), told
    codes, output = train(engine, tmp_path, 1, kind="counted", form="run", saves=True)
    assert codes == [0, 0], f"{told}\n{output}"
    check_result(tmp_path, "counted")
    assert len(list(tmp_path.glob("*.npz"))) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch"])
def test_killed_again_and_again_each_time_on_another_number_of_workers(engine: str, tmp_path: Path) -> None:
    """Law 10 with real processes: SIGKILL after any step, then another W: the global batches of a job that never stops."""
    seed = new_seed()
    draw = random.Random(seed)
    numbers = draw.sample(range(RECORDS), RECORDS)
    first = draw.choice([2, 3])
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for folder in (calm, killed):
        folder.mkdir()
        for number in range(6):
            lines = numbers[number * 20 : number * 20 + 20]
            (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    codes, output = train(engine, calm, 0, first, kind="files", form="run")
    assert codes == [0] * first, output
    told, workers = f"seed {seed}: {first} workers", first
    for number in range(cases(1, 50)):
        victim = draw.randrange(workers)
        steps = draw.randrange(0, cases(8, 2))
        codes, output = train(
            engine, killed, number, workers, kind="files", form="run", saves=True, stops={str(victim): -steps or 0.0}
        )
        told += f", {steps} steps, then {codes}"
        if set(codes) == {0}:
            break
        assert codes[victim] == -9, f"{told}\n{output}"
        if any(killed.glob("*.npz")):  # before anything is saved, another number of workers is another job
            workers = draw.choice([other for other in range(1, cases(4, 6)) if other != workers])
        told += f", {workers} workers"
    codes, output = train(engine, killed, 100, workers, kind="files", form="run", saves=True)
    assert codes == [0] * workers, f"{told}\n{output}"
    results = [json.loads((folder / "result-0.json").read_text()) for folder in (calm, killed)]
    assert results[1]["used"] == [1] * RECORDS, told
    assert results[1]["value"] == results[0]["value"], f"other global batches: {told}"
