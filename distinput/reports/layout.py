# SPDX-License-Identifier: Apache-2.0
"""Where the boxes of a graph are drawn: inputs above, every step centred below what it reads from."""

from collections.abc import Mapping
from dataclasses import dataclass

from distinput.reports.graph import Graph

__all__ = ["Layout", "Rectangle", "layout"]

_BETWEEN, _BELOW = 28.0, 34.0
"""Room between two boxes side by side, and between two layers."""


@dataclass(frozen=True)
class Rectangle:
    """A rectangle; x and y are its top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x of its centre."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """The y of its lower edge."""
        return self.y + self.height


@dataclass(frozen=True)
class Layout:
    """The places of all steps by their numbers, and the size of the picture."""

    places: Mapping[int, Rectangle]
    width: float
    height: float


def layout(graph: Graph, sizes: Mapping[int, tuple[float, float]]) -> Layout:
    """Places for the boxes of a graph, none of which overlap.

    Every step without inputs has a column of its own; the others are centred below their inputs, within the columns of those.

    Args:
      graph: what is drawn.
      sizes: width and height of the box of each step.
    """
    deepest = max(step.layer for step in graph.steps)
    heights = [0.0] * (deepest + 1)
    for step in graph.steps:
        heights[deepest - step.layer] = max(heights[deepest - step.layer], sizes[step.number][1])
    tops = [sum(heights[:row]) + _BELOW * row for row in range(deepest + 1)]
    column = max(width for width, _ in sizes.values()) + _BETWEEN
    middles: dict[int, float] = {}
    columns = 0
    for step in graph.steps:  # inputs first
        above = graph.inputs(step.number)
        if above:
            middles[step.number] = (middles[above[0]] + middles[above[-1]]) / 2
        else:
            middles[step.number] = column * columns + column / 2
            columns += 1
    _apart(graph, middles, column)
    left = min(middles[number] - width / 2 for number, (width, _) in sizes.items())
    right = max(middles[number] + width / 2 for number, (width, _) in sizes.items())
    places = {
        step.number: Rectangle(
            middles[step.number] - sizes[step.number][0] / 2 - left, tops[deepest - step.layer], *sizes[step.number]
        )
        for step in graph.steps
    }
    return Layout(places, right - left, tops[-1] + heights[-1])


def _apart(graph: Graph, middles: dict[int, float], column: float) -> None:
    """Move boxes of a layer apart, which only those with an input in common need."""
    rows: dict[int, list[int]] = {}
    for step in graph.steps:
        rows.setdefault(step.layer, []).append(step.number)
    for numbers in rows.values():
        reached = float("-inf")
        for number in sorted(numbers, key=lambda each: middles[each]):
            middles[number] = max(middles[number], reached)
            reached = middles[number] + column
