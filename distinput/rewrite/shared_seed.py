# SPDX-License-Identifier: Apache-2.0
"""One seed for all workers, from which every shuffle and draw that was given none takes its own."""

from distinput.core.random import key_of
from distinput.plan.node import Node
from distinput.plan.seeds import drawn_seeds, with_drawn_seeds

__all__ = ["with_shared_seed"]


def with_shared_seed(node: Node, seed: int) -> Node:
    """The same tree, in which every op that draws its own seed takes one that follows from `seed` and its place.

    Workers that build the same pipeline and share this one number shuffle and draw alike, so that what policy DATA gives them
    is disjoint and complete. Data sets that the function of a
    `flat_map` makes take their seeds from that of its place.

    Args:
      node: a pipeline.
      seed: any whole number, the same on all workers.
    """
    seeds = [key_of(seed, place) >> 1 for place in range(len(drawn_seeds(node)))]
    return with_drawn_seeds(node, seeds) if seeds else node
