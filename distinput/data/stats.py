# SPDX-License-Identifier: Apache-2.0
"""Statistics of the steps of a running pipeline, the choices of AUTOTUNE, and the step that the others wait for."""

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from distinput.names.words import html, number_text, seconds_text
from distinput.ops.map import MapCalls
from distinput.ops.reader import Reader
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import Node, walk
from distinput.run.run import CoreUse, OpCounters, Run

MANY_CALLS, MANY_READS = 32, 8
"""At a time, of functions and of files that wait."""

SMALL_BATCH = 16
"""A batch of so few rows costs about as much to hand out as one of many."""

_QUICK = 50e-6
"""A loop, or a call of a function, that takes less for an element, pays mostly for being called."""

_MANY_FILES, _FEW_RECORDS = 50, 1000
"""With so many files that have so few records each, opening them is most of the work."""

_IDLE = 0.1
"""Threads that have a core for less of their time than this wait for something else than their turn, on a busy machine too."""

_OFTEN = 100
"""Times a second that threads lose their cores, where other programs want them. They do not wait then, and yet have none."""

WORTH_IT = 1.1
"""Times as fast, from which on a change is advised."""

_CALLER, _READER = 3e-4, 1e-3
"""Seconds that one more thread costs at the start of a pass: one that calls functions, and one with files to read."""

_HANDED = 1.4
"""Times as long as one file after the other, reading computes with several at a time, whose threads hand over."""

SHORT = 1.0
"""Seconds; in a pass that takes less, loading libraries and compiled loops is a large part of what is measured."""

UNTRIED = "The gain was not measured; distinput bench --try measures it."
_UNKNOWN = "The gain was not measured."
_BUSY = "The gain was not measured, since other programs had the cores for a part of this pass."


