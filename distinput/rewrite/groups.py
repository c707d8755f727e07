# SPDX-License-Identifier: Apache-2.0
"""Blocks that end where batches end, so that batches are views of them."""

from distinput.plan.batching import Batching
from distinput.plan.node import Node


def read_for_batches(node: Node) -> Node | None:
    """What reads or gathers rows is told how many of them make a batch."""
    match node:
        case Batching():
            source = node.input.for_groups(int(node.batch_size))
            return None if source is None else node.with_inputs((source,))
    return None
