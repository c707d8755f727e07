# SPDX-License-Identifier: Apache-2.0
"""`distinput.testing`: the laws that every pipeline keeps, and suites of them for your own ops, formats, backends and engines.

A suite checks all laws of one kind, and its error names the law that is broken: `check_dataset` for an op or a source,
`check_format`, `check_devices` for a backend, `check_collectives` for an engine. `distinput.testing.pipelines` draws random
pipelines with Hypothesis (`pip install distinput[test]`); the laws themselves need no other package.
"""

from distinput.testing.block_sizes import small_blocks
from distinput.testing.collectives.suite import check_collectives
from distinput.testing.dataset import check_dataset
from distinput.testing.devices import check_devices
from distinput.testing.format import check_format
from distinput.testing.laws import (
    check_blocks,
    check_distributed,
    check_facts,
    check_nothing_left,
    check_policy,
    check_positions,
    check_restart,
    check_rewrites,
    check_same_as,
    check_shards,
    check_spec,
    check_workers,
)

__all__ = [
    "check_blocks",
    "check_collectives",
    "check_dataset",
    "check_devices",
    "check_distributed",
    "check_facts",
    "check_format",
    "check_nothing_left",
    "check_policy",
    "check_positions",
    "check_restart",
    "check_rewrites",
    "check_same_as",
    "check_shards",
    "check_spec",
    "check_workers",
    "small_blocks",
]
