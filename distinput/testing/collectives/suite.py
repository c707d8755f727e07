# SPDX-License-Identifier: Apache-2.0
"""`check_collectives`: all checks and some faults of an engine, in threads or in processes, with an error for what fails."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from distinput.distribute.engines import Collectives, OpenGroup
from distinput.testing.collectives.checks import CHECKS
from distinput.testing.collectives.faults import FAULTS, IN_THREADS
from distinput.testing.collectives.outcome import Report
from distinput.testing.collectives.processes import check_processes, free_address, mpiexec
from distinput.testing.collectives.threads import check_threads, fault_threads

__all__ = ["check_collectives"]

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
