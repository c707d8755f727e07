# SPDX-License-Identifier: Apache-2.0
"""Does a simulation say what a job takes? Small jobs on this machine, beside it: python benchmarks/simulated_jobs.py.

Each pipeline is measured once, then simulated and run at 1, 2, 4 and 8 workers, which are threads of this process. Most of what
takes time sleeps, so that two cores are enough; the far store is a server of this machine with a latency and a bandwidth.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import cpu_count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import distinput as di
from distinput.distribute import rehearsal
from distinput.reports import simulation
from distinput.reports.simulation import Machines, StorageLimits

ROWS, BATCH, FILES = 400, 8, 8
STEP = 0.06
ROW = 0.012
"""Long sleeps: on a busy machine each ends a millisecond late."""
LATENCY, BANDWIDTH, RECORD = 0.03, 4_000_000, 20_000


@dataclass(frozen=True)
class Job:
    """A pipeline, and the step of its training loop.

    Args:
      dataset: of global batches.
      step_seconds: of a step.
      measured: what its costs are measured of, where that is not the same: the files near by.
      storage: that it reads from.
      busy: whether its workers keep all cores busy.
      rows: of a pass, where files do not tell.
    """

    dataset: Any
    step_seconds: float = STEP
    measured: Any = None
    storage: StorageLimits = field(default_factory=StorageLimits)
    rows: int = ROWS
    busy: bool = False


def sleeping(x: Any) -> Any:
    """A function that takes time and no core."""
    time.sleep(ROW)
    return x


def sleeping_a_batch(x: Any) -> Any:
    """The same for a batch."""
    time.sleep(ROW * BATCH / 2)
    return x


def computing(x: Any) -> Any:
    """A function that needs a core, mostly without Python's lock.

    About 12 ms of a core. With an eighth of that a pass took 0.2 s, and a fourth of its CPU time at 8 workers was that of
    starting threads and taking steps together, which share the cores here and no cores of other machines.
    """
    random = np.random.default_rng(int(x))
    return np.sum([np.sort(random.random(200_000)).sum() for _ in range(8)])


def generated() -> Iterator[int]:
    """Numbers that take time."""
    for number in range(ROWS // 2):
        time.sleep(ROW)
        yield number


def jobs(folder: Path, url: str) -> dict[str, Job]:
    """Twelve of them."""
    numbers = di.data.Dataset.range(ROWS)
    even = [folder / f"even-{number}.txt" for number in range(FILES)]
    uneven = [folder / f"uneven-{number}.txt" for number in range(8)]
    for path in even:
        path.write_text("line\n" * (ROWS // FILES), encoding="utf-8")
    for number, path in enumerate(uneven):
        path.write_text("line\n" * (ROWS // 8 * (3 if number == 0 else 1)), encoding="utf-8")
    records = [f"{number}.bin" for number in range(8)]
    for name in records:
        (folder / name).write_bytes(bytes(RECORD * 100))
    near = di.data.FixedLengthRecordDataset([str(folder / name) for name in records], RECORD)
    far = di.data.FixedLengthRecordDataset([f"{url}/{name}" for name in records], RECORD)
    lines = di.data.TextLineDataset
    generator = di.data.Dataset.from_generator(generated, output_signature=di.TensorSpec((), np.int64))
    return {
        "sleep in the loop": Job(numbers.map(sleeping).batch(BATCH)),
        "sleep ahead": Job(numbers.map(sleeping).batch(BATCH).prefetch(2)),
        "sleep on 4 threads": Job(numbers.map(sleeping, num_parallel_calls=4).batch(BATCH).prefetch(2)),
        "a loop that does nothing": Job(numbers.map(sleeping).batch(BATCH), 0.0),
        "no input to speak of": Job(numbers.batch(BATCH)),
        "sleep for each batch": Job(numbers.batch(BATCH).map(sleeping_a_batch).prefetch(2)),
        "lines of even files": Job(lines(even).map(sleeping).batch(BATCH)),
        "lines of uneven files": Job(lines(uneven).map(sleeping).batch(BATCH), rows=ROWS // 8 * 10),
        "a generator": Job(generator.batch(BATCH), rows=ROWS // 2),
        "shuffled": Job(numbers.shuffle(200, seed=1).map(sleeping).batch(BATCH).prefetch(1)),
        "cores": Job(numbers.take(ROWS // 2).map(computing).batch(BATCH).prefetch(2), 0.001, busy=True),
        "far files": Job(
            far.batch(BATCH), 0.001, near.batch(BATCH), StorageLimits(bandwidth=BANDWIDTH, latency=LATENCY)
        ),
    }  # fmt: skip


def taken(job: Job, workers: int) -> float:
    """Seconds of a pass of a real job."""

    def body(distributed: Any, strategy: Any) -> float:
        steps = iter(distributed)
        begin = time.perf_counter()
        for _ in steps:
            strategy.run(lambda: None)
            if workers > 1:
                strategy.reduce("SUM", strategy.run(lambda: np.float32(1)), axis=None)
            time.sleep(job.step_seconds)
        return time.perf_counter() - begin

    return max(rehearsal.rehearse(job.dataset, workers, 1, body))


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A store on this machine that takes its time."""
    words = ["--latency", str(LATENCY), "--bandwidth", str(BANDWIDTH)]
    command = [sys.executable, "-m", "distinput.testing.range_server", str(folder), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def main() -> None:
    """Print a line a job: simulated, taken, and the ratio of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    cores = cpu_count() or 1
    off = []
    with tempfile.TemporaryDirectory(prefix="distinput-jobs-") as made, server(Path(made)) as url:
        print(f"{'job':26} {'workers':>7} {'simulated':>10} {'taken':>10} {'ratio':>6}  limit")
        empty = Job(di.data.Dataset.range(ROWS).batch(BATCH))
        counts = [*map(int, given.workers.split(","))]
        taken(empty, 2)  # what is only loaded once
        for name, job in jobs(Path(made), url).items():
            if given.only not in name:
                continue
            measured = job.dataset if job.busy else job.measured
            # Two hyperthreads of a core take longer each than one alone, so costs are those of cores as busy as in the job.
            beside = cores - 1 if job.busy else 0
            costs = None if measured is None else simulation.measured_costs(measured, beside=beside)
            for workers in counts:
                # What taking steps together costs, which is a part of a step, on the machine as busy as it is for the job.
                pairs = [(taken(empty, workers), taken(job, workers)) for _ in range(given.rounds)]
                meeting = median(alone for alone, _ in pairs) / (ROWS // BATCH) - STEP
                (told,) = simulation.simulate(
                    job.dataset, (workers,), step_seconds=job.step_seconds + meeting, storage=job.storage,
                    machines=Machines(cores=cores / workers), costs=costs, rows=job.rows,
                )  # fmt: skip
                real = median(both for _, both in pairs)
                off.append(told.seconds / real)
                print(
                    f"{name:26} {workers:7} {told.seconds:10.3f} {real:10.3f} {off[-1]:6.2f}  {told.limit}", flush=True
                )
    worst = max(off, key=lambda ratio: abs(ratio - 1))
    print(f"{sum(abs(ratio - 1) <= 0.15 for ratio in off)} of {len(off)} within 15 %; the worst ratio is {worst:.2f}")


if __name__ == "__main__":
    main()
