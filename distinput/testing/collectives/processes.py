# SPDX-License-Identifier: Apache-2.0
"""The checks and faults in real processes of this machine."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from distinput.testing.collectives.outcome import Outcome, Report

__all__ = ["Start", "check_processes", "free_address", "mpiexec"]

Start = Callable[[Sequence[Sequence[str]], float, int | None], tuple[list[int | None], str]]
"""Starts commands, kills them after so many seconds, does not wait for the one with this number; exit codes and output."""


def check_processes(
    engine: str,
    size: int,
    *,
    fault: str | None = None,
    victim: int = -1,
    names: Sequence[str] | None = None,
    timeout: float = 10.0,
    limit: float = 60.0,
    launcher: Sequence[str] = (),
    start: Start | None = None,
) -> Report:
    """Run the checks, or one fault, with an engine in processes on this machine; none of them outlives the call.

    Args:
      engine: a key of `ENGINES`, or `package.module:function` of a new one.
      size: how many processes.
      fault: a key of `FAULTS`.
      victim: the rank that has it; by default the last one. Rank 0 may host what others need.
      names: keys of `CHECKS`; by default all.
      timeout: of the group.
      limit: seconds after which all processes are killed.
      launcher: a command that starts `size` processes, such as `["mpiexec", "-n", "2"]`; without it each is started
        with its rank and the address of rank 0.
      start: what starts the processes in the place of `subprocess`, where something is to be done for all of them once,
        such as to load the engine. The commands begin with the three words that make this file the program.
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "distinput.testing.collectives", "--worker", folder, "--engine", engine]
        command += ["--timeout", str(timeout), "--limit", str(limit)]
        command += ["--fault", fault, "--victim", str(victim % size)] if fault else []
        command += ["--checks", ",".join(names)] if names is not None else []
        if launcher:
            commands = [[*launcher, *command]]
        else:
            place = ["--size", str(size), "--address", free_address(), "--rank"]
            commands = [[*command, *place, str(rank)] for rank in range(size)]
        stuck = victim % size if fault and "freeze" in fault else None
        codes, output = (start or _run_all)(commands, limit, stuck)
        reports = [Path(folder, f"{rank}.json") for rank in range(size)]
        outcomes = tuple(Outcome(**json.loads(path.read_text("utf-8"))) for path in reports if path.exists())
    return Report(engine, size, outcomes, tuple(codes), output, time.monotonic() - begin)


def _run_all(commands: Sequence[Sequence[str]], limit: float, stuck: int | None) -> tuple[list[int | None], str]:
    environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
    deadline = time.monotonic() + limit
    with tempfile.TemporaryFile() as output:
        processes = [
            subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
            for command in commands
        ]
        try:
            # A frozen process does not end by itself and is not waited for; a launcher ends the whole job.
            for process in [p for i, p in enumerate(processes) if i != stuck or len(processes) == 1]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, deadline - time.monotonic()))
            codes = [process.poll() for process in processes]
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return codes, output.read().decode(errors="replace")


def mpiexec(size: int) -> list[str]:
    """The command that starts `size` processes with the MPI of this Python environment, or else that of the machine.

    Raises:
      FileNotFoundError: there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError("mpiexec: not found; use `pip install 'distinput[mpi]'`")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    extra = ["--allow-run-as-root", "--oversubscribe"] if "open" in version.lower() else []
    return [found, *extra, "-n", str(size)]


def free_address() -> str:
    """A `host:port` of this machine that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
