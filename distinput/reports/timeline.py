# SPDX-License-Identifier: Apache-2.0
"""The timeline of threads as a picture: a row a thread, the colour of the step that had most of each moment."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from distinput.data.recording import Span
from distinput.names.words import seconds_text
from distinput.reports.markup import Markup, tag
from distinput.reports.plots import WIDTH, plot, time_axis

# ----------------------------------------------------------------------------
# Who had a thread when: nested spans as stretches that belong to one step each.
# ----------------------------------------------------------------------------


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


_MOMENTS = 450
_ROW, _BAR, _LABEL, _MOST_ROWS = 36, 18, 14, 24

_COLOURS = (
    *("var(--di-blue)", "var(--di-orange)", "var(--di-violet)", "#c9a227", "#2ba3b5"),
    *("#d16d9e", "#8a6f4d", "#7d9440", "#b8524f", "#5f6fd0"),
)
"""Of steps."""
TIMELINE_STYLE = "".join(
    f".di-{name} {{ fill: {colour}; background: {colour}; }}\n"
    for name, colour in (*enumerate(_COLOURS), ("consumer", "var(--di-green)"), ("waits", "var(--di-grey)"))
)


def colour_class(step: str, steps: Sequence[str]) -> str:
    """The class with the colour of a step."""
    return "di-consumer" if step == CONSUMER else f"di-{(steps.index(step) if step in steps else 0) % len(_COLOURS)}"


def timeline(
    threads: Mapping[int, Sequence[Stretch]], names: Mapping[int, str], steps: Sequence[str], begin: float, end: float
) -> Markup:
    """A picture of what each thread did.

    Args:
      threads: the stretches of each.
      names: of the threads.
      steps: keys of all steps, which decide their colours.
      begin: of the pass.
      end: of the pass.
    """
    shown = list(threads)[:_MOST_ROWS]
    length = max(end - begin, 1e-9)
    rows = []
    for index, thread in enumerate(shown):
        top = index * _ROW
        label = tag("text", names.get(thread, f"thread {thread}"), x=0, y=top + _LABEL - 4, class_="di-label")
        bars = [_bar(moment, steps, top + _LABEL, length, begin) for moment in _moments(threads[thread], begin, length)]
        rows.append(tag("g", label, *bars))
    height = len(shown) * _ROW
    title = "What each thread did, from the first to the last element"
    return plot(title, height + 24, *rows, time_axis(length, height + 4))


def _bar(moment: Stretch, steps: Sequence[str], top: float, length: float, begin: float) -> Markup:
    scale = WIDTH / length
    what = f"{moment.step} waits" if moment.waits else moment.step
    return tag(
        "rect",
        tag("title", f"{what}, from {seconds_text(moment.begin - begin)} to {seconds_text(moment.end - begin)}"),
        x=(moment.begin - begin) * scale,
        y=top,
        width=(moment.end - moment.begin) * scale,
        height=_BAR - 4 if moment.waits else _BAR,
        class_="di-waits" if moment.waits else colour_class(moment.step, steps),
    )


def _moments(found: Sequence[Stretch], begin: float, length: float) -> list[Stretch]:
    """Stretches of at least one moment each: who had most of each moment. There are a few hundred moments."""
    step = length / _MOMENTS
    shares: list[dict[tuple[str, bool], float]] = [{} for _ in range(_MOMENTS)]
    for stretch in found:
        first, last = (stretch.begin - begin) / step, (stretch.end - begin) / step
        for place in range(max(0, int(first)), min(_MOMENTS, int(last) + 1)):
            part = min(last, place + 1) - max(first, place)
            if part > 0:
                who = stretch.step, stretch.waits
                shares[place][who] = shares[place].get(who, 0.0) + part
    merged: list[Stretch] = []
    for place, share in enumerate(shares):
        if sum(share.values()) < 0.5:
            continue
        who = max(share, key=lambda each: share[each])
        at = begin + place * step
        if merged and merged[-1][:2] == who and abs(merged[-1].end - at) < step / 2:
            merged[-1] = merged[-1]._replace(end=at + step)
        else:
            merged.append(Stretch(*who, at, at + step))
    return merged
