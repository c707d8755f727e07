# SPDX-License-Identifier: Apache-2.0
"""Small plots: a number over time, bars, a distribution beside the one that was hoped for, and times over counts."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log2, log10

from distinput.names.words import seconds_text
from distinput.reports.markup import Markup, tag

# ----------------------------------------------------------------------------
# The axis of seconds below plots over time.
# ----------------------------------------------------------------------------


WIDTH = 900
"""Of plots, in their own units; pages scale them."""


def time_axis(length: float, top: float) -> Markup:
    """Ticks at round times.

    Args:
      length: seconds that the width of the plot stands for.
      top: the y of the axis.
    """
    step = round_step(length / 8)
    marks = [tag("line", x1=0, x2=WIDTH, y1=top, y2=top, class_="di-axis")]
    for index in range(floor(length / step) + 1):
        x = index * step / length * WIDTH
        anchor = "start" if index == 0 else "end" if x > WIDTH - 20 else "middle"
        marks.append(tag("line", x1=x, x2=x, y1=top, y2=top + 4, class_="di-axis"))
        marks.append(tag("text", seconds_text(index * step), x=x, y=top + 16, text_anchor=anchor, class_="di-label"))
    return tag("g", *marks)


def round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least so large.

    >>> [round_step(x) for x in (0.3, 1.0, 2.1, 60)]
    [0.5, 1.0, 5.0, 100.0]
    """
    power = 10.0 ** floor(log10(least)) if least > 0 else 1.0
    return next((each * power for each in (1.0, 2.0, 5.0, 10.0) if each * power >= least), ceil(least))


_HEIGHT, _POINTS = 110, 450

PLOT_STYLE = (
    ".di-plot { width: 100%; height: auto; }\n"
    ".di-plot .di-label { font-size: 11px; fill: var(--di-dim); }\n"
    ".di-plot .di-axis { stroke: var(--di-line); }\n"
    ".di-plot .di-curve { fill: none; stroke: var(--di-blue); stroke-width: 1.6; }\n"
    ".di-plot .di-area { fill: var(--di-blue); opacity: 0.15; }\n"
    ".di-plot .di-hoped { fill: none; stroke: var(--di-orange); stroke-width: 1.8; stroke-dasharray: 5 4; }\n"
    ".di-plot .di-column { fill: var(--di-blue); opacity: 0.75; }\n"
)


def over_time(points: Sequence[tuple[float, float]], length: float, text: Callable[[float], str], title: str) -> Markup:
    """A number that holds until the next point.

    Args:
      points: seconds from the begin, and numbers of at least 0.
      length: seconds from the begin to the end.
      text: of a number, for the label of the largest one.
      title: what it is.
    """
    length = max(length, 1e-9)
    most = max((value for _, value in points), default=0.0) or 1.0
    path, before = [f"M0 {_HEIGHT}"], float(_HEIGHT)
    for at, value in _thinned(points, length):
        x, y = at / length * WIDTH, _HEIGHT - value / most * (_HEIGHT - 16)
        path.append(f"L{x:.1f} {before:.1f}L{x:.1f} {y:.1f}")
        before = y
    curve = "".join([*path, f"L{WIDTH} {before:.1f}"])
    return plot(
        title,
        _HEIGHT + 22,
        tag("path", d=f"{curve}L{WIDTH} {_HEIGHT}Z", class_="di-area"),
        tag("path", d=curve, class_="di-curve"),
        tag("text", f"{title}, at most {text(most if points else 0)}", x=0, y=11, class_="di-label"),
        time_axis(length, _HEIGHT),
    )


def _thinned(points: Sequence[tuple[float, float]], length: float) -> list[tuple[float, float]]:
    """For each of a few hundred moments the largest number."""
    kept: dict[int, tuple[float, float]] = {}
    for at, value in points:
        moment = int(at / length * _POINTS)
        if moment not in kept or kept[moment][1] < value:
            kept[moment] = (at, value)
    return sorted(kept.values())


def bars(rows: Sequence[tuple[str, float, str]], title: str) -> Markup:
    """Horizontal bars from 0.

    Args:
      rows: of each a name, a number and its text.
      title: what they are.
    """
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    left, right, high = 130, 150, 22
    drawn = []
    for index, (name, value, text) in enumerate(rows):
        y, width = index * high, value / most * (WIDTH - left - right)
        drawn.append(tag("text", name, x=left - 8, y=y + 14, text_anchor="end", class_="di-label"))
        drawn.append(tag("rect", x=left, y=y + 3, width=width, height=high - 8, rx=2, class_="di-column"))
        drawn.append(tag("text", text, x=left + width + 6, y=y + 14, class_="di-label"))
    return plot(title, len(rows) * high, *drawn)


