# SPDX-License-Identifier: Apache-2.0
"""Makes docs/performance.md and its plots from the results of the benchmarks: python benchmarks/page.py."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import Goal, duration, goals, goals_beside, own_goals, summary, times
from benchmarks.plot import Bar, bars, lines
from benchmarks.run import BENCHMARKS, RESULTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"

HEAD = """# Performance

How fast is distinput beside other libraries, and beside the limits of the machine? All get the same data in the same run.
`python benchmarks/run.py` measures, and `python benchmarks/page.py` writes this page; [benchmarks](../benchmarks/README.md)
says how to repeat both.

* A *peer* is another library, or a program by hand that is slower. A *limit* is the least work that anybody must do, such as
  copying the bytes once. So 0.9x beside a limit is close to the best possible.
* `ratio` is the time of the peer or limit divided by ours. Above 1x distinput is faster. Each round gives a ratio: the table
  has their median, and `range` the lowest and the highest. `cpu ratio` is the same for the CPU time of all cores together.
* `to reach` is the target for a ratio, or for a figure of our own. **no** marks a missed target. A target that the fastest
  limit of its case misses too is replaced by this limit: `the limit, 0.236x (for 0.25x)`.
* In the plots, distinput is faster where a bar lies right of 1x. Blue bars are peers, grey bars are limits, and a red mark
  is the target.
"""

SHORT = """`a limit has` shows how far the limits of the same case get beside the same peer or limit, the fastest first, where
they get further than distinput. Nobody who does all the work gets further than the fastest. Some limits do a part of the work
(reading the bytes, copying them once); others do all of it by hand (bare loops, kernels alone).
"""


def page(results: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, str]]:
    """The page's text, and its plots by file name."""
    text = [HEAD, *_where(results), *_overview(results)]
    plots = {}
    for result in results:
        name = result["benchmark"]
        plot = _growth(result) if name == "growth" else _bars(result)
        text.append(f"## {name}\n\n{result['question']}\n\n```\n{result['command']}\n```\n")
        text.append(f"{_date(result)}, load of the machine {_load(result)}, {_rounds(result)}.\n")
        if plot:
            plots[f"{name}.svg"] = plot
            text.append(f"![{name}](performance/{name}.svg)\n")
        text += _tables(result)
        if result["notes"]:
            text.append(f"{result['notes'].strip()}\n")
    return "\n".join(text).rstrip() + "\n", plots


