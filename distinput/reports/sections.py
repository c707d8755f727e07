# SPDX-License-Identifier: Apache-2.0
"""The sections of a report that need notes of a pass: timeline, buffers and memory."""

from distinput.core.quantities import bytes_text, number_text, seconds_text
from distinput.data.recording.trace import Trace
from distinput.data.stats import Stats
from distinput.reports.markup import Markup, tag
from distinput.reports.plots import over_time
from distinput.reports.self_time import CONSUMER, whole_threads
from distinput.reports.timeline import colour_class, timeline

__all__ = ["buffers_section", "memory_section", "timeline_section"]


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
        tag(
            "p",
            "A row for each thread. A moment has the colour of the step that had most of it; the consumer is the loop that "
            "takes the elements.",
            class_="di-quiet",
        ),
        tag("p", *[tag("span", tag("i", class_=colour), name) for colour, name in legend], class_="di-legend"),
        tag("div", timeline(threads, trace.threads, keys, begin, end), class_="di-wide"),
    ]
    if trace.dropped:
        parts.append(tag("p", f"The pass was long: {trace.dropped:,} later events are not shown.", class_="di-quiet"))
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
        made.append(tag("div", over_time(points, end - begin, number_text, title), class_="di-wide"))
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
        tag("div", over_time(points, end - begin, bytes_text, "memory of the process"), class_="di-wide"),
    ]
