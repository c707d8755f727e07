# SPDX-License-Identifier: Apache-2.0
"""Stretches cover what the spans cover, once, and give each moment to the innermost span."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from distinput.data.recording import Span
from distinput.reports.timeline import CONSUMER, Stretch, stretches, whole_threads


@st.composite
def calls(draw: st.DrawFn, first: int = 0, last: int = 64, depth: int = 3) -> list[Span]:
    """Spans nested as calls are, in whole seconds."""
    made = []
    at = first
    while at < last and depth and draw(st.booleans()):
        begin = draw(st.integers(at, last))
        end = draw(st.integers(begin, last))
        kind = draw(st.sampled_from(["step", "wait", "task"]))
        made.append(Span(draw(st.sampled_from("abc")), kind, 1, float(begin), float(end)))
        made += draw(calls(begin, end, depth - 1))
        at = end
    return made


@given(calls())
def test_each_moment_belongs_to_the_innermost_span(spans: list[Span]) -> None:
    found = stretches(sorted(spans, key=lambda span: span.end))
    assert all(a.end <= b.begin for a, b in pairwise(found))
    for moment in range(64):
        around = [span for span in spans if span.begin <= moment and span.end >= moment + 1]
        here = [stretch for stretch in found if stretch.begin <= moment and stretch.end >= moment + 1]
        if not around:
            assert here == []
            continue
        innermost = min(span.end - span.begin for span in around)
        assert len(here) == 1
        assert (here[0].step, here[0].waits) in {
            (span.step, span.kind == "wait") for span in around if span.end - span.begin == innermost
        }


def test_the_time_between_is_the_consumers() -> None:
    spans = [Span("0:range", "step", 7, 1.0, 2.0), Span("0:range", "step", 7, 4.0, 5.0), Span("x", "task", 8, 0.0, 1.0)]
    assert whole_threads(spans, 0.0, 6.0, "0:range") == {
        7: [
            Stretch(CONSUMER, False, 0.0, 1.0),
            Stretch("0:range", False, 1.0, 2.0),
            Stretch(CONSUMER, False, 2.0, 4.0),
            Stretch("0:range", False, 4.0, 5.0),
            Stretch(CONSUMER, False, 5.0, 6.0),
        ],
        8: [Stretch("x", False, 0.0, 1.0)],
    }
    assert whole_threads([], 0.0, 1.0, "0:range") == {}
