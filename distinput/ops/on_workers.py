# SPDX-License-Identifier: Apache-2.0
"""`on_workers`: what stands below runs on input workers, in pieces; elements, their order and the states are as without it."""

import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple, Never, final

from distinput.columns.block import MOST_BYTES, Block, Failure, Trouble, is_defect_within, rows_within, trouble_of
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError, UnavailableError
from distinput.functions.workers import packed, sendable
from distinput.ops.filter import Filter, Where
from distinput.plan.check import at_least, normalized
from distinput.plan.families import OneForOne, SameElements
from distinput.plan.node import Needs, Node, walk
from distinput.run.processes import Processes, Workforce
from distinput.run.run import OpCounters, Run
from distinput.run.segments import Closed
from distinput.values.spec import Spec

__all__ = ["BlockBehind", "OnWorkers"]


_PIECE_SECONDS, _GROWTH, _MOST_ROWS = 0.02, 4, 4096
"""Work that a piece should be, how much larger than the last one it may be, and the most rows of its input."""


# ----------------------------------------------------------------------------
# The op: where a tree is divided, so that its pieces can run elsewhere.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OnWorkers(SameElements):
    """Run what stands below on input workers, in exact order.

    The steps that call functions, and depend on single elements alone (`map`, `map_rows`, `filter`, `parse_example`), run at
    the workers. Each worker gets pieces: elements of the input of these steps, as columns. What depends on more than one
    element (`batch`, `shuffle`, `zip`) and what reads the source stays here, and so does what a shuffle fetches by position;
    `explain` says which steps go to workers. What a killed process had to do is done again by another one. Where nobody knows
    what a function returns, the first element of a pass is made here, and decides what the others must look like.

    Shapes and order: unchanged. State: that of the input: a state that was saved with this step restores without it, and the
    other way round. Only between two maps, which are one step without it, a state that was saved without it is refused.

    Args:
      service: "threads:4" for threads of this process, "processes:4" for worker processes of this machine.
      max_outstanding_requests: how many pieces may be under way or wait to be used; None: two for each worker.

    Raises:
      InvalidArgumentError: `service` names no workers, or `max_outstanding_requests` is less than 1.
      TypeError: `service` is no text, or at iteration, a function cannot be sent to a process.
      UnavailableError: at iteration, worker processes end each time that they have the same work.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).map(lambda x: x * x).batch(2)
    >>> [batch.tolist() for batch in ds.on_workers("threads:2")]
    [[0, 1], [4, 9], [16, 25]]

    Source: the idea of `tf.data.experimental.service`, which gives up order and state.
    """

    tolerant: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    transparent: ClassVar[bool] = True
    by_element: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.ONE
    by_position: ClassVar[bool] = True
    indifferent: ClassVar[frozenset[str]] = frozenset({"service", "max_outstanding_requests"})
    service: str
    max_outstanding_requests: int | None = None

    def __post_init__(self) -> None:
        _ = self.workers
        if self.max_outstanding_requests is not None:
            most = at_least("on_workers", "max_outstanding_requests", self.max_outstanding_requests, 1)
            normalized(self, "max_outstanding_requests", most)

    @cached_property
    def workers(self) -> tuple[str, int]:
        """The kind of workers, and how many."""
        if not isinstance(self.service, str):
            raise TypeError(f"on_workers: service must be 'threads:N' or 'processes:N', got {self.service!r}")
        kind, _, count = self.service.partition(":")
        if kind not in ("threads", "processes") or not count.isascii() or not count.isdigit() or int(count) < 1:
            raise InvalidArgumentError(
                f"on_workers: service must be 'threads:N' or 'processes:N' with N at least 1, got {self.service!r}"
            )
        return kind, int(count)

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    @property
    def fails_in_place(self) -> bool:
        return self.input.fails_in_place

    @property
    def notes(self) -> tuple[str, ...]:
        found = [step for step in walk(self.divided) if isinstance(step, _Divided)]
        if not found:
            return ("nothing goes to workers: no step below calls a function on single elements",)
        return ("at workers: " + ", ".join([str(step) for part in found for step in reversed(part.chain)]),)

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        if run.run_ahead is not None or run.sampling:  # nothing may be made ahead
            return self.input.open(state, run)
        for copy, step in self._copies:
            run.counters[id(copy)] = run.counter(step)
        run.counters.update({id(part): OpCounters() for part in walk(self.divided) if isinstance(part, _Divided)})
        if not isinstance(self.divided, _Divided):
            return self.divided.open(state, run)
        run.counters[id(self.divided)] = run.counter(self)
        return self.divided.stream(state, run)  # which this step counts

    @cached_property
    def divided(self) -> Node:
        """The input with each chain of steps that can be divided as one step, which has the same elements and states."""
        return self._within(self.input)

    @cached_property
    def _copies(self) -> list[tuple[Node, Node]]:
        """The steps that stand above divided ones, and what they are copies of, whose counters they have."""
        _ = self.divided
        return self._made

    @cached_property
    def _made(self) -> list[tuple[Node, Node]]:
        return []

    def _within(self, node: Node) -> Node:
        chain = _chain(node)
        base = chain[-1].inputs[0] if chain else node
        # A shuffle of what can be fetched by position fetches it, and its states are others than those of a buffer.
        fetches = base.shuffles and all(source.random_access for source in base.inputs)
        inputs = tuple([source if fetches else self._within(source) for source in base.inputs])
        changed = any(new is not old for new, old in zip(inputs, base.inputs, strict=True))
        copy = self._copied(base, inputs) if changed else base
        if not chain:
            return copy
        made = copy
        for step in reversed(chain):
            made = self._copied(step, (made,)) if changed else step
        return _Divided(made, len(chain), self.workers, self.max_outstanding_requests, origin=self.origin)

    def _copied(self, step: Node, inputs: tuple[Node, ...]) -> Node:
        copy = step.with_inputs(inputs).same_as(step)
        self._made.append((copy, step))
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
    if len(node.inputs) != 1 or node.draws or node.keeps:
        return False
    maps = getattr(node, "maps", (node,))
    if any(getattr(step, "processes", False) or getattr(step, "executor", None) is not None for step in maps):
        return False  # it has workers of its own
    if node.transparent:
        return node.own_options is None and not isinstance(node, OnWorkers | _Divided)
    if not isinstance(node, OneForOne | Filter | Where) or not node.tolerant:
        return False
    return node.start(0) == {"input": node.inputs[0].start(0), "skip": 0}


