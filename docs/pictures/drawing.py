# SPDX-License-Identifier: Apache-2.0
"""Drawing pictures as SVG that can be read on light and on dark pages.

A picture has a ground of its own and two sets of colours; whoever shows it picks one by what the reader prefers. So shapes are
given classes, not colours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["KINDS", "Picture"]

# The class of a shape or a text: its colour on a light page, and on a dark one.
COLOURS = {
    "ground": ("#ffffff", "#1b1f27"),
    "edge": ("#c9ced6", "#444c5a"),
    "ink": ("#1f2430", "#e6e9ef"),
    "soft": ("#5d6675", "#a3adbd"),
    "mark": ("#c0392b", "#ff7b6b"),
    "blue": ("#2f6fb7", "#6aa9f0"),
    "orange": ("#c8741a", "#eba04f"),
    "green": ("#2e8b4f", "#62c283"),
    "violet": ("#8050b0", "#b58be0"),
    "teal": ("#1f8f95", "#5cc8cd"),
    "grey": ("#7a8494", "#939daf"),
}
KINDS = ("blue", "orange", "green", "violet", "teal", "grey")
"""The classes of things of several kinds, in the order in which they are used."""


def _rules(which: int) -> str:
    lines = [
        f".{name}{{fill:{colours[which]}}}.{name}-line{{stroke:{colours[which]}}}" for name, colours in COLOURS.items()
    ]
    return "".join(lines)


STYLE = (
    f"<style>{_rules(0)}@media (prefers-color-scheme: dark){{{_rules(1)}}}"
    ".small{font-size:12px}.strong{font-weight:600}.code{font-family:ui-monospace,monospace}</style>"
)


@dataclass
class Picture:
    """Shapes over a ground, drawn in the order of the calls.

    Args:
      title: what the picture shows, in a sentence, for those who do not see it.
      width, height: in pixels.
    """

    title: str
    width: float
    height: float
    drawn: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, dashed: bool = False) -> None:
        """A box with round corners, tinted with its colour; dashed and empty where there is nothing."""
        look = f'class="{kind} {kind}-line" fill-opacity="0.16"'
        if dashed:
            look = f'class="{kind}-line" fill="none" stroke-dasharray="4 3"'
        self.drawn.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" {look}/>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A filled bar."""
        self.drawn.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" class="{kind}"/>')

    def text(self, x: float, y: float, text: str, look: str = "ink", anchor: str = "start") -> None:
        """A line of text; `look` are classes: a colour, and `small`, `strong`, `code`."""
        self.drawn.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{look}">{escape(text)}</text>')

    def line(self, points: Sequence[tuple[float, float]], kind: str = "edge", *, dashed: bool = False) -> None:
        """Straight lines through points."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.drawn.append(f'<polyline points="{path}" fill="none" class="{kind}-line" stroke-width="1.5"{dash}/>')

    def arrow(self, points: Sequence[tuple[float, float]], kind: str = "soft") -> None:
        """Lines with a head at the last point, which is reached from above or from the left."""
        self.line(points, kind)
        (x, y), before = points[-1], points[-2]
        head = [(x - 4, y - 7), (x, y), (x + 4, y - 7)] if before[1] < y else [(x - 7, y - 4), (x, y), (x - 7, y + 4)]
        self.line(head, kind)

    def svg(self) -> str:
        """The text of the file."""
        fonts = 'font-family="system-ui, sans-serif" font-size="14"'
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} {fonts} role="img">',
                f"<title>{escape(self.title)}</title>",
                STYLE,
                f'<rect width="{self.width:g}" height="{self.height:g}" rx="8" class="ground"/>',
                *self.drawn,
                "</svg>\n",
            ]
        )
