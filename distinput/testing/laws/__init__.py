# SPDX-License-Identifier: Apache-2.0
"""The laws of a pipeline, one file each: functions that raise `AssertionError` with what is broken.

They hold for every pipeline that distinput can describe; call them on your own to see that a new op, format or function
keeps them too.
"""

from distinput.testing.laws.blocks import check_blocks
from distinput.testing.laws.distributed import check_distributed
from distinput.testing.laws.facts import check_facts
from distinput.testing.laws.nothing_left import check_nothing_left
from distinput.testing.laws.policies import check_policy
from distinput.testing.laws.positions import check_positions
from distinput.testing.laws.processes import check_processes
from distinput.testing.laws.restart import check_restart
from distinput.testing.laws.rewrites import check_rewrites
from distinput.testing.laws.same_as import check_same_as
from distinput.testing.laws.shards import check_shards, check_workers
from distinput.testing.laws.spec import check_spec

__all__ = [
    "check_blocks",
    "check_distributed",
    "check_facts",
    "check_nothing_left",
    "check_policy",
    "check_positions",
    "check_processes",
    "check_restart",
    "check_rewrites",
    "check_same_as",
    "check_shards",
    "check_spec",
    "check_workers",
]
