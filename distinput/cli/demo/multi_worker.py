# SPDX-License-Identifier: Apache-2.0
"""`distinput demo --workers N`: a job of several processes that loses one of them and continues with the rest."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from math import ceil
from pathlib import Path
from time import perf_counter, time
from typing import Any

import distinput as di
from distinput.cli.demo.demo import EVALUATION_BATCH, LEARNED, TRAINING_BATCH, count_of, files_of, percent, place_of
from distinput.cli.demo.digits import Digits
from distinput.cli.demo.job import DemoJob, check_engine
from distinput.cli.demo.pipelines import evaluation_batches
from distinput.cli.demo.report import DemoReport, differences
from distinput.cli.demo.training import Pass, evaluate, mirrored
from distinput.cli.demo.worker import Training, train

__all__ = ["run_multi_worker_demo"]

TIMEOUT = 30.0
"""Seconds that a worker waits for the others, and within which it must notice that one is gone."""
LIMIT = 240.0
"""Seconds after which a job that makes no progress is given up."""

StepIds = list[list[int]]
"""For each step, the ids delivered to all workers together."""


def run_multi_worker_demo(workers: int, engine: str, epochs: int, directory: Path | None) -> bool:
    """Run the demo of several processes and print its findings.

    Args:
      workers: the number of processes at first; one fewer continues.
      engine: the engine that connects them, a key of `job.ENGINES`.
      epochs: passes over the training data.
      directory: where the files are kept; None takes a temporary one.

    Returns:
      True if every check passed.

    Raises:
      FailedPreconditionError: the engine is not installed.
      ChildProcessError: the workers ended or stopped making progress too early.
    """
    start_time = perf_counter()
    report = DemoReport()
    check_engine(engine)
    report.say(
        f"distinput {di.__version__}: hand-written digits, on {workers} processes that speak through {engine}; one is killed"
    )
    with place_of(directory) as place:
        parts = files_of(report, place, kept=directory is not None)
        steps = epochs * ceil(len(parts["train"].id) / TRAINING_BATCH)
        saved = place / "digits-saved.json"
        saved.unlink(missing_ok=True)
        order = {
            "directory": str(place),
            "saved": str(saved),
            "epochs": epochs,
            "batch": TRAINING_BATCH,
            "evaluation_batch": EVALUATION_BATCH,
            "timeout": TIMEOUT,
            "kill": None,
        }
        before = _killed(report, place / "job-1", workers, engine, order, steps)
        with DemoJob(place / "job-2", workers - 1, engine, order) as job:
            after, evaluated = _going_on(report, job, workers - 1, saved, steps)
        _together(report, place, before + after, Training.load(saved), evaluated, parts, order)
    return report.conclude(perf_counter() - start_time)


def _killed(report: DemoReport, folder: Path, workers: int, engine: str, order: dict[str, Any], steps: int) -> StepIds:
    """Run a job that loses a worker half way; return the ids delivered up to the last save."""
    victim, at = workers - 1, steps // 2
    record = Path(order["saved"])
    report.heading(f"Training on {count_of(workers, 'worker')}, until one is killed")
    with DemoJob(folder, workers, engine, order | {"kill": [victim, at]}) as job:
        everybody = range(workers)
        job.wait_until(lambda: all(job.found(w, "ready") for w in everybody), "the start of all workers", LIMIT)
        slowest = max(job.found(w, "ready") for w in everybody)
        report.fact(
            "started",
            f"{workers} processes, which found one another {slowest:.1f} s later by "
            + ("mpiexec" if engine == "mpi" else "TF_CONFIG"),
        )
        job.wait_until(lambda: all(job.found(w, "step") == at for w in everybody), f"step {at}", LIMIT)
        report.fact("steps", f"{at} of {steps}, with {TRAINING_BATCH} records each, cut for the workers")
        content = record.stat().st_size
        state = len(str(Training.load(record).state))
        report.fact(
            "saved after every step",
            f"by worker 0: {content:,} bytes, {state} of which say where the data stand, on any number of workers",
        )
        when = time()
        job.kill(victim)
        report.fact("killed", f"worker {victim}, process {job.found(victim, 'pid')}, by SIGKILL after step {at}")
        codes = job.wait(TIMEOUT + 30)
        ended = time() - when
        survivors = [w for w in everybody if w != victim]
        late = _errors(report, job, survivors, victim, when)
        if engine == "mpi":
            said = re.search(r"\S+ noticed that[\s\S]*?signal 9.*|.*signal 9.*", job.said())
            says = f", saying: {' '.join(said[0].split())}" if said else ""
            report.fact("the job", f"ended by mpiexec after {ended:.2f} s with status {codes[0]}{says}")
            wrong = "" if codes[0] else f"mpiexec ended with status {codes[0]}, as if all were well"
            report.check("the end is no secret", wrong, "MPI ends all workers with the one that died, and says so")
        else:
            report.check(
                "an error on the others",
                late,
                f"on {len(survivors)} of {len(survivors)}, which names worker {victim}; nobody waits for the dead",
            )
        left = job.alive(TIMEOUT)
        report.check(
            "no process is left",
            f"those of workers {left} are" if left else "",
            f"{time() - when:.2f} s after the kill",
        )
        done = Training.load(record).step
        return _given(job, everybody, 1, done)


def _errors(report: DemoReport, job: DemoJob, survivors: Sequence[int], victim: int, when: float) -> str:
    """Print the error of every survivor, and return what is wrong with these errors."""
    wrong = []
    for worker in survivors:
        error = next((event for event in job.events(worker) if "error" in event), None)
        if error is None:
            wrong.append(f"worker {worker} got none")
            continue
        text = error["text"].splitlines()[0]
        report.fact(f"worker {worker}, {error['at'] - when:.2f} s later", f"{error['error']}: {text}")
        if error["at"] - when > TIMEOUT:
            wrong.append(f"worker {worker} waited {error['at'] - when:.1f} s")
        if f"rank {victim}" not in text and f"worker {victim}" not in text:
            wrong.append(f"that of worker {worker} does not name worker {victim}")
    return "; ".join(wrong)


def _going_on(
    report: DemoReport, job: DemoJob, workers: int, saved: Path, steps: int
) -> tuple[StepIds, list[dict[str, Any]]]:
    """Run a job of fewer workers from the save; return the ids delivered, and each worker's evaluation of the model."""
    first = Training.load(saved).step + 1
    report.heading(f"Going on with {count_of(workers, 'worker')}")
    everybody = range(workers)
    job.wait_until(lambda: all(job.found(w, "evaluated") for w in everybody), "the end of the training", LIMIT)
    codes = job.wait(TIMEOUT)
    started = [job.found(w, "ready") for w in everybody]
    report.fact("started", f"{count_of(workers, 'new process', 'new processes')}, ready after {max(started):.1f} s")
    report.fact("steps", f"from {first} to {job.found(0, 'step')} of {steps}")
    wrong = "" if not any(codes) else f"a process ended with status {codes}"
    report.check("all ended well", wrong, "every worker took the same number of steps, and nobody waited for another")
    return _given(job, everybody, first, steps), [job.found(w, "evaluated") for w in everybody]


