# SPDX-License-Identifier: Apache-2.0
"""`interleave`: the elements of several datasets, one made of each element, taking turns."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property, partial
from heapq import heappush, heapreplace
from itertools import chain, islice
from threading import Event
from typing import Any, ClassVar, NamedTuple

import numpy as np

from distinput.columns.block import MOST_BYTES, Block, ColumnBlock, Failure, concat_blocks
from distinput.columns.column import Column, Ints, Strings
from distinput.columns.ragged import Objects, Views
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import Mark, State, is_mark
from distinput.errors import InvalidArgumentError, StateError
from distinput.functions.claim import alike
from distinput.functions.dataset_functions import next_made
from distinput.names.lazy import dataclass
from distinput.ops.flat_map import MakesDatasets
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.plan.check import AUTOTUNE, at_least, integer, parallel_calls
from distinput.plan.fingerprint import misfit, taken_up
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node
from distinput.run.run import Run, thread_use
from distinput.run.threads import cores
from distinput.streaming.buffered import AGAIN, SELDOM, Buffer, buffered
from distinput.values.leaves import STRING

_READ_AHEAD_ROWS = 1024

_COMMON_CYCLE = 16
"""Datasets that an `interleave` without `cycle_length` opens at a time on each of several workers."""

_SLOW_SECONDS, _SLOW_FILES = 0.005, 3
"""A thread costs about a millisecond of work: it is worth that for files that take longer, so many of them in a row."""

_LONG_BYTES = 4096
"""From this mean size on, byte strings are long."""

_FEW_FILES = 8
"""So many small files are read together, also where fewer may be open, unless those have `_MUCH_BYTES`."""

_MUCH_BYTES = 4 << 20
"""Files of so many bytes are enough to read together: more would leave the caches before they are handed out."""

_THREADS_OF_ONE = 3
"""TensorFlow's ratio of threads to open datasets where it chooses both numbers."""


