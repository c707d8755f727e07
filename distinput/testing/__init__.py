# SPDX-License-Identifier: Apache-2.0
"""`distinput.testing`: the laws that every pipeline keeps, and suites of them for your own ops, formats, backends and engines.

A suite checks all laws of one kind, and its error names the law that is broken: `check_dataset` for an op or a source,
`check_format`, `check_devices` for a backend, `check_collectives` for an engine, `check_seats` for one of coordinators,
`check_strategy` for a strategy.
`judge` tries a loader of any library; `check_interrupted` stops one and goes on with other ranks.
`distinput.testing.strategies` draws random pipelines, specs, jobs and faults with Hypothesis (`pip install distinput[test]`);
the laws themselves need no other package.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from distinput.testing.judge.interrupted import check_interrupted
from distinput.testing.judge.judging import judge

__all__ = [
    "check_blocks",
    "check_collectives",
    "check_dataset",
    "check_devices",
    "check_distributed",
    "check_facts",
    "check_format",
    "check_interrupted",
    "check_nothing_left",
    "check_policy",
    "check_positions",
    "check_restart",
    "check_rewrites",
    "check_same_as",
    "check_seats",
    "check_shards",
    "check_spec",
    "check_strategy",
    "check_workers",
    "judge",
    "local_parameter_server_cluster",
    "small_blocks",
]

_LAZY = {
    "check_blocks": "laws",
    "check_collectives": "collectives.suite",
    "check_dataset": "dataset",
    "check_devices": "devices",
    "check_distributed": "laws",
    "check_facts": "laws",
    "check_format": "format",
    "check_nothing_left": "laws",
    "check_policy": "laws",
    "check_positions": "laws",
    "check_restart": "laws",
    "check_rewrites": "laws",
    "check_same_as": "laws",
    "check_seats": "seats",
    "check_shards": "laws",
    "check_spec": "laws",
    "check_strategy": "strategy",
    "check_workers": "laws",
    "local_parameter_server_cluster": "seats",
    "small_blocks": "block_sizes",
}
"""Names and the modules that have them, loaded when they are first named: whoever judges a loader needs none of them."""

if TYPE_CHECKING:
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
    from distinput.testing.seats import check_seats, local_parameter_server_cluster
    from distinput.testing.strategy import check_strategy


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """A suite, a law or a module, loaded when it is first named."""
        if name in _LAZY:
            return getattr(import_module(f"distinput.testing.{_LAZY[name]}"), name)
        if find_spec(f"distinput.testing.{name}"):
            return import_module(f"distinput.testing.{name}")
        raise AttributeError(f"module 'distinput.testing' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
