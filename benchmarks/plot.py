# SPDX-License-Identifier: Apache-2.0
"""Two plots as SVG: bars of ratios, and lines that should be level; both axes that matter are logarithmic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

__all__ = ["Bar", "bars", "lines"]

WIDTH, LINE, TOP, BOTTOM, SIDE = 920, 36, 34, 26, 60
BARS = 640  # pixels for a plot of bars: what a page has beside its lists, so that labels are shown in their size
GREY, INK, RED = "#c9ced6", "#1f2430", "#c0392b"
COLOURS = ("#2f6fb7", "#d98324", "#3c9d5d", "#8e5bb5", "#c0504d", "#4aa6a6", "#8a8d3b", "#d46a9f", "#5d6d7e", "#a0522d")
DARK = {"#ffffff": "#1b1f27", GREY: "#444c5a", INK: "#e6e9ef", RED: "#ff7b6b", "#5d6d7e": "#a3adbd"}
KINDS = {"limit": "#9aa3b0", "peer": COLOURS[0]}


@dataclass(frozen=True)
class Bar:
    """One ratio.

    Args:
      label: what it is of.
      kind: "limit" or "peer".
      ratio: their time / our time.
      low, high: over the rounds.
      reach: the ratio wanted.
    """

    label: str
    kind: str
    ratio: float
    low: float
    high: float
    reach: float | None = None


class _Scale:
    """A logarithmic axis from one power of ten to another, over pixels."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        self.least, self.most = floor(log10(min(values))), ceil(log10(max(values)))
        self.most += self.most == self.least
        self.first, self.last = first, last

    def at(self, value: float) -> float:
        """The pixel of a value."""
        part = (log10(value) - self.least) / (self.most - self.least)
        return round(self.first + part * (self.last - self.first), 1)

    @property
    def powers(self) -> list[float]:
        """Where lines are drawn."""
        return [10.0**power for power in range(self.least, self.most + 1)]


def bars(title: str, rows: Sequence[Bar]) -> str:
    """A bar for each ratio from 1 on, below its label: to the right where we are faster; a red mark where it is wanted."""
    values = [value for row in rows for value in (row.ratio, row.low, row.high, row.reach or 1.0)]
    scale = _Scale([*values, 1.0], SIDE / 2, BARS - SIDE / 2)
    bottom = TOP + LINE * len(rows)
    drawn = [_line(scale.at(x), TOP - 4, scale.at(x), bottom, INK if x == 1 else GREY) for x in scale.powers]
    drawn += [_text(scale.at(x), bottom + 16, f"{x:g}x", "middle") for x in scale.powers]
    for index, row in enumerate(rows):
        middle = TOP + LINE * (index + 0.75)
        first, last = sorted((scale.at(1.0), scale.at(row.ratio)))
        shape = f'x="{first}" y="{middle - 6}" width="{max(1.0, round(last - first, 1))}" height="12"'
        drawn.append(f'<rect {shape} fill="{KINDS[row.kind]}"/>')
        drawn.append(_line(scale.at(row.low), middle, scale.at(row.high), middle, INK))
        if row.reach is not None:
            drawn.append(_line(scale.at(row.reach), middle - 9, scale.at(row.reach), middle + 9, RED, 2.5))
        drawn.append(_text(12, middle - 11, row.label, "start"))
    return _picture(title, BARS, bottom + BOTTOM, drawn)


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], across: str, up: str) -> str:
    """A line for each series of (x, y); their names stand beside the last points."""
    height = 420
    bottom = height - 2 * BOTTOM
    points = [point for line in series.values() for point in line]
    wide = _Scale([x for x, _ in points], 70, WIDTH - 290)
    high = _Scale([y for _, y in points], bottom, TOP + 10)
    drawn = [_line(wide.at(x), TOP + 10, wide.at(x), bottom, GREY) for x in wide.powers]
    drawn += [_line(70, high.at(y), WIDTH - 290, high.at(y), GREY) for y in high.powers]
    drawn += [_text(wide.at(x), bottom + 16, f"{x:,.0f}", "middle") for x in wide.powers]
    drawn += [_text(62, high.at(y) + 4, f"{y:g}", "end") for y in high.powers]
    drawn += [_text((70 + WIDTH - 290) / 2, bottom + 36, across, "middle"), _text(70, TOP + 2, up, "start")]
    taken: list[float] = []
    for index, (name, line) in enumerate(sorted(series.items(), key=lambda item: -item[1][-1][1])):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{wide.at(x)},{high.at(y)}" for x, y in line)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{wide.at(x)}" cy="{high.at(y)}" r="3" fill="{colour}"/>' for x, y in line]
        place = max(high.at(line[-1][1]) + 4, taken[-1] + 15 if taken else 0.0)  # names must not cover each other
        taken.append(place)
        drawn.append(_text(WIDTH - 280, place, name, "start", colour))
    return _picture(title, WIDTH, height, drawn)


def _dark() -> str:
    """The rules for a dark page: each colour of the ground, of lines and of texts becomes another."""
    rules = "".join(f'[fill="{a}"]{{fill:{b}}}[stroke="{a}"]{{stroke:{b}}}' for a, b in DARK.items())
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


def _picture(title: str, width: float, height: float, drawn: Sequence[str]) -> str:
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" role="img">',
            f"<title>{escape(title)}</title>",
            _dark(),
            f'<rect width="{width:g}" height="{height:g}" rx="6" fill="#ffffff"/>',
            _text(12, 18, title, "start"),
            *drawn,
            "</svg>\n",
        ]
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:g}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = INK) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
