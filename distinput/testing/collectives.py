# SPDX-License-Identifier: Apache-2.0
"""The conformance suite of `Collectives`: the same checks and the same faults on every engine, in real processes.

A new engine is tested by `check_processes("package.module:open_group", size=2)`, in which `open_group` is what
`distinput.distribute.engines.ENGINES` names for the engines here; or from a shell by
`python -m distinput.testing.collectives --engine torch --size 2`.
"""

import argparse
import contextlib
import faulthandler
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from distinput.distribute.engines import ENGINES, Collectives, open_collectives
from distinput.testing.collective_checks import CHECKS, SLOW_CHECKS, run_checks
from distinput.testing.collective_faults import FAULTS, IN_THREADS, run_fault
from distinput.testing.collective_outcome import Outcome, Report

__all__ = [
    "CHECKS",
    "FAULTS",
    "IN_THREADS",
    "SLOW_CHECKS",
    "Outcome",
    "Report",
    "Start",
    "check_processes",
    "check_threads",
    "fault_threads",
    "main",
    "mpiexec",
    "run_checks",
]


Start = Callable[[Sequence[Sequence[str]], float, int | None], tuple[list[int | None], str]]
"""Starts commands, kills them after so many seconds, does not wait for the one with this number; exit codes and output."""


def check_threads(groups: Sequence[Collectives], names: Sequence[str] | None = None) -> Report:
    """All checks on groups that live in threads of this process."""
    begin = time.monotonic()
    with ThreadPoolExecutor(len(groups)) as pool:
        outcomes = tuple(pool.map(lambda group: run_checks(group, names), groups))
    return Report("local", len(groups), outcomes, seconds=time.monotonic() - begin)


def fault_threads(groups: Sequence[Collectives], name: str) -> Report:
    """One fault, of `IN_THREADS`, on groups that live in threads of this process."""
    begin = time.monotonic()
    with ThreadPoolExecutor(len(groups)) as pool:
        outcomes = tuple(pool.map(lambda group: run_fault(group, name, len(groups) - 1), groups))
    return Report("local", len(groups), outcomes[:-1], seconds=time.monotonic() - begin)


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
    """The checks, or one fault, with an engine in processes of this machine; none of them outlives the call.

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
            place = ["--size", str(size), "--address", f"127.0.0.1:{_free_port()}", "--rank"]
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _open(arguments: argparse.Namespace) -> Collectives:
    place = {"rank": arguments.rank, "size": arguments.size, "address": arguments.address}
    if arguments.engine in ENGINES:
        return open_collectives(arguments.engine, **place, timeout=arguments.timeout)
    module, function = arguments.engine.split(":")
    group: Collectives = getattr(import_module(module), function)(
        arguments.rank, arguments.size, arguments.address, timeout=arguments.timeout, name="distinput"
    )
    return group


def _work(arguments: argparse.Namespace) -> int:
    """One worker: run what was asked, and leave the outcome as a file."""
    faulthandler.dump_traceback_later(arguments.limit, exit=True)  # also where the launcher cannot kill it
    opening = time.monotonic()
    while True:
        try:
            group = _open(arguments)
            break
        except TimeoutError:  # a busy machine may start the processes far apart
            if time.monotonic() - opening > arguments.limit / 2:
                raise
    outcome = (
        run_fault(group, arguments.fault, arguments.victim)
        if arguments.fault
        else run_checks(group, arguments.checks.split(",") if arguments.checks else None)
    )
    report = Path(arguments.worker, f"{group.rank}.json")
    report.with_suffix(".part").write_text(json.dumps(asdict(outcome)), "utf-8")
    os.replace(report.with_suffix(".part"), report)  # a launcher may end a worker at any moment
    group.close()
    return 1 if outcome.failed else 0


def main(words: Sequence[str] | None = None) -> int:
    """The command line; the exit status.

    Args:
      words: its arguments; those of the program when None.
    """
    parser = argparse.ArgumentParser(description="The conformance suite of distinput's collectives.")
    parser.add_argument("--engine", required=True, help=f"{', '.join(ENGINES)}, or module:function")
    parser.add_argument("--size", type=int, help="how many workers")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="one fault instead of the checks")
    parser.add_argument("--victim", type=int, default=-1, help="the rank that has the fault, by default the last")
    parser.add_argument("--checks", help="some checks only, with commas between them")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds that a call waits")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which everything is killed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.worker:
        return _work(arguments)
    size = arguments.size or 2
    launcher = mpiexec(size) if arguments.engine == "mpi" else ()
    names = arguments.checks.split(",") if arguments.checks else None
    report = check_processes(
        arguments.engine,
        size,
        fault=arguments.fault,
        victim=arguments.victim,
        names=names,
        timeout=arguments.timeout,
        limit=arguments.limit,
        launcher=launcher,
    )
    for outcome in report.outcomes:
        print(
            f"rank {outcome.rank}: {len(outcome.passed)} held, {len(outcome.failed)} did not, {outcome.seconds:.2f} s"
        )
        if outcome.error:
            print(f"  {outcome.error}: {outcome.message}")
    for problem in report.problems:
        print(problem)
    print(f"{report.engine}, {report.size} workers, {report.seconds:.1f} s, exit codes {list(report.codes)}")
    if report.problems or not report.outcomes:
        print(report.output)
    return 1 if report.problems or not report.outcomes else 0


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


if __name__ == "__main__":
    sys.exit(main())