# ----------------------------------------------------------------------------
# A piece: some elements of the base, and what the steps of a chain make of them.
# ----------------------------------------------------------------------------


class _Piece(NamedTuple):
    """What a worker needs.

    Args:
      state: of the chain, before the piece.
      blocks: of the base, each with the state after it; None: not all of the last block is in the piece.
      over: rows of the first block that are not sent: they stand before the mark.
      cut: the mark behind the last row, if the last block is not whole.
    """

    state: State
    blocks: list[tuple[Block, State | None]]
    over: int
    cut: State | None

    @property
    def rows(self) -> int:
        """Elements of the base."""
        return sum([block.size for block, _ in self.blocks])


class _Told(NamedTuple):
    """An error, and what is known of it.

    Args:
      error: what was raised.
      trouble: without steps.
      step: which step of the chain it is of; None: it came from below.
      trace: the traceback of another process.
    """

    error: Exception
    trouble: Trouble
    step: int | None
    trace: str = ""


class _Result(NamedTuple):
    """What a worker made of a piece.

    Args:
      items: blocks or failures, each with the state after it.
      error: what ended the stream.
      seconds: of work.
      counts: blocks, rows and seconds of each step of the chain.
    """

    items: list[tuple[Block | _Told, State]]
    error: _Told | None
    seconds: float
    counts: list[tuple[int, int, float]]


@final
class BlockBehind(Block):
    """The rows of a block from a position on; those before it are not there, and nobody looks at them."""

    __slots__ = ("_block", "_over")

    def __init__(self, block: Block, over: int) -> None:
        self.structure, self.size = block.structure, over + block.size
        self._block, self._over = block, over

    def columnar(self) -> Never:
        raise AssertionError("the first rows are not there")

    def rows(self, start: int, stop: int, step: int = 1) -> Block:
        assert start >= self._over, "the first rows are not there"
        return self._block.rows(start - self._over, min(stop, self.size) - self._over, step)

    def row(self, index: int) -> Any:
        return self._block.row(index - self._over)

    def elements(self) -> Never:
        raise AssertionError("the first rows are not there")

    def copied(self) -> Never:
        raise AssertionError("the first rows are not there")

    @property
    def nbytes(self) -> int:
        return self._block.nbytes


class _PieceRun(Run):
    """A run over one piece."""

    piece: _Piece


