# SPDX-License-Identifier: Apache-2.0
"""`distinput.testing`: the laws that every pipeline keeps, and suites of them for your own ops, formats, backends and engines.

A suite checks all laws of one kind, and its error names the law that is broken: `check_dataset` for an op or a source,
`check_format`, `check_devices` for a backend, `check_collectives` for an engine, `check_seats` for one of coordinators,
`check_strategy` for a strategy.
`judge` tries a loader of any library; `check_interrupted` stops one and continues with other ranks.
`distinput.testing.strategies` draws random pipelines, specs, jobs and faults with Hypothesis (`pip install distinput[test]`);
the laws themselves need no other package.
"""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy
from distinput.testing.judge.judging import judge as judge  # at once: the package that it is in has its name

if TYPE_CHECKING:
    from distinput.testing.block_sizes import small_blocks as small_blocks
    from distinput.testing.collectives.suite import check_collectives as check_collectives
    from distinput.testing.dataset import check_dataset as check_dataset
    from distinput.testing.devices import check_devices as check_devices
    from distinput.testing.format import check_format as check_format
    from distinput.testing.judge.judging import check_interrupted as check_interrupted
    from distinput.testing.laws.elements import check_blocks as check_blocks
    from distinput.testing.laws.elements import check_facts as check_facts
    from distinput.testing.laws.elements import check_rewrites as check_rewrites
    from distinput.testing.laws.elements import check_same_as as check_same_as
    from distinput.testing.laws.elements import check_spec as check_spec
    from distinput.testing.laws.restarts import check_nothing_left as check_nothing_left
    from distinput.testing.laws.restarts import check_positions as check_positions
    from distinput.testing.laws.restarts import check_restart as check_restart
    from distinput.testing.laws.shares import check_distributed as check_distributed
    from distinput.testing.laws.shares import check_policy as check_policy
    from distinput.testing.laws.shares import check_shards as check_shards
    from distinput.testing.laws.shares import check_workers as check_workers
    from distinput.testing.seats import check_seats as check_seats
    from distinput.testing.seats import local_parameter_server_cluster as local_parameter_server_cluster
    from distinput.testing.strategy import check_strategy as check_strategy
else:
    __getattr__, __dir__, __all__ = lazy(__name__, own=("judge",))
