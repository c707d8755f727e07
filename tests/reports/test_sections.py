# SPDX-License-Identifier: Apache-2.0
"""Sections about threads, buffers and memory show what was noted, and nothing where nothing was."""

from distinput.data.recording import Sample, Span, Trace
from distinput.data.stats import Stats
from distinput.reports.markup import Markup
from distinput.reports.sections import buffers_section, memory_section, timeline_section
from tests.reports.pictures import parsed, words_of

ENTRY = {"blocks": 1, "rows": 4, "seconds": 1.0, "busy": 0.25, "waiting": 0.75}
STATS = Stats({"0:prefetch": ENTRY}, "0:prefetch", "", 0.0)


def text(section: list[Markup]) -> str:
    return words_of(parsed(f"<div>{''.join(section)}</div>"))


def noted() -> Trace:
    trace = Trace()
    trace.threads = {5: "MainThread"}
    trace.spans = [Span("0:prefetch", "step", 5, 1.0, 2.0, 4), Span("0:prefetch", "wait", 5, 1.0, 1.75)]
    trace.samples = [Sample("0:prefetch", 1.5, 3), Sample("memory", 1.0, 5 << 20), Sample("memory", 2.0, 7 << 20)]
    trace.dropped = 12
    return trace


def test_threads() -> None:
    found = text(timeline_section(noted(), STATS, "0:prefetch", 0.5, 2.5))
    for word in ("MainThread", "0:prefetch waits", "consumer", "waits for another thread", "12 later events"):
        assert word in found


def test_buffers() -> None:
    found = text(buffers_section(noted(), STATS, 0.5, 2.5))
    assert "0:prefetch 750 ms" in found
    assert "elements in the buffer of 0:prefetch (0% of the times it was found empty), at most 3" in found
    assert buffers_section(Trace(), Stats({}, "", "", 0.0), 0.0, 1.0) == []


def test_memory() -> None:
    assert "had 5 MiB in memory when the pass began, at most 7 MiB" in text(memory_section(noted(), 0.5, 2.5))
    assert memory_section(Trace(), 0.0, 1.0) == []
