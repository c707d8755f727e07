# SPDX-License-Identifier: Apache-2.0
"""`on_workers`: what stands below runs on input workers, in pieces; elements, their order and the states are as without it."""

import math
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import field, replace
from functools import cached_property, partial
from queue import SimpleQueue
from typing import Any, ClassVar, TypeAlias

from distinput.cluster.input_service import is_service, opened
from distinput.columns.block import MOST_BYTES, Block, Failure, rows_within
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.files.source import stamp_of
from distinput.functions.workers import has_processes
from distinput.names.lazy import dataclass
from distinput.names.words import seconds_text
from distinput.ops.filter import Filter, Where
from distinput.ops.map import FusedMap
from distinput.ops.map_rows import FusedMapRows
from distinput.ops.piece_lanes import (
    AHEAD,
    PIECE_SECONDS,
    ProcessLanes,
    ServiceLanes,
    Sharing,
    ThreadLanes,
    steps_for_service,
    word_of_steps,
)
from distinput.ops.pieces import PieceTask, Result, Told, WorkPiece, chain_below, files_of, in_place_of, numbered
from distinput.ops.reader import Reader
from distinput.ops.repeat import Repeat
from distinput.plan.check import at_least, normalized
from distinput.plan.families import Fused, Neighbours, OneForOne, SameElements, Transparent
from distinput.plan.fingerprint import layout
from distinput.plan.node import UNKNOWN, Needs, Node, once, walk
from distinput.plan.reach import OF_MAP, warn_of_copied_generators
from distinput.run.processes import Processes, Workforce
from distinput.run.run import OpCounters, Run, UnderWay
from distinput.run.segments import Closed
from distinput.streaming.buffered import ThreadTrial, opened_ahead

_GROWTH, _MOST_ROWS = 4, 4096
"""How much larger than the last piece one may be, and the most rows of its input."""

_SHARED_ROWS = 32
"""Rows of a piece that other jobs make as well: a matter of the rows alone, and no time that anybody measured."""

_BYTES_UNDER_WAY = 256 << 20
"""What pieces under way and their results may hold, here and at the workers."""

_TRIAL_PIECES, _LOSS = 16, 1.25
"""After so many pieces it is known whether their way costs so many times their work; then they stay here."""

_Lanes: TypeAlias = ThreadLanes | ProcessLanes | ServiceLanes

_SERVICES = (
    "'threads:N' or 'processes:N' with N at least 1, the address of a Dask scheduler as 'tcp://host:8786', 'ray' or "
    "'ray://host:10001', a distributed.Client or an executor"
)


