# SPDX-License-Identifier: Apache-2.0
"""How fast a job of many workers would be, and what would limit it: computed from its plan and from costs measured here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from json import dumps
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute.input.dealing import Placeholders
from distinput.distribute.input.lockstep import AHEAD, BLOCK
from distinput.errors import InvalidArgumentError
from distinput.files.range_requests import PIECE_BYTES
from distinput.names.lazy import dataclass
from distinput.names.words import bytes_text, number_text, seconds_text
from distinput.ops.identity import WithOptions
from distinput.ops.prefetch import Prefetch
from distinput.ops.shard_batches import OwnRows
from distinput.plan.check import at_least
from distinput.plan.node import UNKNOWN, Node, walk
from distinput.plan.options import AutoShardPolicy, Policy
from distinput.reports.markup import Markup, colours, tag
from distinput.reports.plots import PLOT_STYLE, over_counts
from distinput.run.threads import mapped
from distinput.sharding.own_rows import FrameworkLegacyRebatch, FrameworkRebatch, has_batches
from distinput.sharding.planning import shard_plan, worker_tree
from distinput.sharding.policies import decide
from distinput.sharding.shard_plan import ShardPlan, workers_of
from distinput.values.nest import flatten

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_MOST_PLANNED = 256
"""Workers that are planned; of more, so many at even distances stand for all."""

_MOST_STEPS = 1000
"""Steps that are simulated; a longer pass goes on at the pace of the later half of them."""

_STRAGGLES = 10.0
"""How many times as long the input of a slow step takes."""

_AUTOTUNED = 2
"""Elements that are made ahead where AUTOTUNE chooses: it often chooses more."""

_WARM_UP = 0.15
"""The part of the seconds of a measurement that does not count: threads start, and loops are compiled."""

_WAITED = 20
"""Elements that the loop with a step of its own takes; and the most seconds of it."""
_WAITED_SECONDS = 2.0


@dataclass(frozen=True)
class InputCosts:
    """The time that a row costs, on the machine that measured it.

    Args:
      row_seconds: of the clock, for a loop that does nothing: the pace of the slowest part of the pipeline.
      wait_seconds: that a loop waits for a row although its own step takes longer than the input: work that nothing does ahead.
      cpu_seconds: of all threads of the process.
      first_seconds: until the first element is there.
      slowest: the step that the others wait for.
      rows: of a whole pass, where one was made; else None.
      state_bytes: of a saved position of one worker.
      fill_seconds: before the first element, beyond what its rows cost: such as for the buffer of a `shuffle`, whose rows are
        there at the end.

    Costs of files are those of the machine that measured them. Measure where the files are near, and describe the far store
    with `StorageLimits`.
    """

    row_seconds: float
    wait_seconds: float
    cpu_seconds: float
    first_seconds: float = 0.0
    slowest: str = "input"
    rows: int | None = None
    state_bytes: int = 0
    fill_seconds: float = 0.0


@dataclass(frozen=True)
class StorageLimits:
    """What all workers read from together. None: no limit.

    Args:
      bandwidth: bytes a second, of all workers together.
      latency: seconds until the answer to a request begins.
      requests: that it answers in a second, of all workers together.
      at_once: requests that a worker has under way.
      request_bytes: of one request.

    Raises:
      InvalidArgumentError: a number that is not above 0 (a latency may be 0).
    """

    bandwidth: float | None = None
    latency: float = 0.0
    requests: float | None = None
    at_once: int = 4
    request_bytes: int = PIECE_BYTES

    def __post_init__(self) -> None:
        _check_positive("StorageLimits", self, zero=("latency",))


@dataclass(frozen=True)
class Machines:
    """What runs the job.

    Args:
      cores: of each worker; None: as many as the machine that measured the costs can use.
      input_workers: that make the input of all workers together (`on_workers`); 0: each worker makes its own.
      slow: the part of the steps of workers whose input takes ten times as long, from 0 to 1.
      kill_every: seconds between two failures of the job; None: it never fails.
      restart: seconds from a failure until training goes on.
      checkpoint_every: seconds between two checkpoints. A failure repeats half of that, on average.

    Raises:
      InvalidArgumentError: a number that is not above 0 (0 is allowed for `input_workers`, `slow` and `restart`), or `slow`
        above 1.
    """

    cores: float | None = None
    input_workers: int = 0
    slow: float = 0.0
    kill_every: float | None = None
    restart: float = 60.0
    checkpoint_every: float = 600.0

    def __post_init__(self) -> None:
        _check_positive("Machines", self, zero=("input_workers", "slow", "restart"))
        if self.slow > 1:
            raise InvalidArgumentError(f"Machines: slow is a part, from 0 to 1, got {self.slow}")


def _check_positive(who: str, given: object, zero: Sequence[str]) -> None:
    for one in fields(given):  # type: ignore[arg-type]
        value = getattr(given, one.name)
        if value is None:
            continue
        if not (value >= 0 if one.name in zero else value > 0) or value == float("inf"):
            least = "at least 0" if one.name in zero else "above 0"
            raise InvalidArgumentError(f"{who}: {one.name} must be {least} and finite, got {value}")


@dataclass(frozen=True)
class Simulation:
    """What a pass of a job would take.

    Args:
      workers: W.
      replicas: of each worker.
      policy: by which the data are divided.
      steps: of the pass.
      seconds: of the pass, with what failures cost.
      steps_per_second: while it runs.
      first_seconds: until the first step begins.
      limit: what limits the pace: the one of `saved` that would bring the most.
      saved: what each limit costs: the seconds of the pass that would be saved without it.
      requests_per_second: to the storage, of all workers.
      bytes_per_second: from the storage, of all workers; None where the bytes of files are not known.
      bytes_twice: that are read by more than one worker.
      skew: the rows of the worker with the most, as a multiple of the mean.
      state_bytes: of a checkpoint of the positions of all workers.
      lost_seconds: to failures.
      planned: workers that were planned one by one; fewer than W where so many stand for all.
    """

    workers: int
    replicas: int
    policy: str
    steps: int
    seconds: float
    steps_per_second: float
    first_seconds: float
    limit: str
    saved: Mapping[str, float] = field(repr=False)
    requests_per_second: float
    bytes_per_second: float | None
    bytes_twice: int | None
    skew: float
    state_bytes: int
    lost_seconds: float
    planned: int

    @property
    def without_limit(self) -> float:
        """Seconds of the pass if what limits it were gone."""
        return max(0.0, self.seconds - self.saved[self.limit])

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        took = f"{self.steps:,} steps in {seconds_text(self.seconds)}, {number_text(self.steps_per_second)} a second"
        head = f"{workers_of(self.workers, self.replicas)}, policy {self.policy}: {took}"
        lines = [head, f"  limit:   {self.limit}"]
        lines += [
            f"           without it: {name}, {seconds_text(saved)} less"
            for name, saved in sorted(self.saved.items(), key=lambda item: -item[1])
            if saved > 0.001 * self.seconds
        ]
        if self.bytes_per_second is not None:
            read = f"{bytes_text(self.bytes_per_second)} and {number_text(self.requests_per_second)} requests a second"
            twice = f"; {bytes_text(self.bytes_twice)} are read more than once" if self.bytes_twice else ""
            lines.append(f"  storage: {read}{twice}")
        lines.append(f"  workers: the one with the most rows has {self.skew:.2f} times the mean")
        positions = f"positions of all workers take {bytes_text(self.state_bytes)}"
        lines.append(f"  first step after {seconds_text(self.first_seconds)}; {positions}")
        if self.lost_seconds:
            lines.append(f"  failures cost {seconds_text(self.lost_seconds)} of it")
        if self.planned < self.workers:
            lines.append(f"  {self.planned:,} workers at even distances were planned, and stand for all")
        return "\n".join(lines)


def plot_of(simulations: Sequence[Simulation]) -> str:
    """A picture of the time of a pass over the number of workers, and of the time without what limits it.

    Args:
      simulations: of one job, each with another number of workers.

    Returns:
      SVG, a file of its own: light and dark, without scripts.

    >>> import distinput as di
    >>> costs = InputCosts(row_seconds=1e-3, wait_seconds=0, cpu_seconds=0)
    >>> simulations = simulate(di.data.Dataset.range(8000).batch(80), (1, 2, 4), step_seconds=0.02, costs=costs)
    >>> plot_of(simulations).count("<circle")
    3
    """
    points = [(told.workers, told.seconds, told.without_limit, told.limit) for told in simulations]
    plot = over_counts(
        points, ("a pass by workers, and what limits it", "without that limit"), "A pass, by the number of workers"
    )
    style = tag("style", Markup("\n" + colours(".di-plot") + PLOT_STYLE))
    return plot.replace("</title>", f"</title>{style}", 1)


def measured_costs(dataset: Dataset[Any], seconds: float = 3.0, *, ahead: bool = True, beside: int = 0) -> InputCosts:
    """Measure what a row costs here, in two passes of a few seconds.

    Args:
      dataset: of global batches.
      ahead: whether the next batch is made while a step runs, as strategies do that cut batches for several replicas.
      seconds: after which the first pass is broken off; the second takes two at most.
      beside: passes that run beside one more, for the CPU time of a row: as many as the job keeps busy besides a worker. A core
        that is one of two hyperthreads is slower while the other is busy, and so may be the clock and the caches.

    Raises:
      InvalidArgumentError: the dataset has no elements, or `beside` is negative.

    >>> import distinput as di
    >>> told = measured_costs(di.data.Dataset.range(1000).batch(10))
    >>> told.rows, told.row_seconds > 0
    (1000, True)
    """
    mine = dataset.prefetch(1) if ahead else dataset
    found = _measured(mine, seconds)
    if at_least("measured_costs", "beside", beside, 0):
        found = replace(found, cpu_seconds=_cpu_seconds(mine, seconds, beside + 1))
    return found


def _cpu_seconds(mine: Dataset[Any], seconds: float, passes: int) -> float:
    """CPU time of a row while so many passes run at once."""
    batches, begin, until = has_batches(mine.node), process_time(), perf_counter() + seconds

    def rows(_: int) -> int:
        count = 0
        with iter(mine) as iterator:
            for element in iterator:
                count += len(flatten(element)[0]) if batches else 1
                if perf_counter() > until:
                    break
        return count

    made = sum(mapped(rows, range(passes), passes))
    return (process_time() - begin) / made


def _measured(mine: Dataset[Any], seconds: float) -> InputCosts:
    batches = has_batches(mine.node)
    elements = rows = first_rows = late_rows = 0
    first = late = 0.0  # of the clock, at the first element, and at the one after which the pace is measured
    cpu, begin = process_time(), perf_counter()
    with iter(mine) as iterator:
        for element in iterator:
            now = perf_counter() - begin
            rows += len(flatten(element)[0]) if batches else 1
            if not elements:
                first, first_rows = now, rows
            if late_rows == 0 or (late == first and now - first > _WARM_UP * seconds):
                late, late_rows = now, rows
            elements += 1
            if now - first > seconds:  # filling a buffer may take longer
                break
        else:
            now = perf_counter() - begin
        ended = now - first <= seconds
        slowest = iterator.stats().slowest
    cpu = process_time() - cpu
    if not rows:
        raise InvalidArgumentError("simulate: the dataset has no rows, so that nothing can be measured")
    pace = (now - late) / (rows - late_rows) if rows > late_rows else now / rows
    waits, again, state = _waits(mine, pace * rows / elements)
    if ended and any(step.keeps for step in walk(mine.node)):  # the second pass was of elements that the first one kept
        waits, again = 0.0 if isinstance(mine.node, Prefetch) else pace * rows / elements, first
    # The second pass does not start threads and compile loops for the first time.
    begins = min(first, again)
    if ended and begins > 2 * pace * first_rows:
        pace = (now - first + begins) / rows  # the last rows came out of a buffer, at no cost
    fill = max(0.0, begins - pace * first_rows)
    waits = min(pace, waits * elements / rows)
    return InputCosts(pace, waits, cpu / rows, first, slowest, rows if ended else None, state, fill)


def _waits(dataset: Dataset[Any], pace: float) -> tuple[float, float, int]:
    """Seconds that `next` takes where a step takes twice as long as an element, and the first time; bytes of a state."""
    times: list[float] = []
    begun = perf_counter()
    with iter(dataset) as iterator:
        for _ in range(_WAITED):
            begin = perf_counter()
            if next(iterator, None) is None or begin - begun > sum(times[:1]) + _WAITED_SECONDS:
                break
            times.append(perf_counter() - begin)
            sleep(min(2 * pace, _WAITED_SECONDS / _WAITED))
        state = len(dumps(iterator.state()))
    later = times[len(times) // 4 :]
    return (float(np.median(later)) if later else pace), times[0] if times else 0.0, state


def simulate(
    dataset: Dataset[Any],
    workers: Sequence[int],
    replicas: int = 1,
    *,
    step_seconds: float,
    storage: StorageLimits | None = None,
    machines: Machines | None = None,
    policy: AutoShardPolicy | Policy | None = None,
    costs: InputCosts | None = None,
    rows: int | None = None,
    seconds: float = 3.0,
) -> list[Simulation]:
    """Compute how fast a job would be with several numbers of workers, and what would limit it.

    The plan is that of the job: the rows, bytes and parts of files of each worker are those of `shard_plan`. The cost of a row
    is measured here, by iterating the dataset for a few seconds. Workers take steps together: a step begins when the slowest
    of them has its input. Inputs are drawn as jobs draw them: where only all workers together can tell the end, such as with a
    generator, each draws several at once. Where each worker makes all batches and keeps its own rows, it makes all rows.

    Args:
      dataset: of global batches.
      workers: several W, each at least 1.
      replicas: of each worker.
      step_seconds: that a step takes on the devices, input aside.
      storage: what files are read from; None: what was measured is all that reading costs.
      machines: the workers, and what befalls them.
      policy: another one than that of the options.
      costs: of a row of what a worker runs, measured before by `measured_costs`.
      rows: of a pass, where neither the plan nor a whole measured pass tells.
      seconds: after which a measured pass is broken off.

    Returns:
      One for each W.

    Raises:
      InvalidArgumentError: a number out of range; a dataset without end or rows; or it is not known how many rows it has.

    >>> import distinput as di
    >>> batches = di.data.Dataset.range(8000).batch(80)
    >>> costs = InputCosts(row_seconds=1e-3, wait_seconds=0, cpu_seconds=0)  # 80 ms for a batch, on one worker
    >>> [told.limit for told in simulate(batches, (1, 8), step_seconds=0.02, costs=costs)]
    ['input', 'trainer']

    Source: the recurrence of a pipeline with finite buffers, step by step for all workers at once: input k is in the buffer
    once input k - 1 is, it was made, and the loop has taken input k - buffer; step k begins when all workers have drawn what
    is drawn before it, and step k - 1 is over.
    """
    at_least("simulate", "replicas", replicas, 1)
    for count in workers:
        at_least("simulate", "workers", count, 1)
    if rows is not None and not 1 <= rows < float("inf"):
        raise InvalidArgumentError(f"simulate: rows must be a number from 1 on, got {rows}")
    if not 0 <= step_seconds < float("inf"):
        raise InvalidArgumentError(f"simulate: step_seconds must be a time from 0 on, got {step_seconds}")
    simulations = []
    known: dict[tuple[bool, bool], InputCosts] = {}  # by whether workers have their own rows, and batches made ahead
    for count in workers:
        plan = shard_plan(dataset.node, count, replicas, policy)
        if plan.workers[0].steps == -1:
            raise InvalidArgumentError(
                "simulate: the dataset has no end; simulate one pass: leave out repeat(), or say repeat(n)"
            )
        feed = _feed_of(dataset.node, plan, policy)
        kind = feed.alone, isinstance(feed.tree, Prefetch)
        own = costs or known.get(kind)
        if own is None:
            lone = Dataset(worker_tree(dataset.node, 1, 1, 0, decide(dataset.node, 1, policy)))
            mine = Dataset(feed.tree) if feed.alone else lone.prefetch(1) if kind[1] else lone
            own = known[kind] = _measured(mine, seconds)
        total = own.rows if rows is None else rows
        if costs is None and feed.divided and not feed.whole and _makes_all(feed.tree, plan):
            own = _measured(Dataset(feed.tree), seconds)
        job = _job_of(plan, dataset.node, total, step_seconds, feed)
        simulations.append(_simulated(plan, _Time(job, own, storage or StorageLimits(), machines or Machines())))
    return simulations


def _makes_all(mine: Node, plan: ShardPlan) -> bool:
    """Whether a worker makes what others deliver as well, so that its rows cost more than their part of the whole."""
    if plan.reads == "memory":
        return plan.num_workers > 1 and not _has_own_rows(mine)
    return plan.reads == "whole files"


def _has_own_rows(tree: Node) -> bool:
    return any(isinstance(step, OwnRows) for step in walk(tree))


def _simulated(plan: ShardPlan, time: "_Time") -> Simulation:
    job, costs, storage = time.job, time.costs, time.storage
    seconds, pace, first = time.passes()
    failure_seconds = _lost(seconds, time.machines)
    savings = {name: seconds - other for name, other in time.without()}
    if failure_seconds:
        savings["failures"] = failure_seconds
    return Simulation(
        workers=plan.num_workers,
        replicas=plan.replicas_per_worker,
        policy=plan.policy,
        steps=job.steps,
        seconds=seconds + failure_seconds,
        steps_per_second=1 / pace if pace else float("inf"),
        first_seconds=max(costs.first_seconds + storage.latency, first),
        limit=max(savings, key=lambda name: savings[name]),
        saved=savings,
        requests_per_second=float(job.requests(storage).sum()) / seconds if seconds else 0.0,
        bytes_per_second=None if job.bytes is None else float(job.bytes.sum()) / seconds if seconds else 0.0,
        bytes_twice=job.twice,
        skew=float(job.rows.max() / job.rows.mean()) if job.rows.any() else 1.0,
        state_bytes=costs.state_bytes * plan.num_workers,
        lost_seconds=failure_seconds,
        planned=job.planned,
    )


def _lost(seconds: float, machines: Machines) -> float:
    """What failures cost: each of them a restart, and half of what lies between two checkpoints again."""
    if machines.kill_every is None:
        return 0.0
    each = machines.restart + machines.checkpoint_every / 2
    if each >= machines.kill_every:
        raise InvalidArgumentError(
            f"simulate: a failure costs {seconds_text(each)} on average, and one comes every "
            f"{seconds_text(machines.kill_every)}: the job never ends; save checkpoints more often, or restart faster"
        )
    return seconds * each / (machines.kill_every - each)


# ----------------------------------------------------------------------------
# What each worker has to do, by the plan.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Feed:
    """How the loop of a worker gets its steps: what `distribute/input` does, which makes trees and threads of its own.

    Args:
      tree: what the worker iterates.
      alone: whether it reads its own rows of each global batch alone.
      divided: whether others read other rows than it; if not, each delivers all that it reads.
      whole: whether it makes all global batches, as the others do, and cuts its own rows out of each.
      room: steps whose input may wait before they begin.
      block: steps that come of one element of the dataset, and are ready together.
      below: elements of the dataset that may wait to be cut.
      agrees: whether only all workers together can tell the end. Then a loop draws the input of several steps at once, before
        the first of them begins.
    """

    tree: Node
    alone: bool
    divided: bool
    whole: bool
    room: int
    block: int
    below: int
    agrees: bool

    def draws(self, steps: int) -> Iterator[int]:
        """For each step, the inputs that the loop draws before it, as `Lockstep` does."""
        drawn = several = 0
        for step in range(steps):
            before = drawn
            while drawn - step <= (AHEAD if self.agrees else 0):
                several = min(several + 1, BLOCK) if self.agrees else 1
                drawn += several
            yield drawn - before


def _feed_of(node: Node, plan: ShardPlan, policy: AutoShardPolicy | Policy | None) -> _Feed:
    workers, replicas = plan.num_workers, plan.replicas_per_worker
    decision = decide(node, workers, policy)
    tree, applied = worker_tree(node, workers, replicas, 0, decision), decision.applied
    if applied.name == AutoShardPolicy.DATA.name:
        alone = workers > 1 and _has_own_rows(tree)
        if not alone or not isinstance(tree, Prefetch):
            tree = Prefetch(tree if alone else node, 1)
        size, _ = _ahead(tree)
        room = max(1, size // replicas) if alone else size
        agrees = workers > 1 and not alone and node.count_elements() == UNKNOWN
        return _Feed(tree, alone, True, workers > 1 and not alone, room, 1, 0, agrees)
    size, cut = _ahead(tree)
    block, below = 1, 0
    if isinstance(cut, FrameworkRebatch | FrameworkLegacyRebatch):
        block, (below, _) = workers, _ahead(cut.input)
    steps = {plan.workers[int(worker)].steps for worker in _planned(plan)}
    unknown = None in steps or (len(steps) > 1 and Placeholders(tree.spec).watches)
    room = max(1, size // replicas)
    return _Feed(tree, False, applied.divides, False, room, block, below, workers > 1 and unknown)


def _ahead(node: Node) -> tuple[int, Node]:
    """Elements that are made ahead, and what makes them. Of several prefetches in a row, only the largest is left."""
    size = 0
    while isinstance(node, Prefetch | WithOptions):
        if isinstance(node, Prefetch):
            size = max(size, node.buffer_size if node.buffer_size and node.buffer_size > 0 else _AUTOTUNED)
        node = node.input
    return size, node


@dataclass(frozen=True)
class _Job:
    """A pass of a job.

    Args:
      steps: that all workers take.
      rows, parts: of each worker.
      made: rows that each makes: those of all workers, where it cuts its own out of global batches.
      bytes: that each reads; None if unknown.
      twice: bytes that several read.
      step_seconds: of a step on the devices.
      feed: how the loop of a worker gets its steps.
      planned: workers that were planned one by one.
    """

    steps: int
    rows: Floats
    made: Floats
    parts: Floats
    bytes: Floats | None
    twice: int | None
    step_seconds: float
    feed: _Feed
    planned: int

    def requests(self, storage: StorageLimits) -> Floats:
        """Requests of each worker in a pass."""
        return self.parts if self.bytes is None else np.maximum(self.parts, self.bytes / storage.request_bytes)


def _planned(plan: ShardPlan) -> Ints:
    """The workers that are planned one by one."""
    count = plan.num_workers
    return np.unique(np.linspace(0, count - 1, min(count, _MOST_PLANNED)).astype(np.int64))


def _job_of(plan: ShardPlan, node: Node, total: int | None, step_seconds: float, feed: _Feed) -> _Job:
    count = plan.num_workers
    chosen = _planned(plan)
    planned = [plan.workers[int(worker)] for worker in chosen]
    stands_for = np.searchsorted((chosen[1:] + chosen[:-1] + 1) // 2, np.arange(count), side="right")  # the nearest one
    sizes = [worker.nbytes for worker in planned if worker.nbytes is not None]
    of_files = len(sizes) == len(planned) and any(worker.parts for worker in planned)
    bytes_read = np.array(sizes, np.float64)[stands_for] if of_files else None
    counts = [worker.rows for worker in planned if worker.rows is not None]
    if len(counts) == len(planned):
        own_rows = np.array(counts, np.float64)[stands_for]
    elif total is None:
        raise InvalidArgumentError(
            "simulate: it is not known how many rows the dataset has: say rows=, count its files once (`distinput index`), or "
            "give seconds= enough for a whole pass"
        )
    else:
        weights = np.ones(count) if bytes_read is None or not bytes_read.any() else bytes_read
        own_rows = (total if feed.divided else total * count) * weights / weights.sum()
    steps = [worker.steps for worker in planned if worker.steps is not None]
    batch = node.rows_per_batch or 1
    if len(steps) == len(planned):
        most = max(steps)
    elif feed.whole and node.cardinality > 0:  # a step of all is one element, whatever rows a function gives it
        most = node.cardinality
    else:
        most = -(-int(own_rows.max()) * count // batch)
    twice = None if bytes_read is None else 0
    if bytes_read is not None and plan.reads == "whole files":
        twice = int(bytes_read.sum() - bytes_read.mean())
    parts = np.array([len(worker.parts) for worker in planned], np.float64)[stands_for]
    made = np.full(count, own_rows.sum()) if feed.whole else own_rows
    return _Job(max(1, most), own_rows, made, parts, bytes_read, twice, step_seconds, feed, len(planned))


# ----------------------------------------------------------------------------
# The time of a pass, step by step.
# ----------------------------------------------------------------------------


class _Line:
    """When the inputs of all workers are there: two threads with buffers, of which one cuts what the other makes.

    A thread that finds no room waits with an element in its hands.

    Args:
      feed: how loops get their steps.
      steps: of the pass.
      begin: when each worker begins to make the first element.
    """

    def __init__(self, feed: _Feed, steps: int, begin: Floats) -> None:
        self._feed, self._steps = feed, steps
        self._whole = begin  # when the latest element was made
        self._ready = begin  # when its steps were put into the buffer
        self._cuts = np.zeros((max(1, feed.below), len(begin)))  # when the latest elements were taken to be cut
        self._taken = np.zeros((feed.room, len(begin)))  # when loops took the latest inputs

    def takes(self, number: int, loop: Floats, seconds: Floats) -> Floats:
        """When the loops have the next input.

        Args:
          number: of the input.
          loop: when each loop asks for it.
          seconds: that each worker needs to make it.
        """
        feed, last = self._feed, self._taken[number % self._feed.room]
        if number % feed.block == 0:
            whole = (self._whole if feed.below else self._ready) + seconds * min(feed.block, self._steps - number)
            if feed.below:
                cut = self._cuts[number // feed.block % feed.below]
                self._whole = np.maximum(whole, cut)
                whole = cut[:] = np.maximum(self._whole, self._ready)
            self._ready = np.maximum(whole, last)
        takes: Floats = np.maximum(loop, self._ready)
        last[:] = takes
        return takes


@dataclass(frozen=True)
class _Time:
    """The time of a pass; also without one of its limits.

    Args:
      job: what each worker has to do.
      costs: of a row.
      storage: what files are read from.
      machines: the workers.
    """

    job: _Job
    costs: InputCosts
    storage: StorageLimits
    machines: Machines

    def passes(self) -> tuple[float, float, float]:
        """Seconds of a pass, of a step of its later half, and until the first step begins."""
        job, slow = self.job, self.machines.slow
        count = min(job.steps, _MOST_STEPS)
        inline, ahead, fill = self._of_a_step()
        random, every = np.random.default_rng(0), len(ahead)
        line = _Line(job.feed, job.steps, fill - inline)
        # The last ones are in the buffer.
        costly = job.steps - np.divide(fill, ahead, out=np.zeros(every), where=ahead > 0)
        drawn, first, over, halves = 0, 0.0, 0.0, 0.0
        for step, several in enumerate(job.feed.draws(count)):
            loop = np.full(every, over)
            for number in range(drawn, min(drawn + several, job.steps)):
                times = np.clip(costly - number, 0.0, 1.0) if fill else np.ones(every)
                if slow:
                    times *= np.where(random.random(every) < slow, _STRAGGLES, 1.0)
                loop = line.takes(number, loop, ahead * times) + inline * times
            drawn += several
            start = float(loop.max())
            over = start + job.step_seconds
            if step == 0:
                first = start
            if step == count // 2 - 1:
                halves = over
        pace = (over - halves) / max(1, count - count // 2)
        return over + (job.steps - count) * pace, pace, first

    def _of_a_step(self) -> tuple[Floats, Floats, float]:
        """Seconds of each worker for the input of a step: those that the loop waits for anyway, and those that run ahead.

        And those before the first one.
        """
        job, costs, machines = self.job, self.costs, self.machines
        rows = job.made / job.steps
        pace, waits, fill = costs.row_seconds, costs.wait_seconds, costs.fill_seconds
        if machines.cores is not None:
            slower = max(1.0, costs.cpu_seconds / machines.cores / pace) if pace else 1.0
            pace, waits, fill = pace * slower, waits * slower, fill * slower
        if machines.input_workers:
            made = np.full(len(rows), pace * job.rows.sum() / job.steps / machines.input_workers)
            return np.zeros(len(rows)), np.maximum(made, self._reading()), fill
        # A loop that does nothing pays for the slowest part. So that is what the parts that run ahead take at most.
        return waits * rows, np.maximum(pace * rows, self._reading()), fill

    def _reading(self) -> Floats:
        """Seconds that the storage needs for the input of a step of each worker."""
        job, storage = self.job, self.storage
        if job.bytes is None:
            return np.zeros(len(job.rows))
        requests = job.requests(storage) / job.steps
        times = [requests * storage.latency / storage.at_once]
        if storage.bandwidth is not None:
            times.append(np.full(len(requests), job.bytes.sum() / job.steps / storage.bandwidth))
        if storage.requests is not None:
            times.append(np.full(len(requests), requests.sum() / storage.requests))
        return np.asarray(np.max(times, axis=0), np.float64)

    def without(self) -> Iterator[tuple[str, float]]:
        """The seconds of the pass without each of its limits."""
        job, storage, machines = self.job, self.storage, self.machines
        free = replace(self.costs, row_seconds=0.0, wait_seconds=0.0, fill_seconds=0.0)
        even = np.full(len(job.rows), job.rows.mean())
        others = {
            "trainer": replace(self, job=replace(job, step_seconds=0.0)),
            self.costs.slowest: replace(self, costs=free),
            "uneven workers": replace(self, job=replace(job, rows=even, made=np.full(len(even), job.made.mean()))),
            "cores": replace(self, machines=replace(machines, cores=None)),
            "slow workers": replace(self, machines=replace(machines, slow=0.0)),
            "storage bandwidth": replace(self, storage=replace(storage, bandwidth=None)),
            "storage requests": replace(self, storage=replace(storage, requests=None)),
            "storage latency": replace(self, storage=replace(storage, latency=0.0)),
        }
        for name, time in others.items():
            yield name, time.passes()[0]
