# SPDX-License-Identifier: Apache-2.0
"""`distinput demo --workers N`: a job of several processes that loses one of them and continues with the rest."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from itertools import chain
from math import ceil
from pathlib import Path
from time import monotonic, perf_counter, sleep, time
from typing import Any, Self

import distinput as di
from distinput.cli.demo.demo import (
    EVALUATION_BATCH,
    TRAINING_BATCH,
    DemoReport,
    differences,
    each_once,
    files_of,
    has_learned,
    percent,
    place_of,
)
from distinput.cli.demo.program import Digits, Pass, Training, evaluate, evaluation_batches, mirrored, train
from distinput.names.words import count_of
from distinput.testing.ports import free_ports, mpiexec

# ----------------------------------------------------------------------------
# Runs the workers of a job as processes of this machine, watches them, kills them, and leaves none behind.
# ----------------------------------------------------------------------------


ENGINES = {"jax": "jax", "mpi": "mpi4py", "torch": "torch"}
"""The engines of the demo, with the package that each of them needs."""
Event = dict[str, Any]

_LOOK = 0.005  # seconds between two looks at the workers' files
_WORDS = 12  # lines of the processes' output to quote in an error


def check_engine(engine: str) -> None:
    """Raise if an engine cannot be used.

    Raises:
      FailedPreconditionError: it is not installed; the message says what to do.
    """
    package = ENGINES[engine]
    lacks = f"the Python package {package}" if find_spec(package) is None else ""
    if not lacks and engine == "mpi":
        try:
            mpiexec(1)
        except FileNotFoundError:
            lacks = "the command mpiexec"
    if lacks:
        there = [name for name, needs in ENGINES.items() if find_spec(needs) is not None and name != engine]
        raise di.errors.FailedPreconditionError(
            f"the engine {engine!r} needs {lacks}, which is not installed; use `pip install 'distinput[{engine}]'`"
            + (f", or choose one that is: --engine {' or '.join(there)}" if there else "")
        )


class DemoJob:
    """Processes that run `distinput demo --job FILE`; each logs its progress to a file of its own.

    Args:
      folder: the folder for the files of this job.
      workers: the number of processes.
      engine: a key of `ENGINES`.
      order: their instructions, as plain JSON.

    Raises:
      FailedPreconditionError: the engine is not installed.
    """

    def __init__(self, folder: Path, workers: int, engine: str, order: Event) -> None:
        check_engine(engine)
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._workers, self._engine = folder, workers, engine
        (folder / "job.json").write_text(json.dumps(order | {"engine": engine}), encoding="utf-8")
        for worker in range(workers):
            self._log(worker).unlink(missing_ok=True)
        self._said = (folder / "output.txt").open("wb")
        words = [sys.executable, "-m", "distinput", "demo", "--job", str(folder / "job.json")]
        if engine == "mpi":
            self._processes = [self._start([*mpiexec(workers), *words], {})]
        else:
            self._processes = [self._start(words, place) for place in _places(workers)]

    def _start(self, words: list[str], place: dict[str, str]) -> "subprocess.Popen[bytes]":
        # One thread per process, since they share the cores. No variables of another cluster, which would mislead them.
        environment = {"OMP_NUM_THREADS": "1", **{k: v for k, v in os.environ.items() if k != "TF_CONFIG"}, **place}
        nothing, said = subprocess.DEVNULL, self._said
        return subprocess.Popen(words, env=environment, stdin=nothing, stdout=said, stderr=said, start_new_session=True)

    def _log(self, worker: int) -> Path:
        return self._folder / f"worker-{worker}.jsonl"

    def events(self, worker: int) -> list[Event]:
        """The log of a worker so far."""
        try:
            lines = self._log(worker).read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def said(self) -> str:
        """The output of the processes and their launcher."""
        return (self._folder / "output.txt").read_text(encoding="utf-8", errors="replace")

    def _last_words(self) -> str:
        return "\n".join(self.said().strip().splitlines()[-_WORDS:]) or "the processes said nothing"

    def found(self, worker: int, key: str) -> Any:
        """The latest value that a worker logged under this name; None if there is none."""
        return next((event[key] for event in reversed(self.events(worker)) if key in event), None)

    def wait_until(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait for an event that the workers log.

        Raises:
          ChildProcessError: a process ended or the time ran out before the event.
        """
        deadline = monotonic() + seconds
        while not reached():
            ended = [process.returncode for process in self._processes if process.poll() is not None]
            if ended and not reached():
                raise ChildProcessError(f"a process ended with status {ended[0]} before {what}:\n{self._last_words()}")
            if monotonic() > deadline:
                raise ChildProcessError(f"after {seconds:g} seconds, {what} has not come:\n{self._last_words()}")
            sleep(_LOOK)

    def kill(self, worker: int) -> None:
        """Send SIGKILL: the process gets no chance to say anything."""
        os.kill(self.found(worker, "pid"), signal.SIGKILL)

    def wait(self, seconds: float) -> list[int | None]:
        """The exit status of all processes, or of the launcher under MPI; None for those that had not ended in time."""
        deadline = monotonic() + seconds
        while any(process.poll() is None for process in self._processes) and monotonic() < deadline:
            sleep(_LOOK)
        return [process.poll() for process in self._processes]

    def alive(self, seconds: float) -> list[int]:
        """The workers whose processes still exist after this time; returns at once when all have ended."""
        deadline = monotonic() + seconds
        while True:
            left = [worker for worker in range(self._workers) if _is_alive(self.found(worker, "pid"))]
            if not left or monotonic() > deadline:
                return left
            sleep(_LOOK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM if self._engine == "mpi" else signal.SIGKILL)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self._said.close()


