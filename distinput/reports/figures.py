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
    wall = max([stats.outside, *[max(entry["seconds"], pace_of(entry)) for entry in stats.values()], 1e-12])
    figures = {}
    for key, entry in stats.items():
        lines = [f"{seconds_text(entry['busy'])} busy"]
        if entry.get("workers"):
            lines[0] += f", {seconds_text(entry['worked'])} in {entry['workers']} workers"
        if entry["waiting"] >= 0.01 * wall:
            lines.append(f"waits {seconds_text(entry['waiting'])}")
        size = f", {bytes_text(entry['bytes'])}" if "bytes" in entry else ""
        blocks = f" in {entry['blocks']:,} block{'s' if entry['blocks'] != 1 else ''}"
        lines.append(f"{entry['rows']:,} element{'s' if entry['rows'] != 1 else ''}{blocks}{size}")
        if "dropped" in entry:
            lines.append(f"{entry['dropped']:,} left out")
        figures[key] = Figures(tuple(lines), min(1.0, pace_of(entry) / wall), key == stats.slowest)
    return figures


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
