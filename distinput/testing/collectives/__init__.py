# SPDX-License-Identifier: Apache-2.0
"""The conformance suite of `Collectives`: the same checks and the same faults on every engine, in real processes.

A new engine is tested by `check_collectives("package.module:open_group", size=2)`, where `open_group` is a function like those
in `distinput.distribute.engines.ENGINES`; or from a shell by
`python -m distinput.testing.collectives --engine package.module:open_group --size 2`.
"""

from distinput.testing.collectives.checks import CHECKS, SLOW_CHECKS, Outcome, Report, run_checks
from distinput.testing.collectives.suite import (
    FAULTS,
    IN_THREADS,
    Start,
    check_collectives,
    check_processes,
    check_threads,
    fault_threads,
    main,
    mpiexec,
)

__all__ = [
    "CHECKS",
    "FAULTS",
    "IN_THREADS",
    "SLOW_CHECKS",
    "Outcome",
    "Report",
    "Start",
    "check_collectives",
    "check_processes",
    "check_threads",
    "fault_threads",
    "main",
    "mpiexec",
    "run_checks",
]
