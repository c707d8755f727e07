# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline as SVG: light and dark, without scripts or fonts of its own, readable when it is printed."""

import textwrap
from collections.abc import Mapping
from itertools import count

from distinput.names.lazy import dataclass
from distinput.reports.graph import Graph, GraphStep
from distinput.reports.markup import MONOSPACE, SANS, Markup, colours, tag

# ----------------------------------------------------------------------------
# Where the boxes of a graph are drawn: inputs above, every step centred below what it reads from.
# ----------------------------------------------------------------------------


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
    layers = range(deepest, -1, -1)
    heights = [max(sizes[step.number][1] for step in graph.steps if step.layer == layer) for layer in layers]
    tops = [sum(heights[:row]) + _BELOW * row for row in range(deepest + 1)]
    column = max(width for width, _ in sizes.values()) + _BETWEEN
    middles: dict[int, float] = {}
    places_above = count(column / 2, column)
    for step in graph.steps:  # inputs first
        above = graph.inputs(step.number)
        middles[step.number] = (middles[above[0]] + middles[above[-1]]) / 2 if above else next(places_above)
    _apart(graph, middles, column)
    left = min(middles[number] - width / 2 for number, (width, _) in sizes.items())
    right = max(middles[number] + width / 2 for number, (width, _) in sizes.items())
    places = {}
    for step in graph.steps:
        width, height = sizes[step.number]
        places[step.number] = Rectangle(
            middles[step.number] - width / 2 - left, tops[deepest - step.layer], width, height
        )
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


_MOST = 46
"""Characters in a line of a box; longer texts are wrapped, and cut after a few lines. Pointing at a box shows them whole."""
_LETTER, _HEAD_LETTER, _LINE, _HEAD, _MARGIN = 7.0, 8.2, 16.0, 20.0, 12.0
"""Sizes in pixels: the width of a letter in lines (of 11.5) and in heads (of 14), both heights, and the margin of a box."""
_LINES = {"arguments": 3, "spec": 5}

GRAPH_STYLE = (
    f".di-graph text {{ font: 11.5px {MONOSPACE}; fill: var(--di-dim); white-space: pre; }}\n"
    f".di-graph .di-op {{ font: 600 14px {SANS}; fill: var(--di-ink); }}\n"
    f".di-graph .di-count {{ font: 12px {SANS}; fill: var(--di-dim); }}\n"
    f".di-graph .di-figure {{ font: 12px {SANS}; fill: var(--di-ink); }}\n"
    ".di-graph .di-box { fill: var(--di-box); stroke: var(--di-line); }\n"
    ".di-graph .di-slowest { stroke: var(--di-orange); stroke-width: 2; }\n"
    ".di-graph .di-edge { fill: none; stroke: var(--di-dim); stroke-width: 1.4; }\n"
    ".di-graph .di-head { fill: var(--di-dim); }\n"
    ".di-graph .di-bar { fill: var(--di-blue); }\n"
    ".di-graph .di-track { fill: var(--di-line); opacity: 0.5; }\n"
    ".di-graph .di-slowest-bar { fill: var(--di-orange); }\n"
)
"""The style sheet rules of graphs, which need those of `colours`."""


@dataclass(frozen=True)
class Figures:
    """What was measured of a step, to be written into its box.

    Attributes:
      lines: short texts.
      share: a part of the whole, from 0 to 1, drawn as a bar; None for no bar.
      slowest: True for the step that the others wait for.
    """

    lines: tuple[str, ...] = ()
    share: float | None = None
    slowest: bool = False


