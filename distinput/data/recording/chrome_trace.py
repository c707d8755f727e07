# SPDX-License-Identifier: Apache-2.0
"""The timeline of a pass as trace events, which Perfetto and chrome://tracing open."""

import json
from typing import Any

from distinput.data.recording.trace import Trace

__all__ = ["chrome_trace"]


def chrome_trace(trace: Trace, begin: float = 0.0) -> str:
    """A JSON object of trace events.

    Each thread is a row; a block that a step makes is an event within that of the step that asked for it, and waiting is one
    within that of the step that waits. Elements in buffers and the memory of the process are counters.

    Args:
      trace: what was noted.
      begin: the time that is shown as 0.

    Source: "Trace Event Format" of the Chromium project: complete events (`X`), counters (`C`) and metadata (`M`); times are
    microseconds.
    """
    rows = {thread: index for index, thread in enumerate(trace.threads, start=1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "distinput"}}
    ]
    for thread, row in rows.items():
        events.append(_named("thread_name", row, {"name": trace.threads[thread]}))
        events.append(_named("thread_sort_index", row, {"sort_index": row}))
    for span in sorted(trace.spans, key=lambda each: (each.begin, -each.end)):
        first, last = _nanoseconds(span.begin - begin), _nanoseconds(span.end - begin)
        event = {
            "ph": "X",
            "name": f"{span.step} waits" if span.kind == "wait" else span.step,
            "cat": span.kind,
            "ts": first / 1000,
            "dur": (last - first) / 1000,
            "pid": 1,
            "tid": rows[span.thread],
        }
        if span.kind == "step":
            event["args"] = {"rows": span.rows}
        events.append(event)
    for sample in trace.samples:
        name, unit = ("memory", "bytes") if sample.what == "memory" else (f"{sample.what} buffer", "elements")
        at = _nanoseconds(sample.time - begin) / 1000
        events.append({"ph": "C", "name": name, "ts": at, "pid": 1, "tid": 0, "args": {unit: sample.value}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"dropped": trace.dropped}})


def _named(what: str, row: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 1, "tid": row, "args": arguments}


def _nanoseconds(seconds: float) -> int:
    """Rounded; what lies within another stretch of time still does, since rounding keeps the order."""
    return round(seconds * 1e9)
