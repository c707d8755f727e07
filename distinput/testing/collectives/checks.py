# SPDX-License-Identifier: Apache-2.0
"""What holds for `Collectives` on every engine: the table of all checks, and a function that runs them."""

import time
from collections.abc import Iterable, Sequence

from distinput.distribute.engines import Collectives, CollectiveTimeout, PeerLost, Poisoned
from distinput.testing.collectives.agreement import AGREEMENTS, SLOW_AGREEMENTS
from distinput.testing.collectives.groups import GROUPS
from distinput.testing.collectives.outcome import Outcome
from distinput.testing.collectives.parts import Check
from distinput.testing.collectives.reductions import REDUCTIONS
from distinput.testing.collectives.refusals import REFUSALS
from distinput.testing.collectives.transfers import TRANSFERS

__all__ = ["CHECKS", "SLOW_CHECKS", "run_checks"]


def _by_name(checks: Iterable[Check]) -> dict[str, Check]:
    return {check.__name__.removeprefix("_"): check for check in checks}


CHECKS: dict[str, Check] = _by_name([*TRANSFERS, *REDUCTIONS, *REFUSALS, *AGREEMENTS, *GROUPS])
"""The checks that hold on every engine, by name: functions that every worker calls with its group."""

SLOW_CHECKS: dict[str, Check] = _by_name(SLOW_AGREEMENTS)
"""Further checks, which take longer than the timeout of the group: open it with a short one."""


def run_checks(group: Collectives, names: Sequence[str] | None = None) -> Outcome:
    """All checks, or some, on a group; every worker calls this.

    Args:
      group: fresh or used, but not failed.
      names: keys of `CHECKS` and `SLOW_CHECKS`; by default all of the former.
    """
    outcome = Outcome(group.rank)
    begin = time.monotonic()
    for name in CHECKS if names is None else names:
        try:
            (CHECKS | SLOW_CHECKS)[name](group)
        except Exception as error:  # noqa: BLE001 - it is what the outcome is made of
            outcome.failed[name] = f"{type(error).__name__}: {error}"
            if isinstance(error, Poisoned | CollectiveTimeout | PeerLost):
                break
        else:
            outcome.passed.append(name)
    outcome.seconds = time.monotonic() - begin
    return outcome