# ----------------------------------------------------------------------------
# The op: where a tree is divided, so that its pieces can run elsewhere.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OnWorkers(Transparent):
    """Run the steps before this one on input workers, and deliver their elements in exact order.

    The steps that call functions, and depend on single elements alone (`map`, `map_rows`, `filter`, `parse_example`), run at
    the workers. Each worker gets pieces: elements of the input of these steps, as columns. What depends on more than one
    element (`batch`, `shuffle`, `zip`) stays here, and so does what a shuffle fetches by position. Records of local files that
    can be fetched by number are read at workers that have the same files, others here; `explain` says which, and which steps go
    to workers. What a killed process had to do is done again by another one. Where nobody knows what a function returns, the
    first element of a pass is made here, and decides what the others must look like.

    Shapes and order: unchanged. State: that of the input: a state that was saved with this step restores without it, and the
    other way round.

    Args:
      service: "threads:4" for threads of this process, "processes:4" for worker processes of this machine. For a running
        cluster, the address of a Dask scheduler ("tcp://host:8786") or of Ray ("ray://host:10001"; "ray" for the one of this
        program), a `distributed.Client`, or a `concurrent.futures.Executor`.
      max_outstanding_requests: how many pieces may be under way or wait to be used; None: four for each worker. Never more
        than hold 256 MiB with their results.
      shared_bytes: of the last results, that other jobs get which send the same pieces to the same Dask cluster or executor:
        those with the same pipeline, at the same place; at Ray to those of the same program. 0: none.
      target_workers: "ANY": all pieces go to workers. "AUTO": those stay here whose way to a worker and back would cost this
        program more than their work, as measured; not where results are shared.

    Raises:
      InvalidArgumentError: `service` names no workers, `max_outstanding_requests` is less than 1, `shared_bytes` is negative
        or given with workers that no other job reaches, or `target_workers` is neither "ANY" nor "AUTO".
      TypeError: `service` is nothing of these, or at iteration, a function cannot be sent to a process.
      EngineMissing: at iteration, the package of the cluster is not installed.
      FailedPreconditionError: at iteration, a worker of a cluster has another version of the code.
      UnavailableError: at iteration, there is no cluster at the address, or workers end each time that they have the same
        work.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).map(lambda x: x * x).batch(2)
    >>> [batch.tolist() for batch in ds.on_workers("threads:2")]
    [[0, 1], [4, 9], [16, 25]]

    Source: the idea of `tf.data.experimental.service`, which gives up order and state.
    """

    by_element: ClassVar[bool] = True
    indifferent: ClassVar[frozenset[str]] = frozenset(
        {"service", "max_outstanding_requests", "shared_bytes", "target_workers"}
    )
    service: Any
    max_outstanding_requests: int | None = None
    shared_bytes: int = 0
    target_workers: str = "ANY"

    def __post_init__(self) -> None:
        _ = self.workers
        normalized(self, "shared_bytes", at_least("on_workers", "shared_bytes", self.shared_bytes, 0))
        if self.shared_bytes and self.workers[0] != "service":
            kind, count = self.workers
            pool = "Thread" if kind == "threads" else "Process"
            raise InvalidArgumentError(
                f"on_workers: jobs share what is made at workers that all of them reach, and {self.service!r} has workers for "
                f"this dataset alone; give all jobs one `concurrent.futures.{pool}PoolExecutor({count})`, or a Dask cluster "
                "where they are several programs; or leave out shared_bytes, or cross_trainer_cache"
            )
        if self.target_workers not in ("ANY", "AUTO"):
            raise InvalidArgumentError(
                f"on_workers: target_workers must be 'AUTO' or 'ANY', got {self.target_workers!r}"
            )
        if self.max_outstanding_requests is not None:
            most = at_least("on_workers", "max_outstanding_requests", self.max_outstanding_requests, 1)
            normalized(self, "max_outstanding_requests", most)

    def added(self) -> Node:
        kind = self.workers[0]
        if kind == "processes" or (
            kind == "service" and (isinstance(self.service, str) or has_processes(self.service))
        ):
            sent = [argument for step in _chain(self.input) for argument in step.arguments().values()]
            warn_of_copied_generators(self, sent, OF_MAP)
        return self

    @cached_property
    def workers(self) -> tuple[str, int]:
        """The kind of workers, and how many; 0 where a service tells it."""
        if is_service(self.service):
            return "service", 0
        if not isinstance(self.service, str):
            raise TypeError(f"on_workers: service must be {_SERVICES}, got {self.service!r}")
        kind, _, count = self.service.partition(":")
        if kind not in ("threads", "processes") or not count.isascii() or not count.isdigit() or int(count) < 1:
            raise InvalidArgumentError(f"on_workers: service must be {_SERVICES}, got {self.service!r}")
        return kind, int(count)

    @property
    def notes(self) -> tuple[str, ...]:
        found = [words for step in walk(self.divided) if isinstance(step, _Divided | _Served) for words in step.served]
        if not found:
            return ("nothing goes to workers: no step below calls a function on single elements",)
        divided = [step for step in walk(self.divided) if isinstance(step, _Divided)]
        more = [words for step in divided for words in (step.reading, step.chosen) if words]
        return "at workers: " + ", ".join(found), *more

    def stream(self, state: State, run: Run) -> Stream:
        if run.run_ahead is not None or run.asked.sampling:  # nothing may be made ahead
            return self.input.open(state, run)
        run.counters.update({id(part): OpCounters() for part in walk(self.divided) if isinstance(part, _Divided)})
        run.counters.update({id(copy): run.counter(step) for copy, step in self._copies})
        if not isinstance(self.divided, _Divided):
            return self.divided.open(state, run)
        run.counters[id(self.divided)] = run.counter(self)
        return self.divided.stream(state, run)  # which this step counts

    @cached_property
    def divided(self) -> Node:
        """The input with each chain of steps that can be divided as one step, which has the same elements and states."""
        return self._within(self.input)

    _copies = once(list[tuple[Node, Node]])
    """The steps that stand above divided ones, and what they are copies of, whose counters they have."""

    def _within(self, node: Node) -> Node:
        chain = _chain(node)
        base = chain[-1].inputs[0] if chain else node
        # A shuffle of what can be fetched by position fetches it, and its states are others than those of a buffer.
        fetches = base.shuffles and all(source.random_access for source in base.inputs)
        if isinstance(base, OnWorkers):  # what stands below has other workers
            copy: Node = base
        elif isinstance(base, _Served):
            copy = base.followed_by(self, len(base.maps))
            self._copies.append((copy, base))
        else:
            inputs = tuple([source if fetches else self._within(source) for source in base.inputs])
            changed = any(new is not old for new, old in zip(inputs, base.inputs, strict=True))
            copy = self._copied(base, inputs) if changed else base
        if not chain:
            return copy
        made = copy
        for step in reversed(chain):
            made = step if copy is base else self._copied(step, (made,))
        most, auto = self.max_outstanding_requests, self.target_workers == "AUTO"
        return _Divided(made, len(chain), self.service, self.workers, most, self.shared_bytes, auto, origin=self.origin)

    def _copied(self, step: Node, inputs: tuple[Node, ...]) -> Node:
        copy = step.with_inputs(inputs).same_as(step)
        self._copies.append((copy, step))
        return copy