@dataclass(frozen=True, eq=False)
class Interleave(MakesDatasets):
    """The elements of the datasets that `map_func` makes of each element, with `cycle_length` of them taking turns.

    A turn is `block_length` elements. When a dataset ends, its turn ends at once; the dataset of the next element takes its
    place when the round comes back to it.

    Shapes: those of the elements of these datasets. State: the elements whose datasets are open, and their states.

    Args:
      map_func: called as `map` calls its function; returns a dataset.
      cycle_length: how many datasets are open at a time. None or AUTOTUNE: as many as the process has cores; a third of that
        with `num_parallel_calls=AUTOTUNE`, and never more than any other `num_parallel_calls`. The order then depends on the
        number of cores, unless the dataset is distributed over several workers.
      block_length: elements in a turn; 1 if None.
      num_parallel_calls: how many of them are read ahead, on threads; at most `cycle_length`, or AUTOTUNE.
      deterministic: accepted as TensorFlow's; the order is kept either way.

    Raises:
      InvalidArgumentError: `cycle_length` or `block_length` below 1, `num_parallel_calls` above `cycle_length`.

    >>> import distinput as di
    >>> di.data.Dataset.range(1, 4).interleave(lambda x: di.data.Dataset.from_tensors(x).repeat(2), cycle_length=2).to_list()
    [1, 2, 1, 2, 3, 3]

    Source: `tf.data.Dataset.interleave`; tensorflow/core/kernels/data/interleave_dataset_op.cc for the turns.
    """

    by_element: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.PART
    cycle_length: int | None = None
    block_length: int | None = None
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    common_cycle: int = field(default=0, kw_only=True, repr=False)
    """Without `cycle_length`: the number that workers which share the elements use; 0: each counts its own cores."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cycle_length is not None and integer("interleave", "cycle_length", self.cycle_length) != AUTOTUNE:
            at_least("interleave", "cycle_length", self.cycle_length, 1)
        if self.block_length is not None:
            at_least("interleave", "block_length", self.block_length, 1)
        parallel_calls("interleave", self.num_parallel_calls)
        if self.num_parallel_calls is not None and self.is_fixed and self.num_parallel_calls > self.cycle:
            raise InvalidArgumentError(
                f"interleave: num_parallel_calls must be at most cycle_length {self.cycle}, got {self.num_parallel_calls}"
            )

    @property
    def is_fixed(self) -> bool:
        """Whether `cycle_length` is a number."""
        return self.cycle_length is not None and self.cycle_length != AUTOTUNE

    @cached_property
    def cycle(self) -> int:
        """How many datasets are open at a time. Without `cycle_length` it depends on the number of cores, as in TensorFlow."""
        if self.is_fixed:
            return int(self.cycle_length)  # type: ignore[arg-type]
        return self.common_cycle or default_cycle(self.num_parallel_calls)

    @cached_property
    def pace(self) -> "_Pace":
        """What is known of small files that were read in turn, from pass to pass."""
        return _Pace()

    @property
    def cardinality(self) -> int:
        # In TensorFlow this holds for the parallel interleave of an infinite input, but not for the plain one.
        endless = self.num_parallel_calls is not None and self.input.cardinality == INFINITE
        return INFINITE if endless else UNKNOWN

    def alike_everywhere(self) -> Node:
        if self.is_fixed:
            return self
        return replace(self, common_cycle=max(_COMMON_CYCLE, self.num_parallel_calls or 0)).same_as(self)

    def start(self, epoch: int) -> State:
        begin = {"epoch": epoch, "input": self.input.start(epoch), "skip": 0}
        return {**begin, "turn": 0, "done": 0, "cycle": self.cycle, "slots": []}

    def state_misfit(self, state: State) -> str | None:
        turn, slots, cycle = state["turn"], state["slots"], state["cycle"]
        fits = turn < cycle and turn <= len(slots) <= cycle and state["done"] < int(self.block_length or 1)
        if not fits or not all(slot is None or _is_slot(slot) for slot in slots):
            return "interleave: 'turn', 'done', 'cycle' and 'slots' do not go together"
        marks = [slot["element"]["input"] for slot in slots if slot is not None]
        return next(filter(None, [misfit(self.input, mark) for mark in marks]), None)

    def stream(self, state: State, run: Run) -> Stream:
        cycle = _Cycle(self, state, run)
        for block in cycle.blocks():
            yield block, cycle.state()
            del block  # its memory is not held while the next ones are read


def _is_slot(slot: Any) -> bool:
    return isinstance(slot, dict) and is_mark(slot.get("element")) and is_mark(slot.get("inner"))


class _Pace:
    """Whether small files are read in turn although threads were asked for: a thread for each costs more than they do.

    Where several in a row take long, as on a disk that is slow, or where decoding is, threads read them for a while. What is
    delivered does not depend on it.
    """

    def __init__(self) -> None:
        self._slow, self._until, self._lasts = 0, 0.0, AGAIN
        self.like: Reader | None = None
        """The reader of the file that was opened last, if it reads others in their place too."""

    @property
    def in_turn(self) -> bool:
        """Whether the next one is read without a thread."""
        return Run.clock() >= self._until

    def took(self, seconds: float, worked: float, waits: int) -> None:
        """Count a file that was read in turn.

        Args:
          seconds: on the clock.
          worked: of these, on a core; a busy machine lets this thread work only now and then, which no thread would change.
          waits: how often it waited for something else than a core.
        """
        slow = seconds > _SLOW_SECONDS and (waits > 0 or worked > _SLOW_SECONDS)
        self._slow = self._slow + 1 if slow else 0
        if self._slow >= _SLOW_FILES:
            self._slow, self._until, self._lasts = 0, Run.clock() + self._lasts, min(2 * self._lasts, SELDOM)

    def timed(self, stream: Stream) -> Stream:
        """The stream of such a file, which counts once it has been read to its end."""
        seconds, worked, waits = 0.0, 0.0, 0
        try:
            while True:
                begin, before = Run.clock(), thread_use()
                item = next(stream, None)
                seconds += Run.clock() - begin
                used = thread_use() - before
                worked, waits = worked + used.seconds, waits + used.waits
                if item is None:
                    self.took(seconds, worked, waits)
                    return
                yield item
        finally:
            stream.close()  # type: ignore[attr-defined]


class _Slot:
    """One open dataset of a cycle: the mark of its element, its rows, and the buffer in which a thread makes them.

    Attributes:
      requested: set once the last bytes that its thread reads have been requested.
      whole: all rows of a file and the state after them, if they were read at once.
    """

    __slots__ = ("buffer", "counted", "mark", "number", "requested", "rows", "whole")

    def __init__(
        self,
        stream: Stream,
        made: "_Made",
        inner: Mark,
        buffer: Buffer | None,
        requested: Event | None,
        whole: tuple[Block, State] | None = None,
    ) -> None:
        self.mark, self.number, self.buffer, self.whole = made.mark, made.number, buffer, whole
        self.requested, self.counted = requested, False
        self.rows = RowQueue(stream, inner)

    def state(self) -> State:
        """Where its element stands, which dataset of the pass it is, and where its next row stands."""
        made = {"element": self.mark, "inner": self.rows.mark()}
        return made if self.number is None else {**made, "number": self.number}

    def taken_whole(self) -> "_Whole | None":
        """The file, of which all rows were read at once, and how many of them were taken."""
        if self.whole is None:
            return None
        self.rows.fill(1)
        block, after = self.whole
        return _Whole(self.mark, block, after, block.size - self.rows.size)

    @property
    def nearly_read(self) -> bool:
        """Whether all that its thread reads is there, or on its way."""
        if self.buffer is None or self.requested is None:
            return False
        return self.buffer.complete or self.requested.is_set()


class _Made(NamedTuple):
    """A dataset that was made of an element: which one it is of the pass, if the state tells, and the mark of the element."""

    node: Node
    given: Any
    mark: Mark
    number: int | None


@dataclass
class _Whole:
    """A small file that was read at once: the mark of its name, its rows, the state after them, and how many were taken.

    `first` is the number of its first row among those of all files that are looked at together.
    """

    mark: Mark
    rows: Block
    after: State
    taken: int = 0
    first: int = 0

    @property
    def left(self) -> int:
        """Rows that were not taken."""
        return self.rows.size - self.taken


class _Next(NamedTuple):
    """What comes of the next element: its mark and number, and the dataset that it made, or the error in its place."""

    mark: Mark
    number: int | None
    made: _Slot | Failure | Exception


class _Cycle:
    """The open datasets of one interleave, whose turn it is, and how much of the turn is over.

    Where all of them are read ahead, those that come next are opened before their turn, so that what each of them waits for is
    waited for once: as many as the cycle has room for, and one more for each dataset whose last bytes have been requested. Only
    elements that are there already make them: none is asked for before its turn.
    """

    def __init__(self, op: Interleave, state: State, run: Run) -> None:
        self.singly = run.by_element
        run = run.one_by_one().by_block()
        count = op.input.cardinality
        together = state["cycle"] if count < 0 else max(1, min(state["cycle"], count))
        few = together <= _COMMON_CYCLE and run.asked.room is None  # each of them is read as one alone
        self.op, self.run, self.epoch = op, run if few else run.sharing(together), state["epoch"]
        self.turn, self.done = state["turn"], state["done"]
        self.block_length = int(op.block_length or 1)
        self.queue = RowQueue(op.input.open(state["input"], run), state)
        self.cycle = state["cycle"]  # it may have been saved on a machine with more cores
        self.slots: list[_Slot | None] = [None] * len(state["slots"])  # they are added as elements come, up to `cycle`
        self.states: list[State | None] = []  # of the slots, as they were when last asked for
        self.moved: set[int] = set(range(len(self.slots)))  # the slots whose states have changed since then
        self.waiting: deque[_Next] = deque()  # opened before their turn
        self.room = self.cycle  # how many more may be opened
        self.begun = False  # whether one was opened, whose first element comes before those of others
        # Reads a file as all others are read that an element names; that of the pass before spares this one its first dataset.
        self.like: Reader | None = None if run.tolerant else op.pace.like
        self.apart = False  # whether some of them cannot be read together
        self.number = op.first_number(state, begins=not state["slots"])  # of the next dataset
        for index, slot in enumerate(state["slots"]):
            if slot is not None:
                stream = op.input.open(slot["element"]["input"], run)
                element = RowQueue(stream, slot["element"])
                if not element.fill(1):
                    raise StateError(
                        "interleave: the state is damaged: there is no element where one of its datasets was made"
                    )
                given = element.take(1).row(0)
                stream.close()  # type: ignore[attr-defined]
                number = slot.get("number")
                made = _Made(op.call(given, number), given, slot["element"], number)
                self.slots[index] = self._opened(index, made, slot["inner"])
        op.decide(run)

    def _reads_ahead(self, index: int) -> bool:
        """Whether the dataset in this place may be read ahead, on a thread."""
        calls = self.op.num_parallel_calls
        return calls is not None and self.run.run_ahead is None and (calls == AUTOTUNE or index < calls)

    def _in_turn(self, index: int) -> bool:
        """Whether a small file is read in turn: no thread was asked for, or it would cost more than it saves."""
        return not self._reads_ahead(index) or self.op.pace.in_turn

    def _opened(self, index: int, made: _Made, inner: Mark | None) -> _Slot:
        op, run, node = self.op, self.run, made.node
        self.like = op.pace.like = op.like(node, run)
        saved = inner or {"input": None, "skip": 0}
        inner = {**saved, "input": taken_up("interleave", node, self.epoch, saved["input"])}
        state = inner["input"]
        stream = self._quickly_read(index, node, state)
        requested = buffer = None
        if stream is None and node.may_fail and self._reads_ahead(index):  # the others neither read nor call anything
            most = min(MOST_BYTES, run.asked.room or MOST_BYTES)
            ahead, buffer = Prefetch(node, _READ_AHEAD_ROWS, origin=node.origin), Buffer(_READ_AHEAD_ROWS, most)
            requested = Event()
            rows = node.open(state, run.apart().asking(requested=requested.set))
            stream = run.watch(ahead, buffered(rows, buffer, run, run.counter(ahead), at_once=True), state)
        return self._slot(stream or node.open(state, run), made, inner, buffer, requested)

    def _slot(
        self,
        stream: Stream,
        made: _Made,
        inner: Mark,
        buffer: Buffer | None = None,
        requested: Event | None = None,
        whole: tuple[Block, State] | None = None,
    ) -> _Slot:
        op, self.begun, self.room = self.op, True, self.room - 1
        checked = alike("interleave", stream, op.claim, lambda: op.spec, made.given, tolerant=self.run.tolerant)
        return _Slot(checked, made, inner, buffer, requested, whole)

    def _file(self, index: int) -> _Slot | None:
        """The next file, if it is small and read in turn as one before it was: its own dataset costs more than it."""
        like, small = self.like, self._small_next(index)
        if like is None or small is None:
            return None
        name, nbytes = small
        made, state = _Made(like, name, self.queue.mark(), None), like.start(0)
        self.queue.skip(1)
        stream, found = self._timed(like, self._records(like, name)), list[tuple[Block, State]]()
        if self._at_once(nbytes):
            try:
                found = list(islice(stream, 2))  # more than one block may be many, of a file that was compressed
            except Exception:  # noqa: BLE001 - raised behind the records before it
                stream = self._timed(like, self._records(like, name))
        whole = found[0] if len(found) == 1 else None
        stream = chain(found, stream) if found else stream
        return self._slot(stream, made, {"input": state, "skip": 0}, whole=whole)

    def _timed(self, like: Reader, stream: Stream) -> Stream:
        return self.run.watch(like, self.op.pace.timed(stream))

    def _small_next(self, index: int) -> tuple[bytes, int] | None:
        """The name and the size of the next file, if it is read in this place in turn, because it is small."""
        if self.like is None or not self.queue.size or not self._in_turn(index):
            return None
        name = self.queue.peek(1).shown(0)
        nbytes = self.like.small_bytes(name) if isinstance(name, bytes) else None
        return None if nbytes is None else (name, nbytes)

    @property
    def _whole(self) -> bool:
        """Whether all of a small file is read at once: not of the first one, nor where many are open and each holds little."""
        return self.begun and self.cycle <= _COMMON_CYCLE

    def _at_once(self, nbytes: int) -> bool:
        """Whether all of a small file of so many bytes is read at once: no more than its reader may hold."""
        room = self.run.asked.room
        return self._whole and (room is None or nbytes <= room)

    def _quickly_read(self, index: int, node: Node, state: State) -> Stream | None:
        """The records of a small file that is read in turn; None: it is not."""
        if not (self._in_turn(index) and isinstance(node, Reader) and node.is_small):
            return None
        return self.op.pace.timed(node.open(state, self.run.asking(later=self._whole)))

    def _made(self, index: int) -> _Next:
        """What comes of the next element, which must be there."""
        mark, number = self.queue.mark(), self.number
        try:
            if self.op.through is not None:
                _ = self.op.spec  # no error of an element, which may be left out
            slot = self._file(index)
            if slot is not None:
                return _Next(mark, number, slot)
            node, given = next_made(self.queue, partial(self.op.call, number=number), self.run)
            if isinstance(node, Failure):
                return _Next(mark, number, node)
            self.number = None if number is None else number + 1
            return _Next(mark, number, self._opened(index, _Made(node, given, mark, number), None))
        except Exception as error:  # noqa: BLE001 - raised when its turn has come
            return _Next(mark, number, error)

    def _open_ahead(self) -> None:
        """Open datasets whose turn has not come, as far as there is room for them."""
        while self.room > 0 and self.queue.size and len(self.waiting) < self.cycle:
            last = self.cycle - 1
            if (self.waiting and isinstance(self.waiting[-1].made, Exception)) or not self._reads_ahead(last):
                return
            if self._small_next(last) is not None:  # no thread would begin to read
                return
            self.waiting.append(self._made(last))

    def _more(self) -> bool:
        """Whether there is another element, or a failure in its place."""
        return bool(self.waiting) or self.queue.fill(1) or self.queue.failure is not None

    def _look(self, slot: _Slot, *, ended: bool = False) -> None:
        """Make room for another dataset once this one has been read to its end, or its last bytes have been requested."""
        if slot.nearly_read or ended:
            self.room += not slot.counted
            slot.counted = True

    def blocks(self) -> Iterator[Block]:
        """The elements, turn by turn."""
        while True:
            together = self._files_together()
            if together is not None:
                yield together
                del together
                continue
            if self.turn == len(self.slots):
                if not self._more():
                    if all(other is None for other in self.slots):
                        return
                    self.turn = 0
                    continue
                self.slots.append(None)
            self.moved.add(self.turn)
            slot = self.slots[self.turn]
            if slot is None and self._more():
                made = (self.waiting.popleft() if self.waiting else self._made(self.turn)).made
                if isinstance(made, Exception):
                    raise made
                if isinstance(made, Failure):  # the next element makes the dataset of this turn
                    yield made
                    continue
                slot = self.slots[self.turn] = made
            if slot is None:
                if all(other is None for other in self.slots):
                    return
                self._pass_on()
                continue
            self._look(slot)
            self._open_ahead()
            rounds = self._whole_rounds() if self.done == 0 else 0
            if rounds > 1:
                yield self._rounds(rounds)
            elif slot.rows.fill(1):
                block = slot.rows.take(min(self.block_length - self.done, slot.rows.front))
                self.done += block.size
                if self.done == self.block_length:
                    self._pass_on()
                yield block
            elif slot.rows.failure is not None:  # its turn is not over
                yield slot.rows.passed()
            else:
                self._look(slot, ended=True)
                self.slots[self.turn] = None
                self._pass_on()

    def _files_together(self) -> Block | None:
        """The elements of the next files, at least as many as may be open, if they are small and read in turn.

        Their turns are counted, and their elements put in order at once. Files that are not used up stay open.
        """
        like, names = self.like, self.queue
        if like is None or self.apart or self.done or self.waiting or names.size < self.cycle:
            return None
        if not (self._whole and self._reads_ahead(self.cycle - 1) and self._in_turn(self.cycle - 1)):
            return None
        if any(slot is not None and slot.whole is None for slot in self.slots):
            return None
        count = min(names.size, max(self.cycle, _FEW_FILES))
        waiting, begin, before = names.size, Run.clock(), thread_use()
        read = self._read_together(like, list(names.peek(count).elements()))
        together = next(self.run.watch(like, read), None)
        used = thread_use() - before
        files = waiting - names.size or count
        self.op.pace.took((Run.clock() - begin) / files, used.seconds / files, used.waits)
        self.apart = together is None
        return None if together is None else together[0]

    def _read_together(self, like: Reader, names: list[bytes]) -> Stream:
        """See `_files_together`; nothing where files must be read one by one, or where one cannot be read."""
        blocks: list[tuple[Block, State]] = []
        left = _MUCH_BYTES
        for number, name in enumerate(names, 1):
            with suppress(Exception):  # said where it is read alone
                if (nbytes := like.small_bytes(name)) is not None and self._at_once(nbytes):
                    left -= nbytes
                    records = islice(self._records(like, name), 2)  # a second one ends it
                    blocks += [(self._handed(block), after) for block, after in records]
            if len(blocks) != number:
                return
            if number >= self.cycle and left < 0:
                break
        in_slots = [None if slot is None else slot.taken_whole() for slot in self.slots]
        self.room += sum([slot is not None and not slot.counted for slot in self.slots])
        files, rows = [file for file in in_slots if file is not None], 0
        following = []
        for block, after in blocks:
            following.append(_Whole(self.queue.mark(), block, after))
            self.queue.skip(1)
        files += following
        for file in files:
            file.first, rows = rows, rows + file.rows.size
        order = self._turns(in_slots, following)
        self.slots = [None if file is None else self._kept(like, file) for file in in_slots]
        self.moved.update(range(len(self.slots)))
        yield concat_blocks([file.rows for file in files]).take(order), {}

    def _turns(self, in_slots: "list[_Whole | None]", following: "list[_Whole]") -> Ints:
        """The numbers of the rows in the order of their turns, until a file would be opened that is not there.

        Args:
          in_slots: the files that are open, which change.
          following: those that are opened next, at least as many as may be open.
        """
        cycle, length = self.cycle, self.block_length
        rows = following[-1].first + following[-1].rows.size
        # A row is put in order by its turn and its number, which are one number: turn * rows + number.
        one_round = cycle * rows
        # turns are counted from the first one of slot 0 on; a file has one more than it fills, in which it is found to end
        free: list[int] = []  # a heap: the turns in which a slot has no file
        files: list[tuple[int, int, _Whole]] = []  # the first turn of each, and the rows that it has
        in_slots += [None] * (cycle - len(in_slots))
        for slot, file in enumerate(in_slots):
            turn = slot + cycle * (slot < self.turn)
            if file is not None:
                files.append((turn, file.left, file))
                turn += cycle * (file.left // length + 1)
            heappush(free, turn)
        for file in following:
            turn, left = free[0], file.left
            in_slots[turn % cycle] = file
            files.append((turn, left, file))
            heapreplace(free, turn + cycle * (left // length + 1))
        stop = free[0]
        placed = np.concatenate(
            [_placed(turn * rows + file.first + file.taken, left, length, one_round) for turn, left, file in files]
        )
        placed.sort(kind="stable")  # runs of sorted numbers are merged
        taken: Ints = placed[: placed.searchsorted(stop * rows)] % rows
        for turn, left, file in files:
            file.taken += min(left, -(-max(0, stop - turn) // cycle) * length)
        for turn in free:
            if turn - cycle < stop:
                in_slots[turn % cycle] = None
        self.turn = stop % cycle
        return taken

    def _kept(self, like: Reader, file: "_Whole") -> _Slot:
        """A file that stays open."""
        inner, whole = {"input": like.start(0), "skip": file.taken}, (file.rows, file.after)
        self.room -= 1
        return _Slot(iter([whole]), _Made(like, None, file.mark, None), inner, None, None, whole)

    def _records(self, like: Reader, name: bytes) -> Stream:
        """The records of a small file."""
        return like.other(os.fsdecode(name), self.run, like.group if self._whole else 0, lambda: self.op.call(name))

    def _pass_on(self) -> None:
        self.turn, self.done = (self.turn + 1) % self.cycle, 0

    def _whole_rounds(self) -> int:
        """For how many rounds every open dataset has a full turn waiting; 0 if an ended one could be replaced."""
        if (self.waiting or not self.queue.ended) and (len(self.slots) < self.cycle or None in self.slots):
            return 0
        return min(slot.rows.size for slot in self.slots if slot is not None) // self.block_length

    def _rounds(self, rounds: int) -> Block:
        """The elements of so many whole rounds from the current turn on, after which it is the same turn again."""
        order = self.slots[self.turn :] + self.slots[: self.turn]
        open_slots = [slot for slot in order if slot is not None]
        self.moved.update(range(len(self.slots)))
        for slot in open_slots:
            self._look(slot)
        taken = [part for slot in open_slots for part in slot.rows.take_parts(rounds * self.block_length)]
        return self._braided([self._handed(part) for part in taken], rounds)

    def _handed(self, block: Block) -> Block:
        """The same elements, with long byte strings that stay where they are until each is handed out."""
        if not self.singly:
            return block
        return ColumnBlock(block.structure, [_unmoved(each) for each in block.columnar().columns], block.size)

    def _braided(self, parts: list[Block], rounds: int) -> Block:
        """The elements of datasets that stand one after the other, so many rounds of each, in turns."""
        # rows stand as [slot, round, place in the turn] and leave as [round, slot, place]
        places = np.arange(sum(part.size for part in parts))
        turned = places.reshape(-1, rounds, self.block_length).transpose(1, 0, 2).reshape(-1)
        return concat_blocks(parts).take(turned)

    def state(self) -> State:
        """Where the next element stands, and the state of every open dataset."""
        self.states += [None] * (len(self.slots) - len(self.states))
        for index in self.moved:
            slot = self.slots[index]
            self.states[index] = None if slot is None else slot.state()
        self.moved.clear()
        place = {"turn": self.turn, "done": self.done, "cycle": self.cycle, "slots": self.states.copy()}
        mark, number = (
            (self.waiting[0].mark, self.waiting[0].number) if self.waiting else (self.queue.mark(), self.number)
        )
        return {"epoch": self.epoch, **mark, **place, **({} if number is None else {"number": number})}


def _placed(first: int, count: int, length: int, step: int) -> Ints:
    """So many numbers from `first` on, of which each `length` come `step` behind those before."""
    if length == 1:
        return np.arange(first, first + count * (step + 1), step + 1)
    numbers = np.arange(count)
    return first + numbers + numbers // length * step


def _unmoved(column: Column) -> Column:
    """Long byte strings one by one, since joining them takes longer than handling objects of Python; others as they are."""
    if type(column) is not Strings or column.starts.ndim > 1:
        return column
    if int(np.add.reduce(column.sizes)) < _LONG_BYTES * len(column):
        return column
    return Views(column.views(), STRING) if column.made is None else Objects(column.made.tolist(), STRING)


def default_cycle(num_parallel_calls: int | None) -> int:
    """How many datasets an `interleave` without `cycle_length` opens at a time.

    Source: tensorflow/core/kernels/data/interleave_dataset_op.cc and parallel_interleave_dataset_op.cc.
    """
    if num_parallel_calls is None:
        return cores()
    if num_parallel_calls == AUTOTUNE:
        return -(-cores() // _THREADS_OF_ONE)
    return min(int(num_parallel_calls), cores())
