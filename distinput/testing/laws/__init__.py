# SPDX-License-Identifier: Apache-2.0
"""The laws of a pipeline: functions that raise `AssertionError` with what is broken.

They hold for every pipeline that distinput can describe; call them on your own to see that a new op, format or function
keeps them too.
"""

from distinput.testing.laws.elements import check_blocks, check_facts, check_rewrites, check_same_as, check_spec
from distinput.testing.laws.restarts import check_nothing_left, check_positions, check_processes, check_restart
from distinput.testing.laws.shares import check_distributed, check_policy, check_shards, check_workers

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