@dataclass(frozen=True, eq=False)
class _Given(Node):
    """Stands in the place of the base of a chain, and gives the elements of a piece.

    Args:
      base: what it stands for, if records of files can be looked up in it.
      known: what its elements look like.
    """

    tolerant: ClassVar[bool] = True
    base: Node | None
    known: Spec

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def spec(self) -> Spec:
        return self.known

    def start(self, epoch: int) -> State:
        return {}

    def stream(self, state: State, run: Run) -> Stream:
        if isinstance(run, _PieceRun):
            over = run.piece.over
            for block, after in run.piece.blocks:
                yield (BlockBehind(block, over) if over else block), _CUT if after is None else after
                over = 0

    @property
    def in_record_order(self) -> bool:
        return self.base is not None and self.base.in_record_order

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        return None if self.base is None else self.base.place_of(state, ahead)

    def records_at(self, state: State, ahead: int) -> Any:
        return None if self.base is None else self.base.records_at(state, ahead)


_CUT: State = {"cut": True}


class _PieceTask:
    """What a worker does with pieces.

    Args:
      top: the first step of a chain, over a `_Given`.
      depth: how many steps it has.
      elsewhere: whether results go to another process.
    """

    def __init__(self, top: Node, depth: int, *, elsewhere: bool) -> None:
        self.top, self.depth, self.elsewhere = top, depth, elsewhere

    def __repr__(self) -> str:
        return ", ".join(map(str, self.steps))

    @property
    def steps(self) -> list[Node]:
        """The chain, its first step first."""
        return _down(self.top, self.depth)

    def __call__(self, given: tuple[_Piece, bool, bool], over: Callable[[], bool] | None = None) -> _Result:
        piece, tolerant, past_damage = given
        steps = self.steps
        run = _PieceRun(steps)
        run.piece = piece
        run.asked = run.asked._replace(tolerant=tolerant, past_damage=past_damage)
        items: list[tuple[Block | _Told, State]] = []
        last_error: _Told | None = None
        begin = Run.clock()
        with run:
            stream = self.top.open(piece.state, run)
            try:
                for block, state in stream:
                    made = self._told(block.error, steps) if type(block) is Failure else self._made(block)
                    items.append((made, self._whole(state, piece)))
                    if over is not None and over():
                        break
            except Exception as error:  # noqa: BLE001 - raised when its turn comes
                last_error = self._told(error, steps)
            finally:
                stream.close()  # type: ignore[attr-defined]
        counters = [run.counter(step) for step in steps]
        return _Result(items, last_error, Run.clock() - begin, [(c.blocks, c.rows, c.own) for c in counters])

    def _made(self, block: Block) -> Block:
        return packed(block) if self.elsewhere else block.materialize()

    def _told(self, error: Exception, steps: list[Node]) -> _Told:
        trouble = trouble_of(error)
        index = next((place for place, step in enumerate(steps) if step is trouble.step), None)
        if not self.elsewhere:
            return _Told(error, trouble, index)
        is_defect_within(error)  # which its traceback tells
        notes = vars(error).pop("__notes__", [])
        trace = "".join(traceback.format_exception(error)).rstrip()
        vars(error).pop("_distinput_trouble", None)
        for note in notes:  # which are no part of the trace, or they would be told twice
            error.add_note(note)
        return _Told(sendable(error), replace(trouble, step=None, mark=None), index, trace)

    def _whole(self, state: State, piece: _Piece) -> State:
        """A state, in which the place behind the last row is one of the base."""
        return state if piece.cut is None else _replaced(state, self.steps, piece.cut)


def _down(top: Node, depth: int) -> list[Node]:
    found = [top]
    while len(found) < depth:
        found.append(found[-1].inputs[0])
    return found


def _replaced(state: State, steps: list[Node], cut: State) -> State:
    _, *below = [step for step in steps if not step.transparent]
    if not below:
        return cut if state["input"].get("cut") is True and state["input"].keys() == _CUT.keys() else state
    inner = _replaced(state["input"], below, cut)
    return state if inner is state["input"] else {**state, "input": inner}


# ----------------------------------------------------------------------------
# The workers: threads and processes. They get pieces in turn, and their results are taken in the order of the pieces.
# ----------------------------------------------------------------------------


class _Threads:
    """A pool of threads, each piece at a copy of the chain that no other piece is at."""

    def __init__(self, pool: Any, tasks: "SimpleQueue[_PieceTask]", run: Run) -> None:
        self._pool, self._tasks, self._run = pool, tasks, run
        self._over = False

    def send(self, given: tuple[_Piece, bool, bool]) -> Any:
        return self._pool.submit(self._called, given)

    def ready(self, sent: Any) -> bool:
        return bool(sent.done())

    def receive(self, sent: Any) -> _Result:
        made: _Result = sent.result()
        return made

    def close(self) -> None:
        self._over = True

    def _called(self, given: tuple[_Piece, bool, bool]) -> _Result:
        task = self._tasks.get()
        try:
            return task(given, lambda: self._over or self._run.cancelled.is_set())
        finally:
            self._tasks.put(task)


