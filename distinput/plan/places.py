# SPDX-License-Identifier: Apache-2.0
"""Places of random steps: a step that stands in a tree more than once has another order at each of its places.

As in TensorFlow, where each iterator over a shuffled dataset draws anew: `zip((ds, ds))` pairs each element with another one,
and `ds.concatenate(ds)` is two epochs. The order is a function of the seed, the pass and the place. A cache keeps one order.

A step is known by its mark, which its copies have.
"""

from collections import Counter
from collections.abc import Collection

from distinput.core.random import key_of
from distinput.plan.node import Node, walk
from distinput.plan.seeded import Seeded

__all__ = ["differing", "placed"]


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
