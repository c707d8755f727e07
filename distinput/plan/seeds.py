# SPDX-License-Identifier: Apache-2.0
"""What later passes depend on beside the place in this one, so that a state must hold it.

These are the seeds that were drawn because the user gave none, and which pass each cache keeps.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from distinput.plan.node import Node

__all__ = ["drawn_seeds", "stores", "with_drawn_seeds"]


def drawn_seeds(node: Node) -> list[int]:
    """The drawn seeds of a tree, inputs first; a node that stands in it twice counts once."""
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
    made: dict[int, Any] = {}

    def changed(step: Node) -> Node:
        if id(step) not in made:
            changes: dict[str, Any] = {}
            inputs = tuple([changed(source) for source in step.inputs])
            if step.draws:
                changes["drawn_seed"] = next(left)
            store = getattr(step, "store", None)
            if store is not None:
                changes["store"] = made.setdefault(id(store), type(store)())
            made[id(step)] = dataclasses.replace(step.with_inputs(inputs) if inputs else step, **changes)
        found: Node = made[id(step)]
        return found

    return changed(node)
