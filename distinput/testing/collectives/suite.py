# SPDX-License-Identifier: Apache-2.0
"""The suite of collectives: groups of threads and of processes, faults, and the command."""

import argparse
import contextlib
import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from distinput.distribute.engines import (
    ENGINES,
    Aborted,
    CollectiveError,
    Collectives,
    CollectiveTimeout,
    Mismatch,
    OpenGroup,
    PeerLost,
    Poisoned,
    open_collectives,
)
from distinput.names.lazy import dataclass
from distinput.testing.collectives.checks import CHECKS, SOON, Outcome, Report, raises, run_checks
from distinput.testing.ports import free_ports, mpiexec

# ----------------------------------------------------------------------------
# Faults that a worker may have, and the error that the other workers must get, on every engine.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A way in which one worker fails the others.

    Args:
      act: what the worker does with its group.
      expected: the error that the others get.
      waits: whether they get it only when their timeout is over.
      wait: the call that the others make, by default an all_reduce.
    """

    act: Callable[[Collectives], None]
    expected: type[CollectiveError]
    waits: bool = False
    wait: Callable[[Collectives], object] = lambda group: group.all_reduce(1.0)


def _kill(_: Collectives) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _freeze(_: Collectives) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(group: Collectives) -> None:
    with group:
        raise OSError("record 7 of part-3 is damaged")


def _come_too_late(group: Collectives) -> None:
    time.sleep(1.5 * group.timeout)
    # What the others sent for the first call may still arrive; they take part in no further one.
    error = raises(CollectiveError, lambda: (group.all_reduce(1.0), group.all_reduce(1.0)))
    assert isinstance(error, Aborted | PeerLost), f"got {type(error).__name__}: {error}"


def _stay_away(group: Collectives) -> None:
    time.sleep(2 * group.timeout)


def _transfer(group: Collectives) -> None:
    mine = np.zeros(1 << 23)  # 64 MB
    while True:
        group.all_reduce(mine)


def _kill_in_transfer(group: Collectives) -> None:
    threading.Timer(0.2, _kill, [group]).start()
    _transfer(group)


def _agree_forever(group: Collectives) -> None:
    ahead = [group.agree([1]) for _ in range(4)]
    while True:
        ahead.append(group.agree([1]))
        ahead.pop(0).result()


def _cross(group: Collectives) -> None:
    raises(Mismatch, lambda: group.agree([1]).result())  # the others are in a call, and wait for this one


FAULTS: dict[str, Fault] = {
    "close": Fault(lambda group: group.close(), PeerLost),
    "come_too_late": Fault(_come_too_late, CollectiveTimeout, waits=True),
    "cross": Fault(_cross, Mismatch),
    "exit": Fault(lambda _: sys.exit(0), PeerLost),
    "freeze": Fault(_freeze, CollectiveTimeout, waits=True),
    "freeze_in_agreement": Fault(_freeze, CollectiveTimeout, waits=True, wait=_agree_forever),
    "kill": Fault(_kill, PeerLost),
    "kill_in_agreement": Fault(_kill, PeerLost, wait=_agree_forever),
    "kill_in_transfer": Fault(_kill_in_transfer, PeerLost, wait=_transfer),
    "raise": Fault(_raise, Aborted),
    "raise_in_agreement": Fault(_raise, Aborted, wait=_agree_forever),
    "stay_away": Fault(_stay_away, CollectiveTimeout, waits=True),
}
"""The faults by name."""

IN_THREADS = ("close", "come_too_late", "raise", "raise_in_agreement", "stay_away")
"""The faults that a thread can have without ending its process."""


def run_fault(group: Collectives, name: str, victim: int) -> Outcome:
    """Let one worker have a fault; the others report the error they got, and check that the group refuses further calls."""
    fault, outcome = FAULTS[name], Outcome(group.rank)
    # To meet is not the fault: it may take longer than the timeout of those who will wait in vain.
    at = float(group.broadcast(time.monotonic() + 0.3, victim, timeout=group.timeout + SOON))
    if group.rank == victim:
        time.sleep(max(0.0, at - time.monotonic()))
        with contextlib.suppress(OSError):
            fault.act(group)
        return outcome
    try:
        fault.wait(group)
    except CollectiveError as error:
        outcome.seconds = time.monotonic() - at
        outcome.error, outcome.message = type(error).__name__, str(error)
        ranks = error.ranks if isinstance(error, CollectiveTimeout) else [getattr(error, "rank", None)]
        outcome.culprit = [rank for rank in ranks if rank is not None]
        problems = list(_problems(group, fault, victim, error, outcome))
        if problems:
            outcome.failed[name] = "; ".join(problems)
    else:
        outcome.failed[name] = "no error came"
    outcome.passed = [] if outcome.failed else [name]
    return outcome


def _problems(group: Collectives, fault: Fault, victim: int, error: CollectiveError, outcome: Outcome) -> Iterator[str]:
    if type(error) is not fault.expected:
        yield f"expected {fault.expected.__name__}, got {type(error).__name__}: {error}"
    if outcome.culprit not in ([], [victim]):
        yield f"the error must name rank {victim}, got {outcome.culprit}: {error}"
    limit = group.timeout + SOON if fault.waits else SOON
    if outcome.seconds > limit:
        yield f"the error came after {outcome.seconds:.2f} s, allowed are {limit:g} s"
    begin = time.monotonic()
    try:
        group.barrier()
    except Poisoned:
        if time.monotonic() - begin > SOON:
            yield f"Poisoned came after {time.monotonic() - begin:.2f} s"
    else:
        yield "the group can still be used"


# ----------------------------------------------------------------------------
# The checks and faults on groups that live in threads of this process.
# ----------------------------------------------------------------------------


def check_threads(groups: Sequence[Collectives], names: Sequence[str] | None = None) -> Report:
    """All checks on groups that live in threads of this process."""
    return _in_threads(groups, lambda group: run_checks(group, names))


def fault_threads(groups: Sequence[Collectives], name: str) -> Report:
    """One fault, of `IN_THREADS`, on groups that live in threads of this process."""
    report = _in_threads(groups, lambda group: run_fault(group, name, len(groups) - 1))
    return replace(report, outcomes=report.outcomes[:-1])


def _in_threads(groups: Sequence[Collectives], run: Callable[[Collectives], Outcome]) -> Report:
    begin = time.monotonic()
    with ThreadPoolExecutor(len(groups)) as pool:
        outcomes = tuple(pool.map(run, groups))
    return Report("local", len(groups), outcomes, seconds=time.monotonic() - begin)


# ----------------------------------------------------------------------------
# The checks and faults in real processes of this machine.
# ----------------------------------------------------------------------------


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


def free_address() -> str:
    """A `host:port` of this machine that is not in use."""
    return f"127.0.0.1:{free_ports(1)[0]}"


# ----------------------------------------------------------------------------
# `check_collectives`: all checks and some faults of an engine, in threads or in processes, with an error for what fails.
# ----------------------------------------------------------------------------


_FAULTS = ("close", "raise", "stay_away")


def check_collectives(
    engine: str | OpenGroup,
    *,
    size: int = 2,
    faults: Sequence[str] = _FAULTS,
    timeout: float = 10.0,
    patience: float = 1.0,
    launcher: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """All checks of the collectives of an engine, and what the others must get when a worker fails.

    Args:
      engine: the name of an engine, or `package.module:open_group` of a new one, for checks in processes of this machine; or an
        `OpenGroup` itself, which is called in `size` threads of this process.
      size: how many workers.
      faults: keys of `distinput.testing.collectives.FAULTS`; a thread can have those of `IN_THREADS` only.
      timeout: seconds that a call waits for the others.
      patience: the same, for the faults, most of which are over only then.
      launcher: the command that starts the processes, such as `["mpiexec", "-n", "2"]`; None: that of MPI for the engine
        "mpi", none for others.

    Returns:
      The names of the checks and faults that held.

    Raises:
      AssertionError: something does not hold; the message has the names of the checks, and which workers saw it.
      ValueError: an unknown fault, or one that threads cannot have.

    >>> from distinput.distribute.engines.local import open_group
    >>> held = check_collectives(open_group, size=1, faults=[])
    >>> "all_reduce_every_dtype" in held, len(held)
    (True, 28)
    """
    known = FAULTS if isinstance(engine, str) else IN_THREADS
    for fault in faults:
        if fault not in known:
            raise ValueError(f"check_collectives: {fault!r} is none of the faults {', '.join(sorted(known))}")
    if isinstance(engine, str):
        started = tuple(mpiexec(size)) if launcher is None and engine == "mpi" else tuple(launcher or ())

        def check() -> Report:
            return check_processes(engine, size, timeout=timeout, launcher=started, limit=120.0)

        def fail(fault: str) -> Report:
            return check_processes(engine, size, fault=fault, timeout=patience, launcher=started)
    else:

        def check() -> Report:
            with _opened(engine, size, timeout) as groups:
                return check_threads(groups)

        def fail(fault: str) -> Report:
            with _opened(engine, size, patience) as groups:
                return fault_threads(groups, fault)

    _hold(check(), list(CHECKS), size)
    for fault in faults:
        _hold(fail(fault), [fault], size - 1)  # the last worker has it
    return (*CHECKS, *faults)


def _hold(report: Report, names: Sequence[str], workers: int) -> None:
    """Each of the first so many workers said that all of these held."""
    problems = list(report.problems)
    outcomes = [outcome for outcome in report.outcomes if outcome.rank < workers]
    for outcome in outcomes:
        if not outcome.failed and outcome.passed != list(names):
            missing = [name for name in names if name not in outcome.passed]
            problems.append(f"rank {outcome.rank} did not come to {', '.join(missing)}")
    if len(outcomes) < workers:
        problems.append(
            f"{workers - len(outcomes)} of {workers} workers did not report; exit codes {list(report.codes)}"
        )
    if problems:
        raise AssertionError("\n".join(["collectives: " + problems[0], *problems[1:], report.output]).rstrip())


@contextmanager
def _opened(open_group: OpenGroup, size: int, timeout: float) -> Iterator[list[Collectives]]:
    address = free_address()

    def enter(rank: int) -> Collectives:
        return open_group(rank, size, address if size > 1 else None, timeout=timeout, name="distinput")

    with ThreadPoolExecutor(size) as pool:
        groups = list(pool.map(enter, range(size)))
    try:
        yield groups
    finally:
        for group in groups:
            group.close()


# ----------------------------------------------------------------------------
# `python -m distinput.testing.collectives`: the suite from a shell, and the worker that it starts.
# ----------------------------------------------------------------------------


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
    if arguments.fault:
        outcome = run_fault(group, arguments.fault, arguments.victim)
    else:
        outcome = run_checks(group, arguments.checks.split(",") if arguments.checks else None)
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