def _given(job: DemoJob, workers: Iterable[int], first: int, last: int) -> StepIds:
    """The ids delivered to all workers together in these steps."""
    steps: dict[int, list[int]] = {step: [] for step in range(first, last + 1)}
    for worker in workers:
        for event in job.events(worker):
            if "ids" in event and event["step"] in steps:
                steps[event["step"]] += event["ids"]
    return list(steps.values())


def _together(
    report: DemoReport,
    place: Path,
    steps: StepIds,
    done: Training,
    evaluated: list[dict[str, Any]],
    parts: dict[str, Digits],
    order: dict[str, Any],
) -> None:
    """Compare both jobs together with an undisturbed run of one worker."""
    report.heading("Both together, beside one worker that nobody disturbs")
    alone, one_by_one, losses = Training(), [], []

    def on_step(_: Training, gave: dict[str, Any]) -> None:
        one_by_one.append(gave["ids"])
        losses.append(gave["loss"])

    strategy = mirrored(1)
    train(strategy, place, order, alone, on_step)
    found = evaluate(strategy, alone.model, evaluation_batches(place, "tfrecord", EVALUATION_BATCH))
    epochs = order["epochs"]
    each = ceil(len(parts["train"].id) / TRAINING_BATCH)
    passes = [list(chain(*steps[i * each : (i + 1) * each])) for i in range(epochs)]
    wrong = [(i, differences(ids, parts["train"].id)) for i, ids in enumerate(passes, 1)]
    report.fact("records delivered", f"{sum(map(len, steps)):,} in {len(steps)} steps and {count_of(epochs, 'epoch')}")
    report.check(
        "each exactly once",
        next((f"epoch {i}: {text}" for i, text in wrong if text), ""),
        "in every epoch, the one with the kill included, checked by id",
    )
    same = len(steps) == len(one_by_one) and all(sorted(a) == sorted(b) for a, b in zip(steps, one_by_one, strict=True))
    report.check("the same steps", "" if same else "not those of one worker", "the same records in each of them")
    report.check(
        "the same model",
        "" if done.model.saved() == alone.model.saved() else "its parameters differ",
        f"all {sum(p.size for p in alone.model.parameters.values())} parameters to the last bit",
    )
    _evaluation(report, evaluated, found, parts["test"])


def _evaluation(report: DemoReport, evaluated: list[dict[str, Any]], alone: Pass, part: Digits) -> None:
    ids = list(chain(*[one["ids"] for one in evaluated]))
    report.table(
        [count_of(len(evaluated), "worker"), "1 worker"],
        [
            ("accuracy", [percent(evaluated[0]["correct"] / max(1, len(ids))), percent(alone.accuracy)]),
            ("loss", [f"{evaluated[0]['loss'] / max(1, len(ids)):.6f}", f"{alone.mean_loss:.6f}"]),
        ],
    )
    report.check("each tested once", differences(ids, part.id), f"all {len(part.id)} records, checked by id")
    correct = {one["correct"] for one in evaluated}
    report.check(
        "the same accuracy",
        "" if correct == {alone.correct} else f"{correct} of {len(ids)} and {alone.correct} of {len(alone.ids)}",
        f"{alone.correct} of {len(alone.ids)} on every worker and alone: to the last bit",
    )
    report.check(
        f"at least {LEARNED:.0%} accuracy",
        "" if alone.accuracy >= LEARNED else f"only {percent(alone.accuracy)}",
        f"{percent(alone.accuracy)} of images the model has never seen",
    )
