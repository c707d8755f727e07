# SPDX-License-Identifier: Apache-2.0
"""The sections of a report: what is known without a pass, and what notes of a pass show."""

from collections.abc import Sequence
from typing import Any

from distinput.data.recording import Trace
from distinput.data.stats import Stats
from distinput.names.words import bytes_text, count_of, number_text, seconds_text
from distinput.plan.node import Node
from distinput.reports.markup import Markup, quiet, tag, wide
from distinput.reports.plots import bars, distribution, over_time
from distinput.reports.shuffle_quality import ShuffleQuality, shuffle_quality
from distinput.reports.svg import Figures
from distinput.reports.timeline import CONSUMER, colour_class, timeline, whole_threads
from distinput.sharding.planning import shard_plan
from distinput.sharding.shard_plan import ShardPlan

# ----------------------------------------------------------------------------
# The sections of a report that need notes of a pass: timeline, buffers and memory.
# ----------------------------------------------------------------------------


def timeline_section(trace: Trace, stats: Stats, last: str, begin: float, end: float) -> list[Markup]:
    """What each thread did, with the colours of the steps."""
    threads = whole_threads(trace.spans, begin, end, last)
    keys = list(dict.fromkeys([*stats, *[span.step for span in trace.spans]]))
    seen = {stretch.step for found in threads.values() for stretch in found}
    legend = [(colour_class(key, keys), key) for key in (*keys, CONSUMER) if key in seen]
    if any(stretch.waits for found in threads.values() for stretch in found):
        legend.append(("di-waits", "waits for another thread"))
    parts = [
        tag("h2", "Threads"),
        quiet(
            "A row for each thread. A moment has the colour of the step that had most of it; the consumer is the loop that "
            "takes the elements."
        ),
        tag("p", *[tag("span", tag("i", class_=colour), name) for colour, name in legend], class_="di-legend"),
        wide(timeline(threads, trace.threads, keys, begin, end)),
    ]
    if trace.dropped:
        parts.append(quiet(f"The pass was long: {trace.dropped:,} later events are not shown."))
    return parts


def buffers_section(trace: Trace, stats: Stats, begin: float, end: float) -> list[Markup]:
    """How many elements waited in each buffer, and for how long steps waited for others."""
    waits = {key: told["waiting"] for key, told in stats.items() if told["waiting"] > 0}
    names = list(dict.fromkeys(sample.what for sample in trace.samples if sample.what != "memory"))
    if not waits and not names:
        return []
    made = [tag("h2", "Buffers and waits")]
    if waits:
        told = ", ".join(f"{key} {seconds_text(seconds)}" for key, seconds in waits.items())
        made.append(tag("p", f"Steps waited for other threads or processes: {told}."))
    for name in names:
        points = [(sample.time - begin, float(sample.value)) for sample in trace.samples if sample.what == name]
        empty = sum(1 for _, value in points if value == 0) / len(points)
        title = f"elements in the buffer of {name} ({empty:.0%} of the times it was found empty)"
        made.append(wide(over_time(points, end - begin, number_text, title)))
    return made


def memory_section(trace: Trace, begin: float, end: float) -> list[Markup]:
    """Memory of the process over time."""
    points = [(s.time - begin, float(s.value)) for s in trace.samples if s.what == "memory" and s.value]
    if not points:
        return []
    first, most, last = points[0][1], max(value for _, value in points), points[-1][1]
    return [
        tag("h2", "Memory"),
        tag(
            "p",
            f"The process had {bytes_text(first)} in memory when the pass began, at most {bytes_text(most)} while it ran, and "
            f"{bytes_text(last)} at its end.",
        ),
        wide(over_time(points, end - begin, bytes_text, "memory of the process")),
    ]


# ----------------------------------------------------------------------------
# The sections of a report about what is known without a pass: the shards of workers, and how well shuffles shuffle.
# ----------------------------------------------------------------------------


_MOST_WORKERS = 32


def shards_section(node: Node, num_workers: int) -> list[Markup]:
    """What each of some workers would read and deliver; empty for one worker."""
    if num_workers < 2:
        return []
    made = [tag("h2", f"Shards of {num_workers} workers")]
    try:
        return [*made, *plan_parts(shard_plan(node, num_workers))]
    except Exception as error:  # noqa: BLE001 - a report says why it has no plan, and goes on
        return [*made, quiet(f"There is no plan for {num_workers} workers: {error}")]


def plan_parts(plan: ShardPlan) -> list[Markup]:
    """The policy in a sentence, and a bar for the rows and bytes of each worker."""
    workers = plan.workers[:_MOST_WORKERS]
    parts = [tag("p", f"Policy {plan.policy}: {plan.sentence}")]
    rows = [(w.worker, w.rows) for w in workers if w.rows is not None and w.rows >= 0]
    if len(rows) == len(workers):
        parts.append(tag("p", balance([n for _, n in rows], "rows")))
        parts.append(wide(bars([(f"worker {w}", float(n), f"{n:,} rows") for w, n in rows], "rows of each worker")))
    else:
        parts.append(quiet("How many rows each worker has is known only when it has read them."))
    sizes = [(w.worker, w.nbytes) for w in workers if w.nbytes is not None]
    if any(n for _, n in sizes):
        parts.append(tag("p", balance([n for _, n in sizes], "bytes")))
        parts.append(
            wide(bars([(f"worker {w}", float(n), bytes_text(n)) for w, n in sizes], "bytes that each worker reads"))
        )
    if len(plan.workers) > len(workers):
        parts.append(quiet(f"{len(plan.workers) - len(workers)} more workers are not shown."))
    return parts


def balance(numbers: Sequence[int], what: str, who: str = "worker") -> str:
    """How far the largest and the smallest share are from the mean, in a sentence."""
    mean = sum(numbers) / len(numbers)
    if not mean:
        return f"No {who} has {what}."
    most, fewest = max(numbers) / mean, min(numbers) / mean
    return f"The {who} with the most {what} has {most:.2f} times the mean, the one with the fewest {fewest:.2f} times."


def shuffle_section(node: Node, epoch: int) -> list[Markup]:
    """How far rows travel in each shuffle, beside a perfect one; empty if nothing is shuffled."""
    found = shuffle_quality(node, epoch)
    if not found:
        return []
    made = [
        tag("h2", "Shuffle"),
        quiet("Columns: how far rows are from where they were. Dashed: after a perfect shuffle."),
    ]
    for quality in found:
        made += _quality(quality)
    return made


def _quality(quality: ShuffleQuality) -> list[Markup]:
    note = "" if quality.seen >= quality.rows else f" Seen: the first {quality.seen:,} of {quality.rows:,} rows."
    if not quality.counted:
        note = f" The rows cannot be counted; this is for an input of {quality.rows:,}."
    ends = ("0 places", f"{quality.rows:,} places")
    picture = distribution(quality.shares, quality.perfect_shares, ends, f"how far rows travel in {quality.step}")
    return [
        tag(
            "p",
            tag("code", quality.step),
            " ",
            quality.sentence,
            f" Correlation with the order before: {quality.correlation:.2f}.",
            note,
        ),
        wide(picture),
    ]


# ----------------------------------------------------------------------------
# Statistics of a pass as figures for the boxes of its graph, and as rows of a table.
# ----------------------------------------------------------------------------


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
        lines.append(f"{count_of(entry['rows'], 'element')} in {count_of(entry['blocks'], 'block')}{size}")
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