def _chain(node: Node) -> list[Node]:
    """The steps from a node down that can be divided, the node first; none if no function is called by them."""
    found: list[Node] = []
    while _is_divisible(node):
        found.append(node)
        node = node.inputs[0]
    while found and found[-1].transparent:  # states of it are not marks
        found.pop()
    return found if any(not step.view_only and not step.transparent for step in found) else []


def _is_divisible(node: Node) -> bool:
    """Whether a step looks at single elements alone, and its states are marks in its input."""
    if len(node.inputs) != 1 or node.draws or node.keeps or isinstance(node, _Served):
        return False
    maps = getattr(node, "maps", (node,))
    if any(getattr(step, "processes", False) or getattr(step, "executor", None) is not None for step in maps):
        return False  # it has workers of its own
    if node.transparent:
        return node.own_options is None and not isinstance(node, OnWorkers)
    if not isinstance(node, OneForOne | Filter | Where) or not node.tolerant:
        return False
    return node.start(0) == {"input": node.inputs[0].start(0), "skip": 0}


@dataclass(frozen=True, eq=False)
class OncePerWorker(SameElements):
    """The elements as many times as a service has workers when a pass begins, one time after the other; at least once.

    Shapes and order: unchanged; a shuffle below it makes a new order each time. State: that of `repeat`, and how many `times`;
    0 before the first element, when nobody has asked the service yet.

    Args:
      service: as for `on_workers`. A worker is what makes one call at a time: a thread of a Dask worker, a CPU of Ray.
    """

    by_element = tolerant = harmless = view_only = True
    needs: ClassVar[Needs] = Needs.PART
    indifferent: ClassVar[frozenset[str]] = frozenset({"service"})
    service: Any

    @property
    def cardinality(self) -> int:
        return UNKNOWN if self.input.cardinality > 0 else self.input.cardinality

    def start(self, epoch: int) -> State:
        return {**Repeat(self.input, 1).start(epoch), "times": 0}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead

    def stream(self, state: State, run: Run) -> Stream:
        times = state["times"]
        if not times:
            with closing(opened(self.service)) as service:
                times = max(1, service.workers())
        for block, after in Repeat(self.input, times, origin=self.origin).stream(state, run):
            yield block, {**after, "times": times}


# ----------------------------------------------------------------------------
# Maps that are one step without `on_workers` between them: they run as several, and their states are those of one.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Served(Fused[Any]):
    """Neighbouring maps, of which the lower ones run on workers.

    Args:
      services: after how many of the maps an `on_workers` stands, and which; the lowest one first.
    """

    kind: ClassVar[type[Fused[Any]]]
    services: tuple[tuple[int, OnWorkers], ...] = field(default=(), repr=False)

    @property
    def op(self) -> str:
        return self.kind(self.input, self.functions).op

    @property
    def notes(self) -> tuple[str, ...]:
        return ("at workers: " + ", ".join(map(str, self.maps[: self.services[-1][0]])),)

    @property
    def served(self) -> list[str]:
        """The maps that the last `on_workers` has run."""
        first, end = [0, *[count for count, _ in self.services]][-2:]
        return [str(step) for step in self.maps[first:end]]

    def followed_by(self, service: OnWorkers, count: int) -> "_Served":
        """The same step with one more `on_workers`, behind `count` of the maps."""
        return replace(self, services=(*self.services, (count, service))).same_as(self)

    @cached_property
    def apart(self) -> Node:
        """The maps as the user wrote them."""
        below, first = self.input, 0
        for count, service in self.services:
            below = service.with_inputs((self._some(first, count, below),))
            first = count
        return self._some(first, None, below)

    def _some(self, first: int, end: int | None, below: Node) -> Node:
        steps = self.maps[first:end]
        if not steps:
            return below
        if len(steps) > 1:
            return self.kind(below, Neighbours(steps), origin=steps[-1].origin)
        alone: Node = steps[0]
        return alone.with_inputs((below,)).same_as(alone)

    def stream(self, state: State, run: Run) -> Stream:
        above = len(self.apart.steps) - len(self.input.steps) - 1
        for _ in range(above):
            state = {"input": state, "skip": 0}
        stream = self.apart.open(state, run)
        try:
            for block, state in stream:
                yield block, _as_one(state, above)
        finally:
            stream.close()  # type: ignore[attr-defined]


