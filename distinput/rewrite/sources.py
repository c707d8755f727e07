# SPDX-License-Identifier: Apache-2.0
"""Sources that are read by position."""

from dataclasses import replace

from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.source import Source
from distinput.plan.node import Node


def read_after_shuffle(node: Node) -> Node | None:
    """Positions are shuffled before their items are read, so that threads and processes read ahead in the new order."""
    match node:
        case GlobalShuffle(Source() as source):
            return source.with_inputs((replace(node, input=source.input),))
    return None