class _Workers:
    """Worker processes."""

    def __init__(self, processes: Processes, run: Run, chain: str) -> None:
        self._processes, self._run, self._chain = processes, run, chain
        self._sent = 0

    def send(self, given: tuple[_Piece, bool, bool]) -> int:
        piece, *asked = given
        worker = self._sent % len(self._processes)
        blocks = [(packed(block), after) for block, after in piece.blocks]
        try:
            self._processes.send(worker, (piece._replace(blocks=blocks), *asked))
        except UnavailableError as error:
            raise self._named(error) from None
        self._sent += 1
        return worker

    def ready(self, sent: int) -> bool:
        return self._processes.ready(sent)

    def receive(self, sent: int) -> _Result:
        try:
            made: _Result = self._processes.receive(sent, lambda: not self._run.cancelled.is_set())
        except UnavailableError as error:
            raise self._named(error) from None
        pid = self._processes.pids[sent]
        for told in [
            *[made for made, _ in made.items if isinstance(made, _Told)],
            *([made.error] if made.error else []),
        ]:
            if told.trace:
                told.error.add_note(f"in worker process {pid}:\n{told.trace}")
        return made

    def close(self) -> None:
        pass

    def _named(self, error: UnavailableError) -> UnavailableError:
        error.add_note(f"the work was that of {self._chain}")
        return error


# ----------------------------------------------------------------------------
# The consumer: it reads the base, sends pieces, and hands on what comes back, in order.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Divided(SameElements):
    """A chain of steps whose pieces run on workers.

    Args:
      depth: how many steps, from the input down.
      workers: their kind and number.
      most: pieces under way.
    """

    tolerant: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    transparent: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.ONE
    by_position: ClassVar[bool] = True
    depth: int
    workers: tuple[str, int]
    most: int | None = field(default=None)

    @property
    def op(self) -> str:
        return "on_workers"

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    @property
    def fails_in_place(self) -> bool:
        return self.input.fails_in_place

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def count_elements(self) -> int:
        return self.input.count_elements()

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    @property
    def fetches(self) -> bool:
        return self.input.fetches

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch)

    @cached_property
    def chain(self) -> list[Node]:
        """The steps, the first one first."""
        return _down(self.input, self.depth)

    @property
    def base(self) -> Node:
        """What the chain reads."""
        return self.chain[-1].inputs[0]

    @cached_property
    def workforce(self) -> Workforce:
        """The processes, from pass to pass."""
        return Workforce(lambda: Processes(self._task(elsewhere=True), self.workers[1], "on_workers"))

    @cached_property
    def tasks(self) -> "SimpleQueue[_PieceTask]":
        """Of threads: copies of the chain that nobody uses at the moment."""
        free: SimpleQueue[_PieceTask] = SimpleQueue()
        for _ in range(self.workers[1]):
            free.put(self._task(elsewhere=False))
        return free

    def _task(self, *, elsewhere: bool) -> _PieceTask:
        base = self.base
        known = vars(base).get("spec") or base.spec
        files = any(step.reads_files or step.spec_from_file for step in walk(base)) and not base.lasting
        top: Node = _Given(base if files else None, known, origin=base.origin)
        for step in reversed(self.chain):
            top = step.with_inputs((top,)).same_as(step)
        return _PieceTask(top, self.depth, elsewhere=elsewhere)

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
        kind, count = self.workers
        try:
            if kind == "threads":
                with run.pool(count) as pool:
                    lanes = _Threads(pool, self.tasks, run)
                    try:
                        yield from self._pieces(*place, lanes, run)
                    finally:
                        lanes.close()
            else:
                yield from self._in_processes(*place, run)
        except Closed:
            return  # the run was closed while it waited

    def _here(self, state: State, run: Run) -> Any:
        """What comes before a place at which pieces can begin, and that place; None at the end.

        The first element is made here, too: it decides what the next ones must look like.
        """
        settled = all(_is_settled(step) for step in self.chain)
        if settled and self._inside(state) is not None:
            return state
        stream = self.input.open(state, run.asking(run_ahead=0))
        try:
            for block, state in stream:
                yield block, state
                settled = settled or block.size > 0
                if settled and self._inside(state) is not None:
                    return state
        finally:
            stream.close()  # type: ignore[attr-defined]
        return None

    def _in_processes(self, before: State, over: int, run: Run) -> Stream:
        with self.workforce.lent() as processes:
            processes.drain(lambda: not run.cancelled.is_set())
            lanes = _Workers(processes, run, ", ".join([step.where() for step in reversed(self.chain)]))
            yield from self._pieces(before, over, lanes, run)

    def _pieces(self, before: State, over: int, lanes: Any, run: Run) -> Stream:
        counter = run.counter(self)
        counter.workers = self.workers[1]
        most = self.most or 2 * self.workers[1]
        source = _Source(self, before, over, run)
        waiting: deque[tuple[_Piece, Any]] = deque()
        try:
            while True:
                full = len(waiting) >= most or source.ended
                if waiting and (full or waiting[0][1] is None or lanes.ready(waiting[0][1])):
                    piece, sent = waiting.popleft()
                    if sent is None:  # an error of the base
                        result = self._alone((piece, run.tolerant, run.past_damage))
                    else:
                        result = counter.waits(lanes.receive, sent)
                        source.took(piece, result)
                    counter.worked += result.seconds
                    yield from self._delivered(result, run)
                elif full:
                    break
                elif (next_piece := source.next()) is not None:
                    failed = any(type(block) is Failure for block, _ in next_piece.blocks)
                    asked = (next_piece, run.tolerant, run.past_damage)
                    waiting.append((next_piece, None if failed else lanes.send(asked)))
        finally:
            source.close()
        if source.error is not None:
            raise source.error

    @cached_property
    def _alone(self) -> _PieceTask:
        return self._task(elsewhere=False)

    def _delivered(self, result: _Result, run: Run) -> Stream:
        for step, (blocks, rows, seconds) in zip(self.chain, result.counts, strict=True):
            counter = run.counter(step)
            counter.blocks += blocks
            counter.rows += rows
            counter.worked += seconds
        for made, state in result.items:
            yield (Failure(self._raised(made)) if isinstance(made, _Told) else made), state
        if result.error is not None:
            raise self._raised(result.error)

    def _raised(self, told: _Told) -> Exception:
        """An error of a worker, of which is known what was known there."""
        trouble = told.trouble
        trouble.located = trouble.told = True
        if told.step is not None:
            trouble.step = self.chain[told.step]
        told.error._distinput_trouble = trouble  # type: ignore[attr-defined]
        return told.error


