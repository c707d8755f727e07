# SPDX-License-Identifier: Apache-2.0
"""Results in figures and words: medians, ratios, what was to be reached, and the table that is printed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

__all__ = [
    "Goal",
    "duration",
    "goals",
    "goals_beside",
    "ours_of",
    "own_goals",
    "rate",
    "summary",
    "table",
    "times",
]


def ours_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Our own contender in a result."""
    (ours,) = [contender for contender in result["contenders"] if contender["kind"] == "ours"]
    found: Mapping[str, Any] = ours
    return found


@dataclass(frozen=True)
class Goal:
    """Something to reach.

    Args:
      beside: whose time is compared with ours, or "ours" for a figure of our own.
      figure: what was measured, in words.
      wanted: what is to be reached, in words: the target, or the fastest limit of the case where that has less.
      reached: whether it is.
      limit: what limits of the same case have beside the same peer or limit, as far as it is more than ours, in words; where
        none has more, what the fastest has.
      beyond: whether the target is more than the fastest limit has, which then takes its place.
    """

    beside: str
    figure: str
    wanted: str
    reached: bool
    limit: str = ""
    beyond: bool = False


def goals(result: Mapping[str, Any]) -> list[Goal]:
    """All that a case has to reach."""
    return [*[goal for entry in summary(result) for goal in goals_beside(entry)], *own_goals(result)]


def goals_beside(entry: Mapping[str, Any]) -> list[Goal]:
    """The ratios to reach beside one limit or peer, from its entry in the summary."""
    measures = [("reach", "ratio", "limits", ""), ("reach_cpu", "cpu_ratio", "cpu_limits", " of cpu")]
    return [
        _goal(entry["name"], entry[ratio] or 0.0, entry[reach], entry[limits], of)
        for reach, ratio, limits, of in measures
        if entry[reach] is not None
    ]


def _goal(beside: str, ours: float, target: float, limits: Sequence[tuple[str, float]], of: str) -> Goal:
    fastest = limits[0][1] if limits else target
    beyond = fastest < target
    wanted = f"the limit, {times(fastest)}{of} (for {times(target)})" if beyond else f"{times(target)}{of}"
    ahead = [f"{name}: {times(ratio)}" for name, ratio in limits if ratio > ours]
    if limits and not ahead:
        ahead = [f"none more than we have; {limits[0][0]}: {times(fastest)}"]
    return Goal(beside, f"{times(ours)}{of}", wanted, ours >= min(fastest, target), "; ".join(ahead), beyond)


def own_goals(result: Mapping[str, Any]) -> list[Goal]:
    """Those of our own figures that are not to be exceeded."""
    ours, (unit, count) = ours_of(result), next(iter(result["units"].items()))
    made = []
    for name, most in ours["most"].items():
        if name == "seconds":
            value = median(ours["seconds"]) / count
            words = [duration(value, unit), duration(most, unit)]
        else:
            value = ours["facts"][name]
            words = [f"{name} {value:,.6g}", f"{most:,.6g}"]
        made.append(Goal("ours", words[0], f"at most {words[1]}", value <= most))
    return made


def summary(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each limit and peer: medians, and the ratio their time / ours with its range over the rounds."""
    ours = ours_of(result)
    limits = [other for other in result["contenders"] if other["kind"] == "limit"]
    entries = []
    for other in result["contenders"]:
        if other is ours:
            continue
        # A peer that takes long may have been timed in the first rounds alone.
        ratios = [b / a for a, b in zip(ours["seconds"], other["seconds"], strict=False)]
        cpu = [b / a for a, b in zip(ours["cpu"], other["cpu"], strict=False) if a > 0]
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
                "limits": _beside(limits, other, "seconds"),
                # Limits that are compared by processor time are smaller cases of the same work.
                "cpu_limits": _beside(limits, other, "cpu") if other["kind"] == "peer" else [],
            }
        )
    return entries


def _beside(limits: Iterable[Mapping[str, Any]], other: Mapping[str, Any], what: str) -> list[tuple[str, float]]:
    """How far limits leave a peer, or another limit, behind: their time / its time, the farthest first."""
    found = [
        (limit["name"], median([b / a for a, b in zip(limit[what], other[what], strict=False) if a > 0] or [0.0]))
        for limit in limits
        if limit is not other
    ]
    return sorted(found, key=lambda each: -each[1])


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
                ", ".join(f"{goal.wanted} {_answer(goal)}" for goal in goals_beside(entry)),
            )
            for entry in summary(result)
        ]
        ours = ours_of(result)
        below += [
            f"  {result['case']}: ours {goal.figure}, to reach {goal.wanted} {_answer(goal)}"
            for goal in own_goals(result)
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


def _answer(goal: Goal) -> str:
    return "yes" if goal.reached else "no"


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