class Stats(dict[str, dict[str, Any]]):
    """One entry for each step that ran, inputs first, named by its number and op; printed as a table.

    An entry has `blocks` and `rows` sent, `seconds` in the step and what it reads from on the same thread, `busy` seconds of
    work in the step alone, and `waiting` seconds for other threads or processes. A step with workers has `workers`, and the
    `worked` seconds of all of them together. One that AUTOTUNE looks after has what it `chose`. A recorded pass
    (`distinput.reports.Recording`) has the `bytes` sent. `ignore_errors` has how many elements it has `dropped`, and the
    `last_error`. Steps of datasets that functions made (`interleave`) are named `inner`, one for each line that makes them.

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
    >>> stats.slowest in stats, stats["1:map"]["rows"]
    (True, 1000)

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
    nodes: dict[str, Node] = {}
    seen: set[int] = set()
    for number, step in enumerate(steps):
        counter = counters.get(id(step))
        if counter is not None and id(step) not in seen and (counter.seconds or counter.blocks):
            seen.add(id(step))  # a step that several read from is counted once
            by_step[f"{number}:{step.op}"] = counter
            where[f"{number}:{step.op}"] = step.where()
            nodes[f"{number}:{step.op}"] = step
    for key, counter in counters.items():
        if isinstance(key, tuple):  # (op, origin) of datasets that functions made
            op, origin = key
            name = f"inner:{op}" if f"inner:{op}" not in by_step else f"inner:{op}:{origin}"
            by_step[name], where[name] = counter, f"{op}, made at {origin}"
    last = counters.get(id(steps[-1]), OpCounters())
    outside = max(0.0, last.outside - sum(counter.late for counter in by_step.values()))
    slowest, load, rest, pace = _slowest(by_step, last, outside)
    entries = {name: _entry(counter) for name, counter in by_step.items()}
    if not slowest:
        return Stats(entries, slowest, "No element was asked for yet.", outside)
    wall = last.seconds + last.outside
    if not slowest.startswith("inner:") or not wall:  # those of `interleave` may run on several threads
        wall = max(wall, load)
    load, rest = min(load, wall), min(rest, wall)
    share = f"{100 * load / wall:.0f} % of {wall:.3g} s" if wall else "all the time"
    cores = last.used or (None if last.began is None else Run.cores() - last.began)
    told = _Pace(load, rest, max(0.0, wall - pace), wall, cores)
    if slowest == "consumer":
        cure, brings = _of_loop(steps[-1], told, last)
        sentence = f"The loop that takes the elements is the slowest part, with {share}; {cure}"
    else:
        cure, brings = _cure(nodes.get(slowest), by_step[slowest], counters, last, told)
        sentence = f"{where[slowest]}, is the slowest step, with {share}; {cure}"
    sentence = f"{sentence}. {brings}".rstrip()
    return Stats(entries, slowest, sentence, outside)


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


def _slowest(named: Mapping[str, OpCounters], last: OpCounters, outside: float) -> tuple[str, float, float, float]:
    """The step with the most work on the thread with the most work; its seconds, those without it, and those of the thread."""
    if not named:
        return "", 0.0, 0.0, 0.0
    threads: dict[Hashable, dict[str, float]] = {last.thread: {"consumer": outside}}
    for name, counter in named.items():
        threads.setdefault(counter.thread, {})[name] = counter.busy
        if counter.workers:
            # For their work, and for the way to them.
            waiting = counter.waiting if name.endswith(":on_workers") else 0.0
            threads[name] = {name: max(counter.worked / counter.workers, waiting)}
    load = max(threads.values(), key=lambda steps: sum(steps.values()))
    slowest = max(load, key=lambda name: load[name])
    pace, took = sum(load.values()), load.pop(slowest)
    return slowest, took, max(sum(steps.values()) for steps in threads.values()), pace


class _Pace(NamedTuple):
    """What sets the pace of a pass.

    Args:
      load: seconds of the slowest part.
      rest: seconds that the pass would take without it.
      slack: seconds of the pass in which nobody worked that was measured.
      wall: seconds of the pass.
      cores: what the process had of the cores; None if it is not known.
    """

    load: float
    rest: float
    slack: float
    wall: float
    cores: CoreUse | None

    @property
    def waits(self) -> bool:
        """Whether the slowest part waits more than it computes."""
        return self.cores is not None and self.cores.seconds < self.load / 2 and self.cores.waits > 0

    @property
    def disturbed(self) -> bool:
        """Whether other programs had the cores, so that nobody knows what threads would do side by side."""
        return self.cores is not None and self.cores.lost > _OFTEN * self.wall

    def times(self, load: float, beside: float = 0.0) -> float:
        """As fast, if the slowest part took `load` seconds and ran beside others, which take turns in Python."""
        computed = 0.0 if self.cores is None else self.cores.seconds
        return self.wall / max(load, beside, computed, 1e-9)

    def at_once(self, count: int, most: int, starts: float, handed: float = 1.0) -> str:
        """What it brings if `most` of its `count` pieces of work wait at once.

        They wait side by side, and compute in turn. Those that come back together queue, so neither hides all of the other:
        the time is the root of the sum of both squares, which is near the longer one where they differ much.

        Args:
          count: pieces of work; 0: very many.
          most: of them at once, each on a thread.
          starts: seconds that each thread costs.
          handed: times as long as now that its work computes then.
        """
        share = -(-count // most) / count if count else 1 / most
        computed = 0.0 if self.cores is None else self.cores.seconds
        turns = computed + (handed - 1) * max(0.0, computed - self.rest)
        if self.disturbed and turns > 2 * self.load * share:
            return _BUSY
        took = starts * most + max(math.hypot(self.load * share, turns), self.rest)
        times = self.wall / (self.slack + took)
        if times < WORTH_IT:
            return "As measured, the gain is small, since other steps take as long."
        return f"As measured, the pass would be {times:.2g} times as fast, if none waits longer then."


def _of_loop(step: Node, pace: _Pace, last: OpCounters) -> tuple[str, str]:
    """What a loop that is the slowest part does with its time, and what a change brings.

    It works on elements, or merely takes many small ones.
    """
    rows, count = step.rows_per_batch, last.rows
    if count and pace.load / count < _QUICK and (rows is None or rows <= SMALL_BATCH):
        each = f"it takes {seconds_text(pace.load / count)} for each of {count:,} elements"
        return f"{each}: larger batches give it many rows at a time", UNTRIED
    most = pace.wall / pace.load if pace.load else 1.0
    here = pace.wall - pace.slack - pace.load  # seconds of the dataset on the thread of the loop
    times = pace.times(pace.wall - here, last.seconds)
    if pace.cores is not None and times > WORTH_IT:
        brings = _BUSY if pace.disturbed else f"As measured, the pass would be {times:.2g} times as fast."
        return "prefetch(2) at the end makes elements in the meantime", brings
    cure = "the dataset waits for it, and a faster pipeline would not help"
    if most > WORTH_IT:
        cure = "a faster pipeline helps little"
    return cure, f"A pipeline that takes no time would make this pass {most:.3g} times as fast."


def _cure(
    step: Node | None, counter: OpCounters, counters: Mapping[Hashable, OpCounters], last: OpCounters, pace: _Pace
) -> tuple[str, str]:
    """What would have the slowest step take less time, by what it does, and what that brings.

    It waits, it computes, or it opens files.
    """
    load, cores = pace.load, pace.cores
    if isinstance(step, MapCalls):
        return _of_map(step, counter, pace)
    if step is not None and step.op == "filter":
        asked = counters.get(id(step.inputs[0]))
        return _of_filter(0 if asked is None else asked.rows, pace)
    if step is not None and step.op == "on_workers" and counter.workers:
        share = counter.worked / counter.workers / load
        if share < 1 / 2:
            cure = 'and the rest is transfer: target_workers="AUTO" keeps cheap work here'
            return f"workers work for {share:.0%} of that, {cure}", _UNKNOWN
        less = f"{1 / (counter.workers + 1):.0%}"
        return f"one more than {counter.workers} workers would take up to {less} of that away", ""
    if isinstance(step, Reader):
        source = counters.get(id(step.input))
        of_files = _of_files(step, source.rows if source is not None else 0, counter, pace)
        if of_files is not None:
            return of_files
    if counter.workers:
        return f"more than {counter.workers} workers would help, if there are cores for them", _UNKNOWN
    if counter.thread == last.thread and last.outside > 0.1 * load and cores is not None:
        times = pace.times(last.seconds, last.outside)
        if times > WORTH_IT:
            brings = _BUSY if pace.disturbed else f"As measured, the pass would be {times:.2g} times as fast."
            return "prefetch after it would let it run beside the loop", brings
    return "the other steps wait for it", ""


def _of_map(step: MapCalls, counter: OpCounters, pace: _Pace) -> tuple[str, str]:
    """What would help a step that calls functions, and what that brings."""
    load, cores = pace.load, pace.cores
    if not of_users(step) and not pace.waits:
        return "Dataset.save and Dataset.load, or cache, keep what it makes for the next passes", UNTRIED
    first = step.maps[0]
    by_element = not first.processes and first.executor is None
    in_threads = counter.workers > 1 and by_element
    if in_threads and cores is not None and load / 2 <= cores.seconds < 1.3 * pace.wall:
        turns = f"its {counter.workers} threads take turns in Python, one at a time"
        return f"{turns}: processes=True lets them compute at the same time", UNTRIED
    if in_threads and pace.waits and cores is not None and cores.seconds > _IDLE * load:
        cure = f"its {counter.workers} threads wait for something, or for their turn in Python"
        return f"{cure}: more of them would help, or processes=True", UNTRIED
    if counter.workers and pace.waits:
        more = 2 * counter.workers
        return f"{more} workers would help, since they wait more than they compute", pace.at_once(0, 2, _CALLER)
    if by_element and first.num_parallel_calls == AUTOTUNE and not (pace.waits or _quick(counter, load)):
        where = f"on {counter.workers} threads" if counter.workers else "in the thread of the loop"
        return f"AUTOTUNE keeps it {where}: processes=True spreads it, if it computes in Python", UNTRIED
    if counter.workers:
        return f"more than {counter.workers} workers would help, if there are cores for them", UNTRIED
    if pace.waits:
        calls = min(MANY_CALLS, max(2, counter.rows))
        cure = f"it waits more than it computes: num_parallel_calls={calls} lets so many calls wait at the same time"
        return cure, pace.at_once(counter.rows, calls, _CALLER)
    if _quick(counter, load):
        each = f"a call takes {seconds_text(load / counter.rows)}, and threads cannot shorten that"
        return f"{each}: a function of whole batches, in a map after batch(n), is called once for n elements", UNTRIED
    spread = "num_parallel_calls= spreads it over threads, with processes=True over processes"
    return f"{spread} if it computes in Python", UNTRIED


def _of_filter(rows: int, pace: _Pace) -> tuple[str, str]:
    """What would help a filter, which asks its predicate about one element after the other, and what that brings."""
    parallel = "a map before it that returns the element and what the predicate says of it"
    if pace.waits:
        calls = min(MANY_CALLS, max(2, rows))
        cure = f"{parallel} waits for {calls} at a time with num_parallel_calls={calls}"
        return f"it waits more than it computes: {cure}", pace.at_once(rows, calls, _CALLER)
    if rows and pace.load / rows < _QUICK:
        each = f"a call takes {seconds_text(pace.load / rows)}"
        cure = 'an expression of pyarrow, such as field("x") > 3, is evaluated for many elements at once'
        return f"{each}: {cure}", UNTRIED
    return f"{parallel} is spread over processes by processes=True, if it computes in Python", UNTRIED


def _quick(counter: OpCounters, load: float) -> bool:
    """Whether a call costs about as much as what is done in it."""
    return bool(counter.rows) and load / counter.rows < _QUICK


def of_users(step: MapCalls) -> bool:
    """Whether all its functions were given by users, who may choose how they are called; readers of images have their own."""
    return not any(str(getattr(one.map_func, "__module__", "")).startswith("distinput.") for one in step.maps)


def _of_files(step: Reader, files: int, counter: OpCounters, pace: _Pace) -> tuple[str, str] | None:
    """What would help a reader of so many files, and what that brings."""
    records = counter.rows
    if pace.waits:
        if files > 1:
            most = min(MANY_READS, files)
            cure = f"it waits for the storage of {files:,} files: num_parallel_reads={most} reads so many at a time"
            if counter.blocks > files:  # larger ones are asked for in other pieces then
                return cure, UNTRIED
            return cure, pace.at_once(files, most, _READER, _HANDED)
        return "it waits for the storage: a copy nearby (cache_remote, cache) or several files are read faster", UNTRIED
    if getattr(step.format, "compression", None):
        more = f"num_parallel_reads={MANY_READS} decompresses several files at a time, and " if files > 1 else ""
        cure = f"its files are compressed as a whole: {more}Parquet, or files without compression, are read faster"
        return cure, UNTRIED
    if files >= _MANY_FILES and records < _FEW_RECORDS * files:
        each = f"{files:,} files have {number_text(records / files)} records each"
        return f"{each}: fewer and larger files (Dataset.write) are opened less often", UNTRIED
    return None
