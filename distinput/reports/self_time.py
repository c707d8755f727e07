# SPDX-License-Identifier: Apache-2.0
"""Who had a thread when: nested spans as stretches that belong to one step each."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from distinput.data.recording.trace import Span

__all__ = ["CONSUMER", "Stretch", "stretches", "whole_threads"]

CONSUMER = "consumer"
"""The loop that takes the elements, as in `Stats.slowest`."""


class Stretch(NamedTuple):
    """Time on one thread in which one step was at work, or waited.

    Attributes:
      step: its key.
      waits: True if it waited for another thread.
      begin: in seconds.
      end: in seconds.
    """

    step: str
    waits: bool
    begin: float
    end: float


def stretches(spans: Iterable[Span]) -> list[Stretch]:
    """The stretches of the spans of one thread, in order; together they cover what the spans cover, once.

    Args:
      spans: nested, as calls are: of two that overlap, one lies within the other.
    """
    result: list[Stretch] = []
    open_spans: list[Span] = []
    at = 0.0

    def until(time: float) -> None:
        nonlocal at
        if open_spans and time > at:
            step, waits = open_spans[-1].step, open_spans[-1].kind == "wait"
            if result and result[-1][:2] == (step, waits) and result[-1].end == at:
                result[-1] = result[-1]._replace(end=time)
            else:
                result.append(Stretch(step, waits, at, time))
        at = max(at, time)

    for span in sorted(spans, key=lambda each: (each.begin, -each.end)):
        while open_spans and open_spans[-1].end <= span.begin:
            until(open_spans[-1].end)
            open_spans.pop()
        until(span.begin)
        at = span.begin if not open_spans else at
        open_spans.append(span)
    while open_spans:
        until(open_spans[-1].end)
        open_spans.pop()
    return result


def whole_threads(spans: Sequence[Span], begin: float, end: float, last: str) -> dict[int, list[Stretch]]:
    """The stretches of every thread, with those in which the consumer had its own.

    Args:
      spans: of all threads.
      begin: of the pass.
      end: of the pass.
      last: the key of the last step, which the consumer calls.
    """
    by_thread: dict[int, list[Span]] = {}
    for span in spans:
        by_thread.setdefault(span.thread, []).append(span)
    threads = {thread: stretches(found) for thread, found in by_thread.items()}
    consumer = next((span.thread for span in spans if span.step == last and span.kind == "step"), None)
    if consumer is not None:
        threads[consumer] = _filled(threads[consumer], begin, end)
    return threads


def _filled(found: list[Stretch], begin: float, end: float) -> list[Stretch]:
    """Stretches with the time between them given to the consumer."""
    filled: list[Stretch] = []
    at = begin
    for stretch in found:
        if stretch.begin > at:
            filled.append(Stretch(CONSUMER, False, at, stretch.begin))
        filled.append(stretch)
        at = max(at, stretch.end)
    if end > at:
        filled.append(Stretch(CONSUMER, False, at, end))
    return filled