def _as_one(state: State, above: int) -> State:
    """The state of one step for several: each of them passes over rows of what is below it, one for one."""
    skip = 0
    for _ in range(above):
        skip += state["skip"]
        state = state["input"]
    return {"input": state["input"], "skip": skip + state["skip"]}


@dataclass(frozen=True, eq=False)
class _ServedMap(_Served, FusedMap):
    kind: ClassVar[type[Fused[Any]]] = FusedMap


@dataclass(frozen=True, eq=False)
class _ServedMapRows(_Served, FusedMapRows):
    kind: ClassVar[type[Fused[Any]]] = FusedMapRows


# ----------------------------------------------------------------------------
# In rewritten trees, `on_workers` stands in the way of no rule, so that states are those without it.
# ----------------------------------------------------------------------------


def as_without(
    plan: Node, running: Node, fired: list[str], rewrite: Callable[[Node], tuple[Node, list[str]]]
) -> tuple[Node, list[str]]:
    """The tree that runs for `plan`, and the rules that fired: another one if states would not be those without `on_workers`.

    Args:
      plan: the tree as the user described it.
      running: what the rules make of it.
      fired: the rules that fired.
      rewrite: applies the rules to a tree.
    """
    services = [step for step in walk(plan) if isinstance(step, OnWorkers)]
    if not services:
        return running, fired
    alone, fired_alone = rewrite(_without(plan))
    if layout(alone) == layout(running):
        return running, fired
    for service in services:  # inner ones first
        alone = _put_into(alone, service, frozenset(_makers(service.input)))
    return alone, fired_alone


def _without(node: Node) -> Node:
    return _without(node.input) if isinstance(node, OnWorkers) else node.with_changed_inputs(_without).same_as(node)


def _put_into(node: Node, service: OnWorkers, below: frozenset[int]) -> Node:
    """A tree with a step above the largest parts that come from what stood below it."""
    if below.issuperset(_makers(node)):
        return service.with_inputs((node,)).same_as(node)
    if isinstance(node, FusedMap | FusedMapRows) and below.issuperset(_makers(node.input)):
        count = sum([id(part.origin) in below for part in node.maps])
        if count and isinstance(node, _Served):
            return node.followed_by(service, count)
        if count:
            kind = _ServedMap if isinstance(node, FusedMap) else _ServedMapRows
            return kind(node.input, node.functions, ((count, service),), origin=node.origin).same_as(node)
    return node.with_changed_inputs(lambda source: _put_into(source, service, below)).same_as(node)


def _makers(node: Node) -> Iterator[int]:
    """What tells which steps of the described tree the steps of this one are, or come from: each has an origin of its own."""
    for step in walk(node):
        yield id(step.origin)
        if isinstance(step, Fused):
            yield from [id(part.origin) for part in step.maps]


