# SPDX-License-Identifier: Apache-2.0
"""The axis of seconds below plots over time."""

from math import ceil, floor, log10

from distinput.core.quantities import seconds_text
from distinput.reports.markup import Markup, tag

__all__ = ["WIDTH", "round_step", "time_axis"]

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
