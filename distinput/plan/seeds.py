# SPDX-License-Identifier: Apache-2.0
"""What later passes depend on besides the position in this one, so that a state must hold it.

This is the seeds that were drawn because the user gave none, and the pass that each cache keeps.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

from distinput.core.random import key_of
from distinput.plan.node import Node, walk

__all__ = ["drawn_seeds", "own_draw", "stores", "walk_made", "with_drawn_seeds", "with_seed"]


def drawn_seeds(node: Node) -> list[int]:
    """The drawn seeds of a tree, inputs first; a node that occurs twice counts once."""
    return [step.drawn_seed for step in node.lasting if step.draws]  # type: ignore[attr-defined]


def stores(node: Node) -> list[Any]:
    """What the nodes of a tree keep of a pass, each with the `epoch` of that pass, None while there was none."""
    found = {id(step.store): step.store for step in node.lasting if step.keeps}  # type: ignore[attr-defined]
    return list(found.values())


def with_drawn_seeds(node: Node, seeds: Sequence[int]) -> Node:
    """The same tree with other drawn seeds, as `drawn_seeds` gave them in another process.

    What nodes keep of their elements (`store`) begins empty: it belongs to the old seeds.
    """
    left = iter(seeds)
    nodes: dict[int, Any] = {}

    def changed(step: Node) -> Node:
        if id(step) not in nodes:
            changes: dict[str, Any] = {}
            inputs = tuple([changed(source) for source in step.inputs])
            if step.draws:
                changes["drawn_seed"] = next(left)
            store = getattr(step, "store", None)
            if store is not None:
                changes["store"] = nodes.setdefault(id(store), type(store)())
            moved = step.with_inputs(inputs) if inputs else step
            nodes[id(step)] = dataclasses.replace(moved, **changes).same_as(step)
        found: Node = nodes[id(step)]
        return found

    return changed(node)


def with_seed(node: Node, seed: int) -> Node:
    """The same tree, in which every op that draws its own seed takes one that follows from `seed` and its place.

    Workers that build the same pipeline and share this one number shuffle and draw alike, so that what policy DATA gives them
    is disjoint and complete. Datasets that the function of a `flat_map` makes take their seeds from that of its place.

    Args:
      node: a pipeline.
      seed: any whole number, the same on all workers.
    """
    seeds = [key_of(seed, place) >> 1 for place in range(len(drawn_seeds(node)))]
    return with_drawn_seeds(node, seeds) if seeds else node


def walk_made(node: Node) -> Iterator[Node]:
    """The steps of a tree, inputs first, including those of the datasets that its functions make."""
    for step in walk(node):
        for inner in step.made:
            yield from walk_made(inner)
        yield step


def own_draw(node: Node, num_shards: int) -> Node | None:
    """A step whose seed this process drew for itself, so that no other process has its elements in the same order.

    A tree that came from another process, such as one that a forked worker inherited, has the seeds of that process.

    Args:
      node: what is divided.
      num_shards: among how many workers.
    """
    from distinput.core.loader_worker import loader_worker

    worker = loader_worker()
    several = worker is not None and num_shards > worker.count  # of several processes, which drew apart
    for step in walk(node):
        if several or step.origin.process == os.getpid():
            for inner in (step, *[below for made in step.made for below in walk_made(made)]):
                if inner.draws and inner.chooses:
                    return inner
    return None