# ----------------------------------------------------------------------------
# The consumer: it reads the base, sends pieces, and hands on what comes back, in order.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Divided(Transparent):
    """A chain of steps whose pieces run on workers.

    Args:
      depth: how many steps, from the input down.
      service: what the workers belong to.
      workers: their kind and number.
      most: pieces under way.
      shared_bytes: of the results that other jobs get.
      auto: whether pieces stay here whose way costs more than their work.
    """

    depth: int
    service: Any
    workers: tuple[str, int]
    most: int | None = None
    shared_bytes: int = 0
    auto: bool = False

    @property
    def op(self) -> str:
        return "on_workers"

    @property
    def fetches(self) -> bool:
        return self.input.fetches

    def __reduce__(self) -> Any:
        # A worker has no workers: below its own pieces these steps only say what they are.
        return _as_it_is, (self.input,)

    @cached_property
    def chain(self) -> list[Node]:
        """The steps, the first one first."""
        return chain_below(self.input, self.depth)

    @property
    def served(self) -> list[str]:
        """The steps in words, the lowest one first."""
        return [str(step) for step in reversed(self.chain)]

    @property
    def reading(self) -> str:
        """Who reads records of files, in words; empty: there are none, or workers are threads."""
        readers = [step.op for step in walk(self.base) if step.reads_files]
        if not readers or self.workers[0] == "threads":
            return ""
        return f"{', '.join(readers)}: {'read at workers' if self.numbered else 'read here, and sent to workers'}"

    @property
    def chosen(self) -> str:
        """What AUTO found out, in words; empty: it does not choose."""
        if not self.auto or self.sharing is not None:
            return ""
        trial = vars(self).get("trial")
        return "AUTO: no pass has measured yet whether workers pay" if trial is None else f"AUTO: {trial}"

    @property
    def base(self) -> Node:
        """What the chain reads."""
        return self.chain[-1].inputs[0]

    @cached_property
    def workforce(self) -> Workforce:
        """The processes, from pass to pass."""
        return Workforce(lambda: Processes(self._task(elsewhere=True), self.workers[1], "on_workers"))

    @cached_property
    def steps_for_service(self) -> bytes:
        """The chain, as a service is given it."""
        return steps_for_service(self._task(elsewhere=True))

    @cached_property
    def sharing(self) -> Sharing | None:
        """What other jobs get; None: nothing."""
        if not self.shared_bytes or self.workers[0] != "service":
            return None
        return Sharing(word_of_steps(self._task(elsewhere=True), self.base), self.shared_bytes)

    @cached_property
    def trial(self) -> "_WayTrial":
        """Whether elements cost this program less if workers make them."""
        return _WayTrial(_TRIAL_PIECES, _LOSS)

    @cached_property
    def learned(self) -> "_LearnedSize":
        """How large pieces are, from pass to pass."""
        return _LearnedSize()

    @cached_property
    def tasks(self) -> "SimpleQueue[PieceTask]":
        """Of threads: copies of the chain that nobody uses at the moment."""
        free: SimpleQueue[PieceTask] = SimpleQueue()
        for _ in range(self.workers[1]):
            free.put(self._task(elsewhere=False))
        return free

    def _task(self, *, elsewhere: bool) -> PieceTask:
        top = in_place_of(self.base)
        for step in reversed(self.chain):
            top = _over(step, top)
        reader = self.numbered[1] if elsewhere and self.numbered else None
        return PieceTask(top, self.depth, elsewhere=elsewhere, reader=reader)

    @cached_property
    def numbered(self) -> tuple[Node, Reader] | None:
        """The base with numbers in the place of records, which workers read; None: they get the records."""
        return None if self.workers[0] == "threads" or self.shared_bytes else numbered(self.base)

    def _inside(self, state: State) -> tuple[State, int] | None:
        """Where the base stands in a state of the chain; None: steps above the last one are in the middle of a block."""
        *above, _ = [step for step in self.chain if not step.transparent]
        for _ in above:
            if state["skip"]:
                return None
            state = state["input"]
        return state["input"], state["skip"]

    def _outside(self, before: State, over: int) -> State:
        """The state of the chain at a place of its base."""
        *above, _ = [step for step in self.chain if not step.transparent]
        state = {"input": before, "skip": over}
        for _ in above:
            state = {"input": state, "skip": 0}
        return state

    def stream(self, state: State, run: Run) -> Stream:
        for step in self.chain:
            step.decide(run)
        state = yield from self._here(state, run)
        place = None if state is None else self._inside(state)
        if place is None:
            return
        copy, step = self.numbered[0] if self.numbered else self.base, self.base
        while copy is not step and not isinstance(step, Reader):
            run.counters[id(copy)] = run.counter(step)
            copy, step = copy.inputs[0], step.inputs[0]
        run.counters[id(copy)] = run.counter(step)
        source = _Source(self, *place, run, reads_here=run.tolerant)
        source.size = self.learned.first_rows
        try:
            yield from self._first_pieces(source, run)
            with self._lanes(run) as lanes:
                yield from self._pieces(source, lanes, run)
        except Closed:
            return  # the run was closed while it waited
        finally:
            self.learned.rows = source.largest
            source.close()
        if source.error is not None:
            raise source.error

    @contextmanager
    def _lanes(self, run: Run) -> "Iterator[_Lanes]":
        """Workers for one stream."""
        kind, count = self.workers
        words = ", ".join([step.where() for step in reversed(self.chain)])
        if kind == "threads":
            make = partial(self._task, elsewhere=False)
            with run.pool(count) as pool, closing(ThreadLanes(pool, count, self.tasks, make, run)) as threads:
                yield threads
        elif kind == "processes":
            with self.workforce.lent() as processes:
                processes.drain(lambda: not run.cancelled.is_set())
                yield ProcessLanes(processes, run, words)
        else:
            with closing(
                ServiceLanes(opened(self.service), self.steps_for_service, run, words, self.sharing)
            ) as service:
                yield service

    def _here(self, state: State, run: Run) -> Any:
        """What comes before a place at which pieces can begin, and that place; None at the end."""
        if self._inside(state) is not None:
            return state
        stream = self.input.open(state, run.asking(run_ahead=0))
        try:
            for block, state in stream:
                yield block, state
                if self._inside(state) is not None:
                    return state
        finally:
            stream.close()  # type: ignore[attr-defined]
        return None

    def _first_pieces(self, source: "_Source", run: Run) -> Stream:
        """Elements made here up to the first one, which decides what the next ones must look like."""
        settled = all(_is_settled(step) for step in self.chain)
        while not settled and (piece := source.next()) is not None:
            piece = self._read_here(piece, run)
            result = self._alone((piece, run.tolerant, run.asked.past_damage))
            source.took(piece, result)
            settled = any(isinstance(made, Block) and made.size for made, _ in result.items)
            yield from self._delivered(result, run, piece.error)

    def _pieces(self, source: "_Source", lanes: _Lanes, run: Run) -> Stream:
        counter, auto, trial = run.counter(self), self.auto and self.sharing is None, self.trial
        waiting = UnderWay()
        unread = 0  # pieces that workers could not read
        warm = 0  # pieces that workers have made: they import and connect for the first ones
        run.holding.append(waiting)
        try:
            while True:
                counter.workers = lanes.count
                full = len(waiting) >= (self.most or AHEAD * lanes.count) or source.full or source.ended
                full = full or bool(waiting and source.may_stall())
                if waiting and (full or waiting[0][1] is None or lanes.ready(waiting[0][1])):
                    piece, ticket, way = waiting.popleft()
                    begin = Run.clock()
                    result = None if ticket is None else counter.waits(lanes.receive, ticket)
                    if result is None or result.unread:
                        unread += result is not None
                        source.given_back(piece)
                        piece = self._read_here(piece, run)
                        source.given(piece)
                        result = self._alone((piece, run.tolerant, run.asked.past_damage))
                    else:
                        counter.worked += result.seconds
                        warm += 1
                        if auto and warm > 2 * lanes.count and piece.rows >= source.size:
                            trial.took(piece.rows, way + Run.clock() - begin, result.seconds)
                    source.took(piece, result, lanes)
                    yield from self._delivered(result, run, piece.error)
                elif full:
                    return
                elif (next_piece := source.next()) is not None:
                    cheap = not trial.faster and trial.not_before > 0
                    here = auto and cheap and Run.clock() < trial.not_before
                    if auto:
                        counter.choice = "here: the way to workers cost more than the work" if cheap else "workers"
                    here = here or any(type(block) is Failure for block, _ in next_piece.blocks)  # an error of the base
                    begin = Run.clock()
                    if unread:
                        source.given_back(next_piece)
                        next_piece = self._read_here(next_piece, run)
                        source.given(next_piece)
                        here = here or next_piece.error is not None
                    ticket = None if here else lanes.send((next_piece, run.tolerant, run.asked.past_damage))
                    waiting.append((next_piece, ticket, Run.clock() - begin))
        finally:
            run.holding.remove(waiting)
            waiting.clear()

    @cached_property
    def _alone(self) -> PieceTask:
        return self._task(elsewhere=False)

    def _read_here(self, piece: WorkPiece, run: Run) -> WorkPiece:
        """A piece with its records; fewer, and the error, where they cannot be read."""
        if piece.stamps is None:
            return piece
        place = self._inside(piece.state)
        assert place is not None
        with closing(_Source(self, *place, run, reads_here=True)) as source:
            source.size, source.seconds, source.whole = piece.rows, math.inf, True
            made = source.next() or WorkPiece(piece.state, [], 0, None)
            assert made.rows == piece.rows or source.error is not None, (made.rows, piece.rows)
            return made._replace(error=source.error)

    def _delivered(self, result: Result, run: Run, behind: Exception | None = None) -> Stream:
        for step, (blocks, rows, seconds) in zip(self.chain, result.counts, strict=True):
            counter = run.counter(step)
            counter.blocks += blocks
            counter.rows += rows
            counter.worked += seconds
        for made, state in result.items:
            yield (Failure(self._raised(made, run)) if isinstance(made, Told) else made), state
        if result.error is not None:
            raise self._raised(result.error, run)
        if behind is not None:
            raise behind

    def _raised(self, told: Told, run: Run) -> Exception:
        """An error of a piece, with what was known there, and which record it is about."""
        trouble = told.trouble
        if told.step is not None:
            trouble.step = self.chain[told.step]
        told.error._distinput_trouble = trouble  # type: ignore[attr-defined]
        if told.met is not None:
            place, state, ahead = told.met
            trouble.told = False
            run.note_record(told.error, self.chain[place], state, ahead)
        trouble.located = trouble.told = True
        return told.error


