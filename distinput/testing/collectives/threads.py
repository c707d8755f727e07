# SPDX-License-Identifier: Apache-2.0
"""The checks and faults on groups that live in threads of this process."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from distinput.distribute.engines import Collectives
from distinput.testing.collectives.checks import run_checks
from distinput.testing.collectives.faults import run_fault
from distinput.testing.collectives.outcome import Report

__all__ = ["check_threads", "fault_threads"]


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
