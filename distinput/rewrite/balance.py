# SPDX-License-Identifier: Apache-2.0
"""Long chains become flat trees, so that a block passes through few steps."""

from collections.abc import Sequence

from distinput.ops.concatenate import Concatenate
from distinput.plan.node import Node
from distinput.plan.origin import Origin

__all__ = ["balanced_concatenations"]

_LONGEST = 32
"""Shorter chains stay as they were described."""


def balanced_concatenations(node: Node) -> Node | None:
    """A long chain of concatenations, as a loop makes one, is a tree of the same datasets in the same order."""
    datasets: list[Node] = []
    first = node
    while isinstance(first, Concatenate) and first.name is None:
        datasets.append(first.dataset)
        first = first.input
    if len(datasets) <= _LONGEST:
        return None
    return _tree([first, *reversed(datasets)], node.origin)


def _tree(leaves: Sequence[Node], origin: Origin) -> Node:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return Concatenate(_tree(leaves[:middle], origin), _tree(leaves[middle:], origin), origin=origin)
