# SPDX-License-Identifier: Apache-2.0
"""`python -m distinput.testing.collectives`: the suite from a shell, and the worker that it starts."""

import argparse
import faulthandler
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from distinput.distribute.engines import ENGINES, Collectives, open_collectives
from distinput.testing.collectives.checks import run_checks
from distinput.testing.collectives.faults import FAULTS, run_fault
from distinput.testing.collectives.processes import check_processes, mpiexec

__all__ = ["main"]


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