def _is_settled(step: Node) -> bool:
    """Whether it is known what a step returns, so that no element decides it."""
    return all(
        step.claim.wanted is not None or getattr(step, "signature", None) is not None
        for step in getattr(step, "maps", (step,))
        if hasattr(step, "claim")
    )


class _Source:
    """Pieces of the base.

    Attributes:
      ended: whether all pieces were given.
      error: what ended the base.
    """

    def __init__(self, divided: _Divided, before: State, over: int, run: Run) -> None:
        self._divided, self._before, self._over = divided, before, over
        self._stream = divided.base.open(before, run.by_block())
        self._block: Block | None = None
        self._after = before
        self._first = 0  # row of the block in hand
        self._size = 1
        self.ended = False
        self.error: Exception | None = None

    def next(self) -> _Piece | None:
        """The next piece; None at the end."""
        parts: list[tuple[Block, State | None]] = []
        state: State | None = None
        left, over, deadline = self._size, 0, Run.clock() + _PIECE_SECONDS
        while left > 0 and (not parts or Run.clock() < deadline):
            if self._block is None and not self._pull():
                break
            assert self._block is not None
            if type(self._block) is Failure:
                if not parts:
                    parts.append((self._block, self._after))
                    state = self._divided._outside(self._before, self._first)
                    self._pass()
                break
            rows = self._block.rows(self._first, min(self._block.size, self._first + left))
            if state is None:
                state, over = self._divided._outside(self._before, self._first), self._first
            self._first += rows.size
            left -= rows.size
            if self._first < self._block.size:
                cut = self._divided_cut()
                return _Piece(state, [*parts, (rows, None)], over, cut)
            parts.append((rows, self._after))
            self._pass()
        return None if state is None else _Piece(state, parts, over, None)

    def took(self, piece: _Piece, result: _Result) -> None:
        """Choose the size of the next pieces by the time that one took, and by the bytes of its results."""
        rows = piece.rows
        nbytes = sum([made.nbytes for made, _ in result.items if isinstance(made, Block)])
        nbytes += sum([block.nbytes for block, _ in piece.blocks])
        if rows:
            most = min(
                _GROWTH * self._size, rows_within(rows, max(1, nbytes), _MOST_ROWS) if nbytes < MOST_BYTES * rows else 1
            )
            self._size = int(max(1, min(_PIECE_SECONDS * rows / max(result.seconds, 1e-9), most)))

    def close(self) -> None:
        """End the stream of the base."""
        self._stream.close()  # type: ignore[attr-defined]

    def _divided_cut(self) -> State:
        return {"input": self._before, "skip": self._first}

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