def svg_of(graph: Graph, figures: Mapping[str, Figures] | None = None, alone: bool = True) -> str:
    """A picture of a graph, data flowing down.

    Args:
      graph: what is drawn.
      figures: measurements by the keys of steps.
      alone: True: a file of its own, with its style. False: a part of a page that has `colours` and `GRAPH_STYLE`.

    Returns:
      SVG, well-formed XML.

    >>> import distinput as di
    >>> from distinput.reports import graph_of
    >>> picture = svg_of(graph_of(di.data.Dataset.range(10).batch(4)))
    >>> picture.startswith("<svg"), picture.count("<title>")
    (True, 3)
    """
    told = figures or {}
    texts = {step.number: _lines(step) for step in graph.steps}
    sizes = {step.number: _size(step, texts[step.number], told.get(step.key, Figures())) for step in graph.steps}
    placed = layout(graph, sizes)
    edges = [_edge(placed.places[source], placed.places[step]) for source, step in graph.edges]
    boxes = [
        _box(step, texts[step.number], placed.places[step.number], told.get(step.key, Figures()))
        for step in graph.steps
    ]
    width, height = placed.width + 4, placed.height + 4
    style = [tag("style", Markup("\n" + colours(".di-graph") + GRAPH_STYLE))] if alone else []
    return tag(
        "svg",
        tag("title", "Pipeline: " + " → ".join(step.op for step in graph.steps)),
        *style,
        *edges,
        *boxes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"-2 -2 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        class_="di-graph",
        role="img",
    )


def _lines(step: GraphStep) -> list[str]:
    """The lines below the head of a box."""
    arguments = ", ".join(f"{name}={value}" for name, value in step.arguments.items())
    return [*_wrapped(arguments, _LINES["arguments"]), *_wrapped(step.spec, _LINES["spec"])]


def _wrapped(text: str, most: int) -> list[str]:
    lines = textwrap.wrap(text, _MOST, subsequent_indent=" ", break_on_hyphens=False)
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1][: _MOST - 1] + "…"]


def _head(step: GraphStep) -> str:
    head = f"{step.op} “{step.label}”" if step.label else step.op
    return head if len(head) <= _MOST else head[: _MOST - 1] + "…"


def _size(step: GraphStep, lines: list[str], figures: Figures) -> tuple[float, float]:
    head = len(_head(step)) * _HEAD_LETTER + 24 + len(step.count) * _LETTER
    width = max(150.0, head, *[len(line) * _LETTER for line in (*lines, *figures.lines, "")]) + 2 * _MARGIN
    height = (
        2 * _MARGIN + _HEAD + (len(lines) + len(figures.lines)) * _LINE - 6 + (10 if figures.share is not None else 0)
    )
    return width, height


def _box(step: GraphStep, lines: list[str], place: Rectangle, figures: Figures) -> Markup:
    left, right, down = place.x + _MARGIN, place.x + place.width - _MARGIN, place.y + _MARGIN + 10
    slow = " di-slowest" if figures.slowest else ""
    whole = [f"{step.key} {_head(step)}  {step.count}"]
    whole += [f"{name} = {value}" for name, value in step.arguments.items()]
    whole += [step.spec, *figures.lines, f"made at {step.origin}"]
    parts = [
        tag("title", "\n".join(whole)),
        tag("rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=7, class_=f"di-box{slow}"),
        tag("text", _head(step), x=left, y=down, class_="di-op"),
        tag("text", step.count, x=right, y=down, class_="di-count", text_anchor="end"),
    ]
    down += _HEAD
    for line, kind in [*[(line, None) for line in lines], *[(line, "di-figure") for line in figures.lines]]:
        parts.append(tag("text", line, x=left, y=down, class_=kind))
        down += _LINE
    if figures.share is not None:
        width = right - left
        bar = "di-slowest-bar" if figures.slowest else "di-bar"
        parts.append(tag("rect", x=left, y=down - 6, width=width, height=5, rx=2.5, class_="di-track"))
        parts.append(tag("rect", x=left, y=down - 6, width=width * figures.share, height=5, rx=2.5, class_=bar))
    return tag("g", *parts)


def _edge(above: Rectangle, below: Rectangle) -> Markup:
    """A line from one box to the next, with a head."""
    x1, y1, x2, y2 = above.middle, above.bottom, below.middle, below.y
    half = (y2 - 6 - y1) / 2
    line = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + half:.1f} {x2:.1f} {y2 - 6 - half:.1f} {x2:.1f} {y2 - 6:.1f}"
    head = f"{x2:.1f},{y2:.1f} {x2 - 4.5:.1f},{y2 - 8:.1f} {x2 + 4.5:.1f},{y2 - 8:.1f}"
    return Markup.join((tag("path", d=line, class_="di-edge"), tag("polygon", points=head, class_="di-head")))
