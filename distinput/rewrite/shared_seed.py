# SPDX-License-Identifier: Apache-2.0
"""One seed for all workers, from which every shuffle and draw that was given none takes its own."""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distinput.core.random import key_of
from distinput.ops.interleave import FlatMap, Interleave, node_of
from distinput.plan.node import Node
from distinput.plan.seeds import drawn_seeds, with_drawn_seeds

__all__ = ["with_shared_seed"]


def with_shared_seed(node: Node, seed: int) -> Node:
    """The same tree, in which every op that draws its own seed takes one that follows from `seed` and its place.

    Workers that build the same pipeline and share this one number shuffle and draw alike, so that what policy DATA gives them
    is disjoint and complete. A data set that a function makes for an element takes its seeds from the function's place.

    Args:
      node: a pipeline.
      seed: any whole number, the same on all workers.
    """
    seeds = [key_of(seed, place) >> 1 for place in range(len(drawn_seeds(node)))]
    return _with_functions(with_drawn_seeds(node, seeds) if seeds else node, seed, [len(seeds)], {})


def _with_functions(node: Node, seed: int, place: list[int], made: dict[int, Node]) -> Node:
    if id(node) not in made:
        new = node
        inputs = tuple([_with_functions(source, seed, place, made) for source in node.inputs])
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            new = node.with_inputs(inputs)
        if isinstance(new, FlatMap | Interleave):
            place[0] += 1
            function = _Seeded(new.map_func, key_of(seed, place[0]))
            functools.update_wrapper(function, new.map_func)
            new = dataclasses.replace(new, map_func=function)
        made[id(node)] = new
    return made[id(node)]


@dataclass(eq=False)
class _Seeded:
    """A function that makes data sets, whose seeds follow from one number."""

    make: Callable[..., Any]
    seed: int

    def __call__(self, *element: Any) -> Any:
        result = self.make(*element)
        node = getattr(result, "node", result)
        return with_shared_seed(node_of("flat_map", result), self.seed) if isinstance(node, Node) else result