def distribution(shares: Sequence[float], hoped: Sequence[float], ends: tuple[str, str], title: str) -> Markup:
    """Columns for the parts that lie in equal ranges, and a dashed line for those that were hoped for.

    Args:
      shares: of the whole, in each range.
      hoped: the same, as it should be.
      ends: texts below the first and the last range.
      title: what it is.
    """
    most = max([*shares, *hoped, 1e-9])
    wide = WIDTH / max(1, len(shares))

    def height(share: float) -> float:
        return share / most * (_HEIGHT - 16)

    drawn = [
        tag("rect", tag("title", f"{share:.1%}, hoped for {wanted:.1%}"), x=i * wide + 1, y=_HEIGHT - height(share),
            width=wide - 2, height=height(share), class_="di-column")
        for i, (share, wanted) in enumerate(zip(shares, hoped, strict=True))
    ]  # fmt: skip
    corners = "L".join(f"{(i + 0.5) * wide:.1f} {_HEIGHT - height(share):.1f}" for i, share in enumerate(hoped))
    return plot(
        title,
        _HEIGHT + 20,
        *drawn,
        tag("path", d=f"M{corners}" if hoped else "", class_="di-hoped"),
        tag("line", x1=0, x2=WIDTH, y1=_HEIGHT, y2=_HEIGHT, class_="di-axis"),
        tag("text", ends[0], x=0, y=_HEIGHT + 14, class_="di-label"),
        tag("text", ends[1], x=WIDTH, y=_HEIGHT + 14, text_anchor="end", class_="di-label"),
    )


def over_counts(points: Sequence[tuple[int, float, float, str]], ends: tuple[str, str], title: str) -> Markup:
    """Times over how many there are, both in powers of two, with a dashed line for the times that are hoped for.

    Args:
      points: of each a count of at least 1, its seconds, the seconds that are hoped for, and a word on it.
      ends: names of both lines.
      title: what the seconds are.
    """
    left, top, high = 20, 34, 220
    ordered = sorted(points)
    logs = [log2(max(seconds, 1e-9)) for _, solid, hoped, _ in ordered for seconds in (solid, hoped)] or [0.0]
    lowest, most = min(logs), max(logs)
    first, wide = (log2(ordered[0][0]), log2(ordered[-1][0] / ordered[0][0])) if ordered else (0.0, 0.0)

    def place(count: int, seconds: float) -> tuple[float, float]:
        across = (log2(count) - first) / wide if wide else 0.5
        up = (log2(max(seconds, 1e-9)) - lowest) / (most - lowest) if most > lowest else 0.5
        return left + across * (WIDTH - 2 * left - 60), top + (1 - up) * high

    marks = []
    solid = [place(count, seconds) for count, seconds, _, _ in ordered]
    hoped = [place(count, seconds) for count, _, seconds, _ in ordered]
    for x, name, words, line in ((left, "di-curve", ends[0], solid), (WIDTH / 2, "di-hoped", ends[1], hoped)):
        corners = "L".join(f"{across:.1f} {down:.1f}" for across, down in line)
        marks.append(tag("path", d=f"M{corners}" if corners else "", class_=name))
        marks.append(tag("path", d=f"M{x:.0f} 8L{x + 24:.0f} 8", class_=name))
        marks.append(tag("text", words, x=x + 30, y=12, class_="di-label"))
    for count, seconds, _, word in ordered:
        x, y = place(count, seconds)
        marks.append(tag("circle", tag("title", f"{count:,}: {seconds_text(seconds)}, {word}"), cx=x, cy=y, r=4,
                         class_="di-column"))  # fmt: skip
        marks.append(tag("text", f"{seconds_text(seconds)}, {word}", x=x + 7, y=y - 6, class_="di-label"))
        marks.append(tag("text", f"{count:,}", x=x, y=top + high + 28, text_anchor="middle", class_="di-label"))
    axis = tag("line", x1=0, x2=WIDTH, y1=top + high + 14, y2=top + high + 14, class_="di-axis")
    return plot(title, top + high + 34, *marks, axis)


def plot(title: str, height: float, *inside: Markup) -> Markup:
    """A picture as wide as all plots, with its title for those who do not see it."""
    return tag(
        "svg",
        tag("title", title),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        class_="di-plot",
        role="img",
    )
