# SPDX-License-Identifier: Apache-2.0
"""The conformance suite of `Collectives`: the same checks and the same faults on every engine, in real processes.

A new engine is tested by `check_collectives("package.module:open_group", size=2)`, where `open_group` is a function like those
in `distinput.distribute.engines.ENGINES`; or from a shell by
`python -m distinput.testing.collectives --engine package.module:open_group --size 2`.
"""

from distinput.testing.collectives.checks import CHECKS as CHECKS
from distinput.testing.collectives.checks import SLOW_CHECKS as SLOW_CHECKS
from distinput.testing.collectives.checks import Outcome as Outcome
from distinput.testing.collectives.checks import Report as Report
from distinput.testing.collectives.checks import run_checks as run_checks
from distinput.testing.collectives.suite import FAULTS as FAULTS
from distinput.testing.collectives.suite import IN_THREADS as IN_THREADS
from distinput.testing.collectives.suite import Start as Start
from distinput.testing.collectives.suite import check_collectives as check_collectives
from distinput.testing.collectives.suite import check_processes as check_processes
from distinput.testing.collectives.suite import check_threads as check_threads
from distinput.testing.collectives.suite import fault_threads as fault_threads
from distinput.testing.collectives.suite import main as main
from distinput.testing.ports import mpiexec as mpiexec
