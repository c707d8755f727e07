# SPDX-License-Identifier: Apache-2.0
"""The laws of a pipeline: functions that raise `AssertionError` with what is broken.

They hold for every pipeline that distinput can describe; call them on your own to see that a new op, format or function
keeps them too.
"""

from distinput.testing.laws.elements import check_blocks as check_blocks
from distinput.testing.laws.elements import check_facts as check_facts
from distinput.testing.laws.elements import check_rewrites as check_rewrites
from distinput.testing.laws.elements import check_same_as as check_same_as
from distinput.testing.laws.elements import check_spec as check_spec
from distinput.testing.laws.restarts import check_nothing_left as check_nothing_left
from distinput.testing.laws.restarts import check_positions as check_positions
from distinput.testing.laws.restarts import check_processes as check_processes
from distinput.testing.laws.restarts import check_restart as check_restart
from distinput.testing.laws.shares import check_distributed as check_distributed
from distinput.testing.laws.shares import check_policy as check_policy
from distinput.testing.laws.shares import check_shards as check_shards
from distinput.testing.laws.shares import check_workers as check_workers
