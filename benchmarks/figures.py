# SPDX-License-Identifier: Apache-2.0
"""Results in figures and words: medians, ratios, what was to be reached, and the table that is printed."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

__all__ = ["duration", "figures", "ours_of", "rate", "summary", "table", "times", "wanted"]


def ours_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Our own contender in a result."""
    (ours,) = [contender for contender in result["contenders"] if contender["kind"] == "ours"]
    found: Mapping[str, Any] = ours
    return found


def figures(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each of our own figures that is not to be exceeded."""
    ours = ours_of(result)
    known = {"seconds": median(ours["seconds"]) / next(iter(result["units"].values())), **ours["facts"]}
    return [
        {"name": name, "value": known[name], "most": most, "reached": known[name] <= most}
        for name, most in ours["most"].items()
    ]


def summary(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each limit and peer: medians, and the ratio their time / ours with its range over the rounds."""
    ours = ours_of(result)
    entries = []
    for other in result["contenders"]:
        if other is ours:
            continue
        ratios = [b / a for a, b in zip(ours["seconds"], other["seconds"], strict=True)]
        cpu = [b / a for a, b in zip(ours["cpu"], other["cpu"], strict=True) if a > 0]
        entries.append(
            {
                "name": other["name"],
                "kind": other["kind"],
                "ours_seconds": median(ours["seconds"]),
                "seconds": median(other["seconds"]),
                "ratio": median(ratios),
                "ratio_low": min(ratios),
                "ratio_high": max(ratios),
                "cpu_ratio": median(cpu) if cpu else None,
                "reach": other["reach"],
                "reach_cpu": other["reach_cpu"],
            }
        )
    return entries


def table(title: str, results: Iterable[Mapping[str, Any]]) -> str:
    """A line for each pair, ours | limit or peer | ratio; then rates and facts."""
    rows = [("case", "ours", "limit or peer", "", "ratio", "range", "cpu ratio", "to reach")]
    below = []
    for result in results:
        unit, count = next(iter(result["units"].items()))
        rows += [
            (
                result["case"],
                duration(entry["ours_seconds"] / count, unit),
                f"{entry['name']} ({entry['kind']})",
                duration(entry["seconds"] / count, unit),
                times(entry["ratio"]),
                f"{times(entry['ratio_low'])} .. {times(entry['ratio_high'])}",
                "" if entry["cpu_ratio"] is None else times(entry["cpu_ratio"]),
                wanted(entry),
            )
            for entry in summary(result)
        ]
        ours = ours_of(result)
        below += [
            f"  {result['case']}: {figure['name']} {figure['value']:,.6g}, to reach at most {figure['most']:,.6g}: "
            f"{'yes' if figure['reached'] else 'no'}"
            for figure in figures(result)
        ]
        rates = [rate(number / median(ours["seconds"]), name) for name, number in result["units"].items()]
        below.append(f"  {result['case']}: ours {', '.join(rates)}")
        below += [
            f"  {result['case']}: {contender['name']} {name} {value:,.6g}"
            for contender in result["contenders"]
            for name, value in contender["facts"].items()
        ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([title, *lines, *below])


def wanted(entry: Mapping[str, Any]) -> str:
    """The ratios of a summary's entry that we want to reach, and whether we do."""
    found = [(entry["reach"], entry["ratio"], ""), (entry["reach_cpu"], entry["cpu_ratio"], " cpu")]
    return ", ".join(
        f"{times(reach)}{of} {'yes' if (ratio or 0) >= reach else 'no'}"
        for reach, ratio, of in found
        if reach is not None
    )


def times(value: float) -> str:
    """A ratio in words."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def duration(seconds: float, unit: str) -> str:
    """A time for each unit in words."""
    for name, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {name}/{unit}"
    return f"{seconds * 1e9:.3g} ns/{unit}"


def rate(per_second: float, unit: str) -> str:
    """Units in a second in words."""
    if unit == "byte":
        return f"{per_second / 1e9:.3g} GB/s"
    for name, factor in (("G ", 1e9), ("M ", 1e6), ("k ", 1e3)):
        if per_second >= factor:
            return f"{per_second / factor:.3g} {name}{unit}/s"
    return f"{per_second:.3g} {unit}/s"
