# SPDX-License-Identifier: Apache-2.0
"""Seeds: what later passes depend on besides the position, and the places of random steps in a tree."""

import dataclasses
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from distinput.names.lazy import later
from distinput.plan.families import Seeded
from distinput.plan.node import Node, walk
from distinput.run.threads import loader_worker
from distinput.values.randomness import key_of

if TYPE_CHECKING:
    from distinput.run import threads as processors
else:
    processors = later("distinput.run.threads")  # what worker this is, is asked where datasets are divided

# ----------------------------------------------------------------------------
# What later passes depend on besides the position in this one, so that a state must hold it.
#
# This is the seeds that were drawn because the user gave none, and the pass that each cache keeps.
# ----------------------------------------------------------------------------


def drawn_seeds(node: Node) -> list[int]:
    """The drawn seeds of a tree, inputs first; a node that occurs twice counts once."""
    return [step.drawn_seed for step in node.lasting if step.draws]  # type: ignore[attr-defined]


def stores(node: Node) -> list[Any]:
    """What the nodes of a tree keep of a pass, each with the `epoch` of that pass, None while there was none."""
    found = {id(step.store): step.store for step in node.lasting if step.keeps}  # type: ignore[attr-defined]
    return list(found.values())


def decided(node: Node) -> list[Any]:
    """What users decide about while the nodes of a tree run, each with the `state` of its decisions; one of each."""
    found = {id(step.live): step.live for step in node.lasting if step.decides}  # type: ignore[attr-defined]
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
    worker = loader_worker()
    several = worker is not None and num_shards > worker.count  # of several processes, which drew apart
    for step in walk(node):
        if several or step.origin.process == os.getpid():
            for inner in (step, *[below for made in step.made for below in walk_made(made)]):
                if inner.draws and inner.chooses:
                    return inner
    return None


# ----------------------------------------------------------------------------
# Places of random steps: a step that stands in a tree more than once has another order at each of its places.
#
# As in TensorFlow, where each iterator over a shuffled dataset draws anew: `zip((ds, ds))` pairs each element with another
# one, and `ds.concatenate(ds)` is two epochs. The order is a function of the seed, the pass and the place. A cache keeps
# one order.
#
# A step is known by its mark, which its copies have.
# ----------------------------------------------------------------------------


def differing(node: Node) -> list[Seeded]:
    """The steps of a tree that have another order at each of their places, inputs first; each as often as it is there."""
    return [step for step in walk(node) if isinstance(step, Seeded) and step.differs_by_place]


def placed(node: Node, number: int = 0, shared: Collection[int] = ()) -> Node:
    """The same tree, in which each place of a step has a number; a part of a tree that has them is given back as it is.

    Args:
      node: a tree.
      number: of datasets that a function makes one after the other, which one this is.
      shared: the marks of steps that were made before the function was called, so that all these datasets have them.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(9).shuffle(9, seed=1)
    >>> [step.place for step in differing(placed(ds.concatenate(ds).node))]
    [0, 1]
    """
    steps = differing(node)
    if any(step.place for step in steps):
        return node
    found = Counter([step.mark for step in steps])
    if not any(count > 1 or (number and mark in shared) for mark, count in found.items()):
        return node
    return _Places(number, shared).of(node)


class _Places:
    def __init__(self, number: int, shared: Collection[int]) -> None:
        self._number, self._shared = number, shared
        self._before: Counter[int] = Counter()
        self._kept: dict[int, Node] = {}  # by what they keep of a pass

    def of(self, step: Node) -> Node:
        """The tree below a step, after those that were given before."""
        store = id(step.store) if step.keeps else None  # type: ignore[attr-defined]
        if store in self._kept:
            return self._kept[store]
        inputs = tuple([self.of(source) for source in step.inputs])
        made: Node = step
        if any(new is not old for new, old in zip(inputs, step.inputs, strict=True)):
            made = step.with_inputs(inputs).same_as(step)
        if isinstance(made, Seeded) and made.differs_by_place:
            made = self._numbered(made)
        if store is not None:
            self._kept[store] = made
        return made

    def _numbered(self, step: Seeded) -> Node:
        place = self._before[step.mark]
        self._before[step.mark] += 1
        if self._number and step.mark in self._shared:
            place = key_of(self._number, place)
        return step if place == step.place else step.at_place(place)
