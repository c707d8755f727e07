# SPDX-License-Identifier: Apache-2.0
"""Statistics of a pass as figures for the boxes of its graph, and as rows of a table."""

from typing import Any

from distinput.core.quantities import bytes_text, number_text, seconds_text
from distinput.data.stats import Stats
from distinput.reports.svg import Figures

__all__ = ["COLUMNS", "figures_of", "pace_of", "rows_of"]

COLUMNS = ("step", "blocks", "elements", "bytes", "busy", "in workers", "waiting", "a busy second", "chosen")


def pace_of(told: dict[str, Any]) -> float:
    """Seconds for which a step holds up the others: its work on its own thread, or that of each of its workers."""
    workers = told.get("workers", 0)
    return max(float(told["busy"]), float(told["worked"]) / workers if workers else 0.0)


def figures_of(stats: Stats) -> dict[str, Figures]:
    """What is written into each box: time, elements, bytes; the bar is the share of the time of the pass."""
    wall = max([stats.outside, *[max(told["seconds"], pace_of(told)) for told in stats.values()], 1e-12])
    made = {}
    for key, told in stats.items():
        lines = [f"{seconds_text(told['busy'])} busy"]
        if told.get("workers"):
            lines[0] += f", {seconds_text(told['worked'])} in {told['workers']} workers"
        if told["waiting"] >= 0.01 * wall:
            lines.append(f"waits {seconds_text(told['waiting'])}")
        size = f", {bytes_text(told['bytes'])}" if "bytes" in told else ""
        blocks = f" in {told['blocks']:,} block{'s' if told['blocks'] != 1 else ''}"
        lines.append(f"{told['rows']:,} element{'s' if told['rows'] != 1 else ''}{blocks}{size}")
        if "dropped" in told:
            lines.append(f"{told['dropped']:,} left out")
        made[key] = Figures(tuple(lines), min(1.0, pace_of(told) / wall), key == stats.slowest)
    return made


def rows_of(stats: Stats) -> list[tuple[str, ...]]:
    """The rows of a table with these `COLUMNS`."""
    return [
        (
            key,
            f"{told['blocks']:,}",
            f"{told['rows']:,}",
            bytes_text(told["bytes"]) if "bytes" in told else "",
            seconds_text(told["busy"]),
            f"{seconds_text(told['worked'])} ({told['workers']})" if told.get("workers") else "",
            seconds_text(told["waiting"]) if told["waiting"] else "",
            number_text(told["rows"] / pace_of(told)) if pace_of(told) > 0 else "",
            _chosen(told),
        )
        for key, told in stats.items()
    ]


def _chosen(told: dict[str, Any]) -> str:
    """What AUTOTUNE chose, and what was left out."""
    dropped = f"{told['dropped']:,} left out" if "dropped" in told else ""
    return ", ".join(filter(None, (str(told.get("chose", "")), dropped)))
