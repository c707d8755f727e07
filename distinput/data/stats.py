# SPDX-License-Identifier: Apache-2.0
"""Statistics of the steps of a running pipeline, the choices of AUTOTUNE, and the step that the others wait for."""

from collections.abc import Hashable, Mapping
from typing import Any

from distinput.names.words import html
from distinput.plan.node import Node, walk
from distinput.run.run import OpCounters

__all__ = ["Stats", "stats_of"]


class Stats(dict[str, dict[str, Any]]):
    """One entry for each step that ran, inputs first, named by its number and op; printed as a table.

    An entry has `blocks` and `rows` sent, `seconds` in the step and what it reads from on the same thread, `busy` seconds of
    work in the step alone, `waiting` seconds for other threads or processes and, where it has them, `workers`, the `worked`
    seconds of all of them together, and what AUTOTUNE `chose`; in a recorded pass (`distinput.reports.Recording`) the `bytes`
    sent; that of `ignore_errors` how many elements it has `dropped`, and the `last_error`. Steps of datasets that functions
    made (`interleave`) are named `inner`, one for each line that makes them.

    Attributes:
      slowest: the name of the step that the others wait for; "consumer" for the loop that takes the elements; "" before any
        element was requested.
      bottleneck: the same, in a sentence.
      outside: seconds that the loop spent on its elements, including the gathering of rows that travel as row numbers until
        an element is handed out (those that `shuffle` selected from arrays or mapped files).

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(1000).map(lambda x: sum(range(5000)) + x)
    >>> _ = [x for x in ds]
    >>> stats = ds.stats()
    >>> stats.slowest, stats["1:map"]["rows"]
    ('1:map', 1000)

    Source: the rule is that of a pipeline of stages: those of one thread take turns, so their times add up; threads run side
    by side, so the one with the longest sum sets the pace.
    """

    def __init__(self, entries: Mapping[str, dict[str, Any]], slowest: str, bottleneck: str, outside: float) -> None:
        super().__init__(entries)
        self.slowest, self.bottleneck, self.outside = slowest, bottleneck, outside

    def _repr_html_(self) -> str:
        """What notebooks show: a table, and the bottleneck in a sentence."""
        return html("stats", self)

    def __str__(self) -> str:
        head = ("step", "blocks", "rows", "busy s", "waiting s", "workers", "chosen")
        lines: list[tuple[str, ...]] = [head]
        for name, told in self.items():
            busy = told["busy"] + told.get("worked", 0.0)
            figures = [f"{told['blocks']}", f"{told['rows']}", f"{busy:.3f}", f"{told['waiting']:.3f}"]
            lines.append((name, *figures, str(told.get("workers", "")), str(told.get("chose", ""))))
            if "dropped" in told:
                lines[-1] = (*lines[-1][:-1], f"dropped {told['dropped']}, last: {told['last_error']}")
        widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
        table = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*table, self.bottleneck])


def stats_of(node: Node, counters: Mapping[Hashable, OpCounters]) -> Stats:
    """The statistics of a run.

    Args:
      node: the tree that ran.
      counters: the counters of the run.
    """
    steps = list(walk(node))
    by_step: dict[str, OpCounters] = {}
    where: dict[str, Any] = {}
    seen: set[int] = set()
    for number, step in enumerate(steps):
        counter = counters.get(id(step))
        if counter is not None and id(step) not in seen and (counter.seconds or counter.blocks):
            seen.add(id(step))  # a step that several read from is counted once
            by_step[f"{number}:{step.op}"] = counter
            where[f"{number}:{step.op}"] = step.where()
    for key, counter in counters.items():
        if isinstance(key, tuple):  # (op, origin) of datasets that functions made
            op, origin = key
            name = f"inner:{op}" if f"inner:{op}" not in by_step else f"inner:{op}:{origin}"
            by_step[name], where[name] = counter, f"{op}, made at {origin}"
    last = counters.get(id(steps[-1]), OpCounters())
    outside = max(0.0, last.outside - sum(counter.late for counter in by_step.values()))
    slowest, load = _slowest(by_step, last, outside)
    entries = {name: _entry(counter) for name, counter in by_step.items()}
    return Stats(entries, slowest, _sentence(slowest, load, by_step, where, last, outside), outside)


def _entry(counter: OpCounters) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "blocks": counter.blocks,
        "rows": counter.rows,
        "seconds": counter.seconds,
        "busy": counter.busy,
        "waiting": counter.waiting,
    }
    if counter.nbytes:
        entry["bytes"] = counter.nbytes
    if counter.workers:
        entry |= {"workers": counter.workers, "worked": counter.worked}
    if counter.choice:
        entry["chose"] = counter.choice
    if counter.dropped:
        entry |= {"dropped": counter.dropped, "last_error": counter.error}
    return entry


def _slowest(named: Mapping[str, OpCounters], last: OpCounters, outside: float) -> tuple[str, float]:
    """The step with the most work on the thread with the most work, and its seconds."""
    if not named:
        return "", 0.0
    threads: dict[Hashable, dict[str, float]] = {last.thread: {"consumer": outside}}
    for name, counter in named.items():
        threads.setdefault(counter.thread, {})[name] = counter.busy
        if counter.workers:
            threads[name] = {name: counter.worked / counter.workers}
    load = max(threads.values(), key=lambda steps: sum(steps.values()))
    slowest = max(load, key=lambda name: load[name])
    return slowest, load[slowest]


def _sentence(
    slowest: str,
    load: float,
    named: Mapping[str, OpCounters],
    where: Mapping[str, Any],
    last: OpCounters,
    outside: float,
) -> str:
    if not slowest:
        return "No element was asked for yet."
    wall = max(last.seconds + last.outside, load)
    share = f"{100 * load / wall:.0f} % of {wall:.3g} s" if wall else "all the time"
    if slowest == "consumer":
        return f"The loop that takes the elements is the slowest part, with {share}; the dataset waits for it."
    counter = named[slowest]
    op = slowest.split(":")[1]
    if counter.workers:
        cure = f"more than {counter.workers} workers would help, if there are cores for them"
    elif op in ("map", "fused_map"):
        cure = "num_parallel_calls= spreads it over threads, with processes=True over processes"
    elif counter.thread == last.thread and outside > 0.1 * load:
        cure = "prefetch after it would let it run beside the loop"
    else:
        cure = "the other steps wait for it"
    return f"{where[slowest]}, is the slowest step, with {share}; {cure}."
