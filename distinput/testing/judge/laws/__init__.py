# SPDX-License-Identifier: Apache-2.0
"""The laws of loaders, one file each: functions from a trial to a finding."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from distinput.testing.judge.finding import Ruling
from distinput.testing.judge.laws.elastic import elastic_restart
from distinput.testing.judge.laws.epochs import epochs
from distinput.testing.judge.laws.equal_steps import equal_steps
from distinput.testing.judge.laws.exactly_once import exactly_once
from distinput.testing.judge.laws.killed import rank_killed
from distinput.testing.judge.laws.left_behind import nothing_left
from distinput.testing.judge.laws.partial_batches import partial_batches
from distinput.testing.judge.laws.restart import restart
from distinput.testing.judge.laws.restart_twice import restart_twice
from distinput.testing.judge.laws.same_order import same_order
from distinput.testing.judge.laws.seeds import seeds
from distinput.testing.judge.laws.worker_killed import worker_killed
from distinput.testing.judge.laws.workers import workers
from distinput.testing.judge.trial import Trial

__all__ = ["LAWS"]

LAWS: Mapping[str, Callable[[Trial], Ruling]] = MappingProxyType(
    {
        "exactly once": exactly_once,
        "equal steps": equal_steps,
        "partial batches": partial_batches,
        "same order": same_order,
        "seeds": seeds,
        "epochs": epochs,
        "workers": workers,
        "restart": restart,
        "restart twice": restart_twice,
        "elastic restart": elastic_restart,
        "rank killed": rank_killed,
        "worker killed": worker_killed,
        "nothing left": nothing_left,
    }
)
"""The laws by name, in the order in which they are judged."""