def _where(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The machine; once, unless the results come from several."""
    seen: list[Any] = []
    for machine in [result["machine"] for result in results]:
        if machine not in seen:
            seen.append(machine)
    for machine in seen:
        of = [] if len(seen) == 1 else [r["benchmark"] for r in results if r["machine"] == machine]
        packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        memory = "" if machine["memory"] is None else f", {machine['memory']} GiB of memory"
        yield (
            f"{'Machine' if not of else 'Machine of ' + ', '.join(of)}: {machine['processor']}, {machine['cores']} cores"
            f"{memory}, {machine['system']} ({machine['architecture']}), Python {machine['python']}; {packages}.\n"
        )


def _overview(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many of the targets are reached, what other libraries take, and then the targets that are missed."""
    found = [
        (result["benchmark"], case, goal) for result in results for case in result["results"] for goal in goals(case)
    ]
    short = [(name, case, goal) for name, case, goal in found if not goal.reached]
    beyond = sum(goal.beyond for _, _, goal in short)
    yield f"## What is reached\n\nOf {len(found)} targets, {len(found) - len(short)} are reached in this run.\n"
    yield from _peers(results)
    if short:
        rows = ["| benchmark | case | beside | figure | to reach | a limit has |", "|---|---|---|---:|---:|---|"]
        rows += [
            f"| [{name}](#{name}) | {case['case']} | {goal.beside} | {goal.figure} | {goal.wanted} | {goal.limit} |"
            for name, case, goal in short
        ]
        missed = f"{len(short)} targets are missed; in {beyond} of them the fastest limit replaces the target."
        yield "\n".join(["## What falls short", "", f"{missed}\n\n{SHORT}", *rows]) + "\n"


def _peers(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A row for each benchmark and library: how many cases there are, and the lowest and the highest ratio."""
    rows = ["| benchmark | beside | cases | ratio, lowest to highest |", "|---|---|---:|---:|"]
    for result in results:
        ratios: dict[str, list[float]] = {}
        for case in result["results"]:
            for entry in summary(case):
                if entry["kind"] == "peer":
                    ratios.setdefault(entry["name"], []).append(entry["ratio"])
        name = result["benchmark"]
        rows += [
            f"| [{name}](#{name}) | {peer} | {len(all_of)} | {_between(all_of)} |" for peer, all_of in ratios.items()
        ]
    if len(rows) > 2:
        yield "\n".join(rows) + "\n"


def _between(ratios: Sequence[float]) -> str:
    low, high = times(min(ratios)), times(max(ratios))
    return low if low == high else f"{low} to {high}"


def _tables(result: Mapping[str, Any]) -> Iterator[str]:
    head = "| case | ours | beside | | ratio | range | cpu ratio | to reach |\n|---|---:|---|---:|---:|---:|---:|---:|"
    rows, below = [head], []
    for case in result["results"]:
        unit, count = next(iter(case["units"].items()))
        for entry in summary(case):
            cells = [
                case["case"],
                duration(entry["ours_seconds"] / count, unit),
                f"{entry['name']} ({entry['kind']})",
                duration(entry["seconds"] / count, unit),
                times(entry["ratio"]),
                f"{times(entry['ratio_low'])} .. {times(entry['ratio_high'])}",
                "" if entry["cpu_ratio"] is None else times(entry["cpu_ratio"]),
                ", ".join(f"{goal.wanted} {_answer(goal)}" for goal in goals_beside(entry)),
            ]
            rows.append("| " + " | ".join(cells) + " |")
        below += [f"* {case['case']}: ours {g.figure}, to reach {g.wanted} {_answer(g)}" for g in own_goals(case)]
        below += [
            f"* {case['case']}: {contender['name']} {name} {value:,.6g}"
            for contender in case["contenders"]
            for name, value in contender["facts"].items()
        ]
    if len(rows) > 1:
        yield "\n".join(rows) + "\n"
    if below:
        yield "\n".join(below) + "\n"


def _answer(goal: Goal) -> str:
    return "yes" if goal.reached else "**no**"


def _bars(result: Mapping[str, Any]) -> str | None:
    rows = [
        Bar(
            *(f"{case['case']} | {entry['name']}", entry["kind"]),
            *(entry["ratio"], entry["ratio_low"], entry["ratio_high"], entry["reach"]),
        )
        for case in result["results"]
        for entry in summary(case)
    ]
    return bars("their time / our time", rows) if rows else None


def _growth(result: Mapping[str, Any]) -> str | None:
    """Cost for each element over the number of elements, which is the first number in a contender's name."""
    series: dict[str, list[tuple[float, float]]] = {}
    for case in result["results"]:
        kind, _, name = case["case"].partition(": ")
        if kind != "elements":
            continue
        count = next(iter(case["units"].values()))
        points = [(_first_number(c["name"]), median(c["seconds"]) / count * 1e9) for c in case["contenders"]]
        series[name] = sorted(points)
    if not series:
        return None
    return lines("cost of an element: level is linear", series, "elements", "ns for each element")


def _first_number(name: str) -> float:
    found = re.search(r"\d[\d,]*", name)
    assert found is not None, name
    return float(found[0].replace(",", ""))


def _date(result: Mapping[str, Any]) -> str:
    return str(result["date"]).split("+")[0].replace("T", " ") + " UTC"


def _load(result: Mapping[str, Any]) -> str:
    loads = [load for case in result["results"] for load in case["load"]]
    return f"{min(loads):g} to {max(loads):g}" if loads else "unknown"


def _rounds(result: Mapping[str, Any]) -> str:
    rounds = sorted({case["rounds"] for case in result["results"]})
    return (
        f"medians of {' to '.join(str(r) for r in sorted({rounds[0], rounds[-1]}))} rounds" if rounds else "no rounds"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the results that there are and write the page and its plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with the JSON files of a run")
    parser.add_argument("--page", type=Path, default=PAGE, help="what to write")
    given = parser.parse_args(arguments)
    files = [given.results / f"{name}.json" for name in BENCHMARKS]
    results = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    if not results:
        parser.error(f"there are no results in {given.results}; `python benchmarks/run.py` makes them")
    text, plots = page(results)
    folder = given.page.parent / "performance"
    folder.mkdir(parents=True, exist_ok=True)
    given.page.write_text(text, encoding="utf-8")
    for name, plot in plots.items():
        (folder / name).write_text(plot, encoding="utf-8")
    print(f"{given.page} and {len(plots)} plots, from {len(results)} of {len(BENCHMARKS)} benchmarks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
