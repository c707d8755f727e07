# SPDX-License-Identifier: Apache-2.0
"""No thread, process or open file is left behind."""

import contextlib
from functools import partial
from typing import Any

from distinput.testing.judge.delivery import most_steps
from distinput.testing.judge.finding import Finding, broken, kept, refused
from distinput.testing.judge.trial import Trial
from distinput.testing.left_behind import check_uses

__all__ = ["nothing_left"]

_SECONDS = 5.0


def nothing_left(trial: Trial) -> Finding:
    """After a pass that came to its end, and after one that was abandoned, rank 0 of the first job has left nothing."""
    job = trial.jobs[0]
    delivery = trial.deliver(job)
    if delivery.refused:
        return refused(str(delivery.trouble))
    trial.at(f"rank 0 of {job}, looking for what it leaves behind")

    def use(count: int, loader: Any) -> None:
        with contextlib.suppress(Exception):  # which other laws look at
            for _ in zip(range(count), loader, strict=False):
                trial.beat()

    most = most_steps(job)
    uses = {"the end": partial(use, most), "an iterator abandoned after one step": partial(use, 1)}
    try:
        check_uses(uses, lambda: trial.make(job, 0), min(_SECONDS, trial.patience / 4))
    except AssertionError as error:
        return broken(str(error).removeprefix("nothing left behind: "))
    return kept("no thread, process or open file is left")
