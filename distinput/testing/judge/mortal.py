# SPDX-License-Identifier: Apache-2.0
"""A rank in a process of its own, which is killed: `python -m distinput.testing.judge.mortal FOLDER` is that process."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distinput.testing.judge.batch import Ids, look_of
from distinput.testing.judge.delivery import Step, most_steps
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.states import NoState, Saved, begun, restored, saved

__all__ = ["Life", "Task", "live"]

_TASK, _STEPS = "task", "steps"


@dataclass(frozen=True)
class Task:
    """What the process does.

    Args:
      make: makes the loader.
      ids: the records of a batch.
      job: the job.
      rank: which rank it is.
      state: what it goes on from.
      kill: "rank": it kills itself; "worker": it kills a process that its loader has started; None: it comes to its end.
      after: the steps before that.
    """

    make: Maker
    ids: Ids
    job: Job
    rank: int
    state: Saved | None = None
    kill: str | None = None
    after: int = 0


@dataclass(frozen=True)
class Life:
    """What became of it.

    Args:
      steps: what it got, as far as it has saved a state.
      state: the last one.
      said: the error that ended it, None at the end of the data and when it was killed.
      killed: what was to be killed was.
      hung: seconds after which it was killed because it stood still, None if it did not.
    """

    steps: tuple[Step, ...]
    state: Saved | None
    said: str | None
    killed: bool
    hung: float | None


def live(task: Task, patience: float, beat: Callable[[], None]) -> Life:
    """Run a task in a new process and wait for its end.

    Args:
      task: what it does; everything in it can be pickled.
      patience: seconds that it may stand still, after those that it takes to begin.
      beat: called all the while.

    Raises:
      Exception: the task cannot be pickled.
    """
    packed = pickle.dumps(task)
    with tempfile.TemporaryDirectory(prefix="distinput-judge-") as folder, tempfile.TemporaryFile() as output:
        Path(folder, _TASK).write_bytes(packed)
        path = os.pathsep.join([each for each in sys.path if each] + [os.getcwd()])
        process = subprocess.Popen(
            [sys.executable, "-m", "distinput.testing.judge.mortal", folder],
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        try:
            hung = _wait(process, Path(folder, _STEPS), patience, beat)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        steps, state, said, killed = _read(Path(folder, _STEPS))
        if process.returncode and not (hung or said or process.returncode == -signal.SIGKILL):
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
            said = lines[-1] if lines else f"exit status {process.returncode}"
        itself = task.kill == "rank" and process.returncode == -signal.SIGKILL and hung is None
        return Life(steps, state, said, killed or itself, hung)


def _wait(process: "subprocess.Popen[bytes]", path: Path, patience: float, beat: Callable[[], None]) -> float | None:
    size, since = -1, time.monotonic()
    while process.poll() is None:
        beat()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        now = path.stat().st_size if path.exists() else -1
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > patience:
            return patience
    return None


def _read(path: Path) -> tuple[tuple[Step, ...], Saved | None, str | None, bool]:
    steps: list[Step] = []
    state, said, killed = None, None, False
    if path.exists():
        with path.open("rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
            while True:
                word, value = pickle.load(file)
                if word == "step":
                    step, state = value
                    steps.append(step)
                killed |= word == "killed"
                said = value if word == "error" else said
    return tuple(steps), state, said, killed


def _run(folder: str) -> None:
    task: Task = pickle.loads(Path(folder, _TASK).read_bytes())
    with Path(folder, _STEPS).open("wb") as file:

        def tell(word: str, value: Any) -> None:
            pickle.dump((word, value), file)
            file.flush()

        try:
            for step, state in _steps(task, tell):
                tell("step", (step, state))
        except Exception as error:  # noqa: BLE001 - whatever a loader raises is what is judged
            tell("error", f"{type(error).__name__}: {error}".splitlines()[0])


def _steps(task: Task, tell: Callable[[str, Any], None]) -> Any:
    loader = task.make(task.job, task.rank)
    batches = begun(loader) if task.state is None else restored(loader, task.state)
    for number in range(most_steps(task.job)):
        try:
            batch = next(batches)
        except StopIteration:
            return
        if task.kill == "rank" and number == task.after:
            os.kill(os.getpid(), signal.SIGKILL)  # before a state after this step could be saved
        state = None
        with contextlib.suppress(NoState):
            state = None if task.kill == "worker" else saved(loader, batches)
        yield Step(tuple(task.ids(batch)), look_of(batch)), state
        if task.kill == "worker" and number + 1 == task.after:
            for process in _processes():
                os.kill(process, signal.SIGKILL)
                tell("killed", process)
                break


def _processes() -> list[int]:
    """The processes that this one has started to read, the latest first; none where the system does not tell."""
    found: list[int] = []
    for thread in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [child for child in map(int, thread.read_text().split()) if not _tracker(child)]
    return sorted(found, reverse=True)


def _tracker(process: int) -> bool:
    """Python's own process, which cleans up after others."""
    return b"resource_tracker" in Path(f"/proc/{process}/cmdline").read_bytes()


if __name__ == "__main__":
    # What is pickled here is found again under the name of the module, not as `__main__`.
    from distinput.testing.judge import mortal

    mortal._run(sys.argv[1])
