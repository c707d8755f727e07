# SPDX-License-Identifier: Apache-2.0
"""Runs the workers of a job as processes of this machine, watches them, kills them, and leaves none behind."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

import distinput as di

__all__ = ["ENGINES", "DemoJob", "check_engine"]

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
    if not lacks and engine == "mpi" and _mpiexec() is None:
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
            self._processes = [self._start([*(_mpiexec() or ()), "-n", str(workers), *words], {})]
        else:
            self._processes = [self._start(words, place) for place in _places(workers)]

    def _start(self, words: list[str], place: dict[str, str]) -> "subprocess.Popen[bytes]":
        # One thread per process, since they share the cores. No variables of another cluster, which would mislead them.
        environment = {"OMP_NUM_THREADS": "1", **{k: v for k, v in os.environ.items() if k != "TF_CONFIG"}, **place}
        return subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return not Path("/proc/self/stat").exists()


def _places(workers: int) -> list[dict[str, str]]:
    """A TF_CONFIG for every worker, with free ports."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        cluster = {"worker": [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]}
    tasks = [{"type": "worker", "index": worker} for worker in range(workers)]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


def _mpiexec() -> list[str] | None:
    """The launcher of this Python environment, else that of the machine; None if there is none."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    # Open MPI must be told that several processes may share a core, and that it may run as root.
    return [found, *(["--allow-run-as-root", "--oversubscribe"] if "open" in version.lower() else [])]
