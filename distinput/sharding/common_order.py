# SPDX-License-Identifier: Apache-2.0
"""The same order on all workers: no step depends on the machine that it runs on."""

from distinput.plan.node import Node

__all__ = ["with_common_order"]


def with_common_order(node: Node) -> Node:
    """The same tree, in which no step depends on its machine, as an `interleave` without a `cycle_length` does on the cores.

    Workers with more cores than others would put the elements in another order, and what policy DATA gives to each would be
    neither disjoint nor complete. The pipeline is the same to a state, which says how many datasets were open.
    """
    inputs = tuple([with_common_order(source) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs).same_as(node)
    return node.alike_everywhere()
