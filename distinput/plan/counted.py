# SPDX-License-Identifier: Apache-2.0
"""How many elements there are at least and at most, where nobody knows how many exactly.

A step that may drop elements says so (`Node.thins`). For the others the number of elements never falls when there are more in
an input, so the bounds of the inputs give theirs.
"""

from distinput.plan.node import INFINITE, UNKNOWN, Node, over_counts

__all__ = ["cardinality_bounds"]


def cardinality_bounds(node: Node) -> tuple[int, int | None]:
    """The fewest and the most elements of a pass without errors; None: there is no upper bound, or none is known.

    An endless pipeline has no upper bound, and its lower one says nothing.

    >>> import distinput as di
    >>> cardinality_bounds(di.data.Dataset.range(10).filter(lambda x: x > 3).batch(4).node)
    (0, 3)
    """
    low, high = _bounds(node)
    return max(low, 0), None if high == INFINITE else high


def _bounds(node: Node) -> tuple[int, int]:
    """Both as numbers or `INFINITE`."""
    known = node.count_elements()
    if known != UNKNOWN:
        return known, known
    if not node.inputs:
        return 0, INFINITE
    below = [_bounds(source) for source in node.inputs]
    if node.thins:
        return 0, below[0][1]
    low = over_counts(node, [first for first, _ in below]).cardinality
    high = over_counts(node, [last for _, last in below]).cardinality
    return 0 if low == UNKNOWN else low, INFINITE if high == UNKNOWN else high
