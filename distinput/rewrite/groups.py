# SPDX-License-Identifier: Apache-2.0
"""Blocks that end where batches do, so that batches are views of them."""

import dataclasses

from distinput.ops.batch import Batch
from distinput.ops.copied import Copied
from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.identity import WithOptions
from distinput.ops.map import FusedMap, Map
from distinput.ops.map_rows import FusedMapRows, MapRows
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.parse_example import ParseExample
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.ops.shuffle import Shuffle
from distinput.plan.node import Node

_OF_EACH_ROW = (Copied, FusedMap, FusedMapRows, Map, MapRows, ParseExample, Prefetch, WithOptions)
"""What gives as many rows as it takes, and in the same blocks."""


def read_for_batches(node: Node) -> Node | None:
    """What reads or gathers rows is told how many its consumer puts together."""
    match node:
        case Batch() | PaddedBatch():
            source = _told(node.input, int(node.batch_size))
            return None if source is None else node.with_inputs((source,))
    return None


def _told(node: Node, size: int) -> Node | None:
    if isinstance(node, GlobalShuffle | Reader | Shuffle):
        return dataclasses.replace(node, group=size) if node.group == 1 and size > 1 else None
    if isinstance(node, _OF_EACH_ROW):
        source = _told(node.input, size)
        return None if source is None else node.with_inputs((source,))
    return None
