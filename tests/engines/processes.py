# SPDX-License-Identifier: Apache-2.0
"""Starts the workers of a test as processes, on an engine, and never outlives them: each is in a group of its own that
is killed when its time is over."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from distinput.testing.ports import free_ports
from tests.depth import DEEP
from tests.nursery import FORKED, ROOT
from tests.patience import PATIENCE

__all__ = [
    "ENGINES",
    "LIMIT",
    "NURSERIES",
    "ROOT",
    "Outcome",
    "Process",
    "environments",
    "missing",
    "mpiexec",
    "run",
    "start",
    "start_in_nursery",
    "wait_for",
]

ENGINES = {"jax": ("jax",), "mpi": ("mpi4py",), "torch": ("torch",)}
"""The packages that an engine needs."""
LIMIT = 2 * PATIENCE
"""Seconds after which all processes of a test are killed, when it does not say otherwise."""


def missing(engine: str) -> str:
    """Why a test on this engine is left out; empty when it is not."""
    lacks = [name for name in ENGINES[engine] if importlib.util.find_spec(name) is None]
    return f"engine {engine!r}: {', '.join(lacks)} not installed; `make test` installs it" if lacks else ""


class Process(Protocol):
    """What is waited for."""

    pid: int

    def poll(self) -> int | None: ...


def wait_for(processes: Sequence[Process], limit: float, stuck: Collection[int] = ()) -> list[int | None]:
    """How processes ended, None for those that had to be killed because their time was over.

    Args:
      processes: leaders of their process groups.
      limit: seconds.
      stuck: the numbers of those that are not waited for.
    """
    deadline = time.monotonic() + limit
    needed = [process for i, process in enumerate(processes) if i not in stuck]
    while any(process.poll() is None for process in needed) and time.monotonic() < deadline:
        time.sleep(0.005)
    codes = [process.poll() for process in processes]
    for process, code in zip(processes, codes, strict=True):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        while code is None and process.poll() is None:
            time.sleep(0.005)
    return codes


def environments(size: int) -> list[dict[str, str]]:
    """TF_CONFIG for each of `size` workers of this machine, on free ports."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(size)]}
    return [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": i}})} for i in range(size)
    ]


@cache
def mpiexec() -> tuple[str, ...]:
    """The command that starts MPI processes, of this Python environment if it has one."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else "mpiexec"
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    return (found, *(("--allow-run-as-root", "--oversubscribe") if "open" in version.lower() else ()))


NURSERIES = {engine: FORKED.nurseries[engine] for engine in ("jax", "torch")}
"""Where the workers of these engines are born; those of MPI are children of mpiexec."""


def start(words: Sequence[str], environment: dict[str, str], output: Any, engine: str = "") -> Process:
    """A process that leads a group of its own.

    Args:
      words: the command.
      environment: more variables.
      output: the file for what it says.
      engine: from whose nursery it comes, if it has one; the command begins with this interpreter.
    """
    every = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default", **environment}
    for name in [name for name in every if name.startswith(("PYTEST_", "COV_"))]:
        del every[name]
    if engine in NURSERIES and not DEEP:
        with open(os.devnull, "rb") as nothing:
            files = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}
            child = NURSERIES[engine].start(words[1:], every, files, new_session=True)
        if child is not None:
            return child
    return subprocess.Popen(
        list(words), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=every, start_new_session=True
    )


@dataclass(frozen=True)
class Outcome:
    """What became of the workers.

    Args:
      answers: of each worker, None where it left none: `result`, or `error`, `text` and the time `at` which it came.
      codes: how the processes ended, with mpiexec its own; None for one that had to be killed.
      output: what they printed.
      seconds: how long it took.
    """

    answers: list[dict[str, Any] | None]
    codes: list[int | None]
    output: str
    seconds: float

    @property
    def results(self) -> list[Any]:
        """What the program returned on each worker; all must have ended well."""
        for worker, answer in enumerate(self.answers):
            assert answer is not None, f"worker {worker} left no answer, {self.codes}:\n{self.output}"
            assert "result" in answer, f"worker {worker}: {answer}\n{self.output}"
        assert set(self.codes) == {0}, f"{self.codes}:\n{self.output}"
        return [answer["result"] for answer in self.answers if answer is not None]


def start_in_nursery(
    engine: str, commands: Sequence[Sequence[str]], limit: float, stuck: int | None
) -> tuple[list[int | None], str]:
    """Start the workers of `distinput.testing.collectives` from a process that has loaded the engine."""
    with tempfile.TemporaryFile() as output:
        workers = [start(command, {"GLOO_SOCKET_IFNAME": "lo"}, output, engine) for command in commands]
        codes = wait_for(workers, limit, [] if stuck is None else [stuck])
        output.seek(0)
        return codes, output.read().decode(errors="replace")


def run(
    engine: str,
    replicas: Sequence[int],
    program: str,
    given: Any = None,
    *,
    timeout: float = PATIENCE,
    limit: float = LIMIT,
    stuck: Sequence[int] = (),
    launcher: Sequence[str] = (),
    backend: str = "threads",
) -> Outcome:
    """Run a program of programs.py on workers that are processes.

    Args:
      engine: a key of `ENGINES`.
      replicas: how many each worker has; one worker for each number.
      program: a key of `PROGRAMS`.
      given: what the program is given, plain JSON.
      timeout: of the strategy, in seconds.
      limit: seconds after which all of them are killed.
      stuck: the workers that will not end by themselves.
      launcher: the command that starts the workers and says who they are, in the place of the engine's own.
      backend: what the replicas run on.
    """
    size = len(replicas)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="distinput-engines-") as made:
        folder = Path(made)
        order = {"program": program, "given": given, "replicas": list(replicas), "timeout": timeout, "limit": limit}
        (folder / "order.json").write_text(
            json.dumps({**order, "implementation": engine, "backend": backend}), encoding="utf-8"
        )
        words = ["-m", "tests.engines.worker", str(folder)]
        if engine == "mpi" and not launcher:
            launcher = (*mpiexec(), "-n", str(size), sys.executable)
        with (folder / "output").open("wb") as output:
            if launcher:
                workers = [start([*launcher, *words], {}, output, engine)]
            else:
                places = environments(size)
                workers = [start([sys.executable, *words], place, output, engine) for place in places]
            codes = wait_for(workers, limit, stuck)
        answers = [_read(folder / f"answer-{rank}.json") for rank in range(size)]
        said = (folder / "output").read_text(errors="replace")
        return Outcome(answers, codes, said, time.monotonic() - began)


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    answer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return answer
