# SPDX-License-Identifier: Apache-2.0
"""One order on all workers: an interleave that would count the cores of its machine opens as many datasets everywhere."""

import dataclasses

from distinput.ops.interleave import Interleave
from distinput.plan.node import Node

__all__ = ["with_common_cycle"]

_CYCLE = 16


def with_common_cycle(node: Node) -> Node:
    """The same tree, in which no `interleave` without a `cycle_length` counts the cores.

    Workers with more cores than others would put the elements in another order, and what policy DATA gives to each would be
    neither disjoint nor complete. The pipeline is the same to a state, which says how many were open.
    """
    inputs = tuple([with_common_cycle(source) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    if isinstance(node, Interleave) and not node.is_fixed:
        return dataclasses.replace(node, common_cycle=max(_CYCLE, node.num_parallel_calls or 0))
    return node