def _is_alive(process: int | None) -> bool:
    if process is None:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:  # a process that has ended stays in the table until its adoptive parent reaps it
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self/stat").exists()


def _places(workers: int) -> list[dict[str, str]]:
    """A TF_CONFIG for every worker, with free ports."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(workers)]}
    tasks = [{"type": "worker", "index": worker} for worker in range(workers)]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


# ----------------------------------------------------------------------------
# `distinput demo --workers N`: a job of several processes that loses one of them and continues with the rest.
# ----------------------------------------------------------------------------


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
      engine: the engine that connects them, a key of `ENGINES`.
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
    victim, step = workers - 1, steps // 2
    record = Path(order["saved"])
    report.heading(f"Training on {count_of(workers, 'worker')}, until one is killed")
    with DemoJob(folder, workers, engine, order | {"kill": [victim, step]}) as job:
        everybody = range(workers)
        job.wait_until(lambda: all(job.found(w, "ready") for w in everybody), "the start of all workers", LIMIT)
        slowest = max(job.found(w, "ready") for w in everybody)
        report.fact(
            "started",
            f"{workers} processes, which found one another {slowest:.1f} s later by "
            + ("mpiexec" if engine == "mpi" else "TF_CONFIG"),
        )
        job.wait_until(lambda: all(job.found(w, "step") == step for w in everybody), f"step {step}", LIMIT)
        report.fact("steps", f"{step} of {steps}, with {TRAINING_BATCH} records each, cut for the workers")
        content = record.stat().st_size
        state = len(str(Training.load(record).state))
        report.fact(
            "saved after every step",
            f"by worker 0: {content:,} bytes, {state} of which say where the data stand, on any number of workers",
        )
        when = time()
        job.kill(victim)
        report.fact("killed", f"worker {victim}, process {job.found(victim, 'pid')}, by SIGKILL after step {step}")
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
    launcher = evaluate(strategy, alone.model, evaluation_batches(place, "tfrecord", EVALUATION_BATCH))
    epochs = order["epochs"]
    each = ceil(len(parts["train"].id) / TRAINING_BATCH)
    passes = [list(chain(*steps[i * each : (i + 1) * each])) for i in range(epochs)]
    report.fact("records delivered", f"{sum(map(len, steps)):,} in {len(steps)} steps and {count_of(epochs, 'epoch')}")
    each_once(report, passes, parts["train"], "in every epoch, the one with the kill included, checked by id")
    same = len(steps) == len(one_by_one) and all(sorted(a) == sorted(b) for a, b in zip(steps, one_by_one, strict=True))
    report.check("the same steps", "" if same else "not those of one worker", "the same records in each of them")
    report.check(
        "the same model",
        "" if done.model.saved() == alone.model.saved() else "its parameters differ",
        f"all {sum(p.size for p in alone.model.parameters.values())} parameters to the last bit",
    )
    _evaluation(report, evaluated, launcher, parts["test"])


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
    has_learned(report, alone)