def _as_it_is(node: Node) -> Node:
    return node


def _over(step: Node, below: Node) -> Node:
    """The same step over another input; steps that run as one, too, which would bring along all that stood below them."""
    if isinstance(step, Fused):
        parts: list[Any] = []
        for part in step.maps:
            parts.append(part.with_inputs((parts[-1] if parts else below,)).same_as(part))
        step = replace(step, functions=Neighbours(tuple(parts))).same_as(step)
    return step.with_inputs((below,)).same_as(step)


def _is_settled(step: Node) -> bool:
    """Whether it is known what a step returns, so that no element decides it."""
    return all(
        step.claim.wanted is not None or getattr(step, "signature", None) is not None
        for step in getattr(step, "maps", (step,))
        if hasattr(step, "claim")
    )


@dataclass
class _LearnedSize:
    """How large pieces were in the last pass that has ended.

    Args:
      rows: of its largest pieces.
    """

    rows: int = 1

    @property
    def first_rows(self) -> int:
        """Rows with which the next pass begins: fewer, so that its first elements come soon."""
        return max(1, self.rows // _GROWTH)


@dataclass
class _WayTrial(ThreadTrial):
    """The same with workers in the place of threads: without them, the program would do their work itself.

    Args:
      work: seconds that workers took for the pieces of this trial.
      way: seconds of this program for each element.
    """

    work: float = 0.0
    way: float = 0.0

    def __str__(self) -> str:
        if not self.faster and not self.not_before:
            return "at workers until it is measured whether that pays"
        where = "at workers" if self.faster else "here for now"
        return f"{where}, since an element costs {seconds_text(self.alone)}, and by way of workers {seconds_text(self.way)}"

    def took(self, rows: int, way: float, work: float) -> None:
        """Count a piece that a worker has made.

        Args:
          rows: elements in it.
          way: seconds that this program took to send it, to wait for it and to unpack its results.
          work: seconds that the worker took.
        """
        self.work += work
        self.alone, self.way = self.work / (self._rows + rows), (self._seconds + way) / (self._rows + rows)
        if self.counted(rows, way) is not None:
            self.work = 0.0


class _Source:
    """Pieces of the base.

    Attributes:
      ended: whether all pieces were given.
      error: what ended the base.
      size: rows of the next piece, unless others make the same.
      largest: of these, so far.
      seconds: of work that a piece should be.
      most_bytes: of a piece and its results.
      whole: whether a piece has all of its rows, however long they take.
    """

    def __init__(self, divided: _Divided, before: State, over: int, run: Run, *, reads_here: bool) -> None:
        self._divided, self._before, self._over = divided, before, over
        self._reader: Reader | None
        base, self._reader = (None if reads_here else divided.numbered) or (divided.base, None)
        self._stamps: dict[str, str] = {}
        self._stream, self._stalls = opened_ahead(base, before, run.by_block(), run.counter(divided))
        self._block: Block | None = None
        self._after = before
        self._first = 0  # row of the block in hand
        self.size = self.largest = 1
        self.seconds, self.most_bytes = PIECE_SECONDS, ThreadLanes.most_bytes
        self._fixed = divided.sharing is not None
        self._under_way, self._row_bytes = 0, float(MOST_BYTES)  # unless a result tells
        opens = any(step.reads_files for step in walk(divided.base))  # files only to count their rows
        self._rows = UNKNOWN if opens else divided.base.cardinality
        self._rows_given, self._row_seconds = 0, 0.0
        self.ended = self.whole = False
        self.error: Exception | None = None

    @property
    def full(self) -> bool:
        """Whether what is under way holds as much as it may."""
        return self._under_way * self._row_bytes >= _BYTES_UNDER_WAY

    @property
    def work_left(self) -> float | None:
        """Seconds that workers need at most for the pieces still to come; None: nobody knows how many rows there are."""
        return None if self._rows < 0 else max(0, self._rows - self._rows_given) * self._row_seconds

    def next(self) -> WorkPiece | None:
        """The next piece; None at the end."""
        made = self._made()
        if made is not None and self._reader is not None:
            made = made._replace(stamps=self._stamps_of(files_of(self._reader, made.blocks)))
        if made is not None:
            self.given(made)
        return made

    def given(self, piece: WorkPiece) -> None:
        """Count what is under way."""
        self._under_way += piece.rows
        self._rows_given += piece.rows

    def given_back(self, piece: WorkPiece) -> None:
        """No longer count it."""
        self._under_way -= piece.rows
        self._rows_given -= piece.rows

    def _stamps_of(self, paths: list[str]) -> dict[str, str]:
        for path in paths:
            if path not in self._stamps:
                with suppress(Exception):  # told where it is read
                    self._stamps[path] = stamp_of(path)
        return {path: self._stamps.get(path, "") for path in paths}

    def _made(self) -> WorkPiece | None:
        parts: list[tuple[Block, State | None]] = []
        state: State | None = None
        left, over, deadline = self.size, 0, Run.clock() + self.seconds
        while left > 0 and (not parts or (Run.clock() < deadline and not self.may_stall())):
            if self._block is None and not self._pull():
                break
            assert self._block is not None
            if type(self._block) is Failure:
                if not parts:
                    parts.append((self._block, self._after))
                    state = self._divided._outside(self._before, self._first)
                    self._pass()
                break
            if self._fixed:  # the rows alone say where it ends, so that other jobs have the same pieces
                each = rows_within(self._block.size, self._block.nbytes, _SHARED_ROWS)
                left = min(each - self._first % each, self._block.size - self._first)
            rows = self._block.rows(self._first, min(self._block.size, self._first + left))
            if state is None:
                state, over = self._divided._outside(self._before, self._first), self._first
            self._first += rows.size
            left -= rows.size
            if self._first < self._block.size:
                return WorkPiece(state, [*parts, (rows, None)], over, {"input": self._before, "skip": self._first})
            parts.append((rows, self._after))
            self._pass()
        return None if state is None else WorkPiece(state, parts, over, None)

    def may_stall(self) -> bool:
        """Whether the next piece may wait for what the loop does with those before it."""
        return self._block is None and not self.whole and self._stalls()

    def took(self, piece: WorkPiece, result: Result, lanes: _Lanes | None = None) -> None:
        """Choose the size of the next pieces by the time that one took, by the bytes of its results, and by its way if any."""
        rows = piece.rows
        self._under_way -= rows
        nbytes = sum([made.nbytes for made, _ in result.items if isinstance(made, Block)])
        nbytes += sum([block.nbytes for block, _ in piece.blocks])
        if rows:
            self._row_bytes, self._row_seconds = nbytes / rows, result.seconds / rows
            if lanes is not None:  # which may know from this piece alone how far it is, and what is left
                self.seconds, self.most_bytes = lanes.piece_seconds(self.work_left), lanes.most_bytes
            most_bytes = min(self.most_bytes, _BYTES_UNDER_WAY // 4)
            within = max(1, min(_MOST_ROWS, most_bytes * rows // max(1, nbytes)))
            self.size = int(max(1, min(self.seconds * rows / max(result.seconds, 1e-9), _GROWTH * self.size, within)))
            self.largest = max(self.largest, self.size)

    def close(self) -> None:
        """End the stream of the base."""
        self._stream.close()  # type: ignore[attr-defined]

    def _pull(self) -> bool:
        """Take up the next block that is not passed over; False at the end."""
        while not self.ended:
            try:
                self._block, self._after = next(self._stream)
            except StopIteration:
                self.ended = True
                return False
            except Exception as error:  # noqa: BLE001 - raised when its turn comes
                self.ended, self.error = True, error
                return False
            if type(self._block) is Failure:
                self._over = 0
                return True
            if self._over < self._block.size or (not self._over and not self._block.size):
                self._first, self._over = self._over, 0
                return True
            self._over -= self._block.size
            self._pass()
        return False

    def _pass(self) -> None:
        """The block is used up."""
        self._before, self._block, self._first = self._after, None, 0
