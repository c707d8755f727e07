# SPDX-License-Identifier: Apache-2.0
"""Trace events load, and nest on every thread as calls do."""

import json
from typing import Any

from hypothesis import given, settings

import distinput as di
from distinput.data.recording import Recording, chrome_trace, recorded
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases


def events_of(recording: Recording) -> list[dict[str, Any]]:
    loaded = json.loads(chrome_trace(recording.trace, recording.begin))
    assert loaded["displayTimeUnit"] == "ms"
    events: list[dict[str, Any]] = loaded["traceEvents"]
    return events


@settings(max_examples=cases(8, 200), deadline=None)
@given(pipelines())
def test_events_nest_and_count_the_elements(pipeline: Pipeline) -> None:
    recording = recorded(pipeline.build())
    events = events_of(recording)
    assert {event["ph"] for event in events} <= {"M", "X", "C"}
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    complete = [event for event in events if event["ph"] == "X"]
    for thread in {event["tid"] for event in complete}:
        assert thread in named
        open_ends: list[float] = []
        for event in (event for event in complete if event["tid"] == thread):
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], "it ends within the one that it began in"
            assert end >= begin >= 0
            open_ends.append(end)
    if "on_workers" in repr(pipeline.recipe):
        return  # what workers do is counted, and drawn by none of their clocks
    for key, told in recording.stats().items():
        if not key.startswith("inner:"):
            assert told["rows"] == sum(e["args"]["rows"] for e in complete if e["name"] == key and e["cat"] == "step")


def test_waits_buffers_and_memory_are_there() -> None:
    events = events_of(recorded(di.data.Dataset.range(100).map(lambda x: x + 1).batch(3).prefetch(4)))
    assert {event["name"] for event in events if event.get("cat") == "wait"} == {"3:prefetch waits"}
    counters = {event["name"]: event["args"] for event in events if event["ph"] == "C"}
    assert counters["3:prefetch buffer"].keys() == {"elements"}
    assert counters["memory"]["bytes"] > 0
