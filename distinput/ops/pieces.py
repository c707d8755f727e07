# SPDX-License-Identifier: Apache-2.0
"""A piece: some elements of the base of a chain, and what the steps of the chain make of them, here or at a worker."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Never, final

import numpy as np

from distinput.columns.block import (
    MOST_ROWS,
    Block,
    ColumnBlock,
    Failure,
    Step,
    Trouble,
    fault_of,
    numbers_of,
    trace_text,
    trouble_of,
)
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import DistinputError
from distinput.files.paths import local_path
from distinput.files.source import stamp_of
from distinput.functions.workers import packed, sendable
from distinput.names.lazy import dataclass
from distinput.ops.reader import Reader
from distinput.ops.slices import Slices
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.nest import LEAF
from distinput.values.spec import Spec


class WorkPiece(NamedTuple):
    """What a worker needs.

    Args:
      state: of the chain, before the piece.
      blocks: of the base, each with the state after it; None: not all of the last block is in the piece.
      over: rows of the first block that are not sent: they stand before the mark.
      cut: the mark behind the last row, if the last block is not whole.
      stamps: of the files that hold the records, where the blocks are of their numbers; None: they are of the records.
      error: what ended the base behind these elements.
    """

    state: State
    blocks: list[tuple[Block, State | None]]
    over: int
    cut: State | None
    stamps: dict[str, str] | None = None
    error: Exception | None = None

    @property
    def rows(self) -> int:
        """Elements of the base."""
        return sum([block.size for block, _ in self.blocks])


class Told(NamedTuple):
    """An error, and what is known of it.

    Args:
      error: what was raised.
      trouble: without steps.
      step: which step of the chain it is of; None: it came from below.
      trace: the traceback of another process.
      met: which step of the chain met it first, a state of that step, and how many elements further; None: none of them.
    """

    error: Exception
    trouble: Trouble
    step: int | None
    trace: str = ""
    met: tuple[int, State, int] | None = None


class Result(NamedTuple):
    """What a worker made of a piece.

    Args:
      items: blocks or failures, each with the state after it.
      error: what ended the stream.
      seconds: of work.
      counts: blocks, rows and seconds of each step of the chain.
      unread: whether the records could not be read there, or are of another version.
    """

    items: list[tuple[Block | Told, State]]
    error: Told | None
    seconds: float
    counts: list[tuple[int, int, float]]
    unread: bool = False


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
    """A run over one piece. It leaves to the consumer which record an error is about: all that stands below is there alone."""

    piece: WorkPiece

    def note_record(self, error: Exception, step: Step, state: State | None, ahead: int) -> None:
        trouble = trouble_of(error)
        if not trouble.told and state is not None:
            trouble.told, trouble.met = True, (step, state, ahead)


@dataclass(frozen=True, eq=False)
class _PieceBase(Node):
    """Stands in the place of the base of a chain, and gives the elements of a piece.

    Args:
      known: what its elements look like.
    """

    tolerant: ClassVar[bool] = True
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


def in_place_of(base: Node) -> Node:
    """What stands in the place of the base of a chain, which is below it, and gives the elements of a piece."""
    return _PieceBase(base.spec, origin=base.origin)


_CUT: State = {"cut": True}


# ----------------------------------------------------------------------------
# Records that are read where they are needed: the base gives their numbers.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _NumbersInPlace(Node):
    """The numbers of the records of a reader that fetches, with the states that it has.

    Shapes: scalars. State: that of the reader.

    Args:
      input: the reader, over names in memory.
    """

    harmless = same_count = same_access = True
    input: Reader

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return ColumnBlock(LEAF, [Dense(np.asarray(rows, np.int64))], len(rows))

    def stream(self, state: State, run: Run) -> Stream:
        assert self.input.counts is not None
        _, ends = self.input.counts
        file = state["input"]["row"] + state["skip"]
        row = int(ends[file]) + (state["position"] or {"row": 0})["row"] if file < len(ends) - 1 else int(ends[-1])
        while row < ends[-1]:
            numbers = np.arange(row, min(row + MOST_ROWS, int(ends[-1])))
            row += len(numbers)
            after = self.input.start_at(row, 0)
            assert after is not None
            yield self.fetch(numbers, 0), after


def numbered(base: Node) -> tuple[Node, Reader] | None:
    """A base that gives numbers of records in the place of records, and their reader; None: it cannot.

    Between them stand only steps that choose by position. A record is read without many others. The files are local: where a
    name is another file, or none, its stamp tells.
    """
    if isinstance(base, Reader):
        slices = base.input if isinstance(base.input, Slices) and base.format.fetches else None
        if base.format.in_portions:  # a piece would cost what all records cost that are decoded with its own
            return None
        names = [] if slices is None else list(slices.block.elements())
        local = bool(names) and all(local_path(os.fsdecode(name)) for name in names)
        if not local or base.on_error not in (None, "raise"):
            return None
        with suppress(DistinputError, OSError):  # of a file that cannot be counted, told where it is read
            several = [] if base.counts is None else np.flatnonzero(np.diff(base.counts[1]) > 1).tolist()
            if several and base.format.seek(os.fsdecode(names[several[0]]), 1) is not None:
                return _NumbersInPlace(base, origin=base.origin), base
        return None
    if len(base.inputs) != 1 or base.keeps or not (base.by_position or base.shuffles):
        return None
    below = numbered(base.inputs[0])
    return None if below is None else (base.with_inputs((below[0],)), below[1])


def files_of(reader: Reader, blocks: list[tuple[Block, State | None]]) -> list[str]:
    """The files that hold the records with some numbers."""
    assert reader.counts is not None
    names, ends = reader.counts
    return [
        names[file] for block, _ in blocks for file in np.unique(np.searchsorted(ends, numbers_of(block), "right") - 1)
    ]


class PieceTask:
    """What a worker does with pieces.

    Args:
      top: the first step of a chain, over what `in_place_of` gave.
      depth: how many steps it has.
      elsewhere: whether results go to another process.
      reader: of the records of which pieces have the numbers.
    """

    def __init__(self, top: Node, depth: int, *, elsewhere: bool, reader: Reader | None = None) -> None:
        self.top, self.depth, self.elsewhere, self.reader = top, depth, elsewhere, reader
        self.counts = None if reader is None else reader.counts  # which no worker has to find out

    def __repr__(self) -> str:
        return ", ".join(map(str, self.steps))

    @property
    def steps(self) -> list[Node]:
        """The chain, its first step first."""
        return chain_below(self.top, self.depth)

    def __call__(
        self,
        given: tuple[WorkPiece, bool, bool],
        over: Callable[[], bool] | None = None,
        keep: Callable[[Block], Any] = lambda block: block,
    ) -> Result:
        """What the steps make of a piece, and of which errors.

        Args:
          given: the piece, and how its run is to treat errors.
          over: whether nobody wants the rest.
          keep: called with each block as soon as it is made; what it returns stands for the block.
        """
        piece, tolerant, past_damage = given
        steps = self.steps
        run = _PieceRun(steps)
        run.piece = piece
        run.asked = run.asked._replace(tolerant=tolerant, past_damage=past_damage)
        items: list[tuple[Block | Told, State]] = []
        last_error: Told | None = None
        begin = Run.clock()
        if piece.stamps is not None:
            try:
                run.piece = piece = self._read(piece)
            except Exception:  # noqa: BLE001 - the consumer reads them, and finds out where that fails
                return Result([], None, 0.0, [], unread=True)
        with run:
            stream = self.top.open(piece.state, run)
            try:
                for block, state in stream:
                    made = self._told(block.error, steps, piece) if type(block) is Failure else keep(self._made(block))
                    items.append((made, self._whole(state, piece)))
                    if over is not None and over():
                        break
            except Exception as error:  # noqa: BLE001 - raised when its turn comes
                last_error = self._told(error, steps, piece)
            finally:
                stream.close()  # type: ignore[attr-defined]
        counters = [run.counter(step) for step in steps]
        return Result(items, last_error, Run.clock() - begin, [(c.blocks, c.rows, c.own) for c in counters])

    def _read(self, piece: WorkPiece) -> WorkPiece:
        assert self.reader is not None
        assert piece.stamps is not None
        vars(self.reader)["counts"] = self.counts
        if any(stamp_of(path) != stamp for path, stamp in piece.stamps.items()):
            raise LookupError("another version of a file")
        return piece._replace(
            blocks=[(self.reader.fetch(numbers_of(block), 0), after) for block, after in piece.blocks]
        )

    def _made(self, block: Block) -> Block:
        return packed(block, "on_workers") if self.elsewhere else block.materialize()

    def _told(self, error: Exception, steps: list[Node], piece: WorkPiece) -> Told:
        trouble = trouble_of(error)
        places = {id(step): place for place, step in enumerate(steps)}
        index, met = places.get(id(trouble.step)), None
        if trouble.met is not None:
            step, state, ahead = trouble.met
            place = places.get(id(step))
            met = None if place is None else (place, self._whole(state, piece, place), ahead)
        trouble.met = None
        if not self.elsewhere:
            return Told(error, trouble, index, met=met)
        fault_of(error)  # which its traceback tells
        notes = vars(error).pop("__notes__", [])
        trace = trace_text(error)
        vars(error).pop("_distinput_trouble", None)
        for note in notes:  # which are no part of the trace, or they would be told twice
            error.add_note(note)
        return Told(sendable(error), replace(trouble, step=None), index, trace, met)

    def _whole(self, state: State, piece: WorkPiece, place: int = 0) -> State:
        """A state of one of the steps, in which the place behind the last row is one of the base."""
        return state if piece.cut is None else _replaced(state, self.steps[place:], piece.cut)


def chain_below(top: Node, depth: int) -> list[Node]:
    """A step and those below it, `depth` in all."""
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
