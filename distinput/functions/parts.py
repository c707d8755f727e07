# SPDX-License-Identifier: Apache-2.0
"""The elements of a stream in parts that are worked on elsewhere, several at a time; their results come in order."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

from distinput.arrow.adopt import Promise, adopt, all_known, owned
from distinput.columns.block import MOST_BYTES, Block, Failure, of_all, rows_within
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import Mark, State
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.functions.chain import Chain, Kinds
from distinput.functions.claim import MadeBlock, behind, formed
from distinput.functions.compiled import Compiled
from distinput.run.run import OpCounters, Run, stopped
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Items of an object with a length, read by position: what is called for `from_source`, as functions are for `map`.
# ----------------------------------------------------------------------------


class Reads:
    """Reads items of a source: one by one with `__getitem__`, or many in one call if it has `__getitems__`.

    It stands where a chain of functions stands, with positions as the elements.

    Args:
      source: has `__len__` and `__getitem__`.
      length: how many items it had when the dataset was made.
      copy: False: it does not change an array that it has given.
      said: what the user says about the items.

    Attributes:
      lends: whether arrays in the items are the source's own, which nobody may write to.
    """

    settled, kinds = True, ()  # as a chain of one function

    def __init__(self, source: Any, length: int, *, copy: bool = True, said: Spec | None = None) -> None:
        self.source, self.length, self.copy, self.said = source, length, copy, said
        plain = type(source) in (list, tuple)  # no function runs that could change an item
        self.lends = plain or not copy
        self._looked_at: Callable[[Any], Any] | None = (
            None if plain else owned if copy else Promise("from_source: the source")
        )
        self._many: Callable[[list[int]], Sequence[Any]] | None = getattr(source, "__getitems__", None)

    @property
    def functions(self) -> tuple[Any, ...]:
        """What is called, for messages."""
        return (self.source,)

    def settle(self, kinds: tuple[Spec | None, ...]) -> None:
        """Do nothing: there are no functions whose results the next one gets."""

    def results(self, rows: Block) -> Iterator[Any]:
        """The items at these positions, read as they are requested; an array that the source may still change is copied."""
        self.check_length()
        indices = list(map(int, rows.elements()))
        items = map(self.source.__getitem__, indices) if self._many is None else self._together(indices)
        if self._looked_at is not None:
            return map(self._looked_at, items)
        listed = list(items)  # of a list, so that no function runs
        return iter(listed) if all_known(listed) else map(adopt, listed)

    def check_length(self) -> None:
        """Refuse a source that has another length than it had when the dataset was made.

        Raises:
          FailedPreconditionError: it has.
        """
        length = len(self.source)
        if length != self.length:
            raise of_all(
                FailedPreconditionError(
                    f"from_source: the source must keep its length while it is read, got {length} items now and {self.length} "
                    "when the dataset was made; make the dataset again after the source has changed"
                )
            )

    def place(self, error: BaseException, element: Any) -> tuple[int, Any]:
        """Which function raised an error, and its argument."""
        return 0, element

    def told(self, given: Any) -> str:
        """A position in words, for notes on errors."""
        return f"index {int(given)} of a {type(self.source).__qualname__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Reads, copy=self.copy, said=self.said), (self.source, self.length)

    def _together(self, indices: list[int]) -> Iterator[Any]:
        """The items of one call; if it fails, those of one call each, so that those before the error are delivered."""
        assert self._many is not None
        items: list[Any] = []
        try:
            items += self._many(indices)
        except Exception as error:
            if len(indices) == 1:
                raise
            for index in indices[:-1]:
                yield from self._many([index])
            self._many(indices[-1:])
            error.add_note(f"__getitems__ failed for {len(indices)} positions, each of which can be read alone")
            raise
        if len(items) != len(indices):
            raise InvalidArgumentError(
                f"from_source: __getitems__ must return one item for each index, got {len(items)} for {len(indices)} indices"
            )
        items.reverse()
        while items:
            yield items.pop()  # held by nobody else, so `owned` need not copy its arrays


# ----------------------------------------------------------------------------
# The elements of a stream in parts for threads and processes, and the results of calling functions on a part.
#
# A part takes a few milliseconds, however long one call takes: handing it over costs some microseconds for a thread and
# some tens of microseconds for a process, and the first element waits for its whole part.
# ----------------------------------------------------------------------------


Calls = Chain | Compiled | Reads

Note = Callable[[Exception, int, str], None]
"""Called with an error, the index of the function that raised it, and the element in words."""

Results = Iterator[MadeBlock]

_PART_SECONDS, _MOST_ROWS = 0.005, 4096


class Parts:
    """The elements of a stream in parts, with the marks after their rows.

    An error of the stream is raised after the elements before it; a failure in the stream is a part of its own. If results have
    `alone_bytes` or more, a part holds one element, so that nobody has to put large arrays side by side.
    """

    def __init__(self, upstream: Stream, state: State, most: int | None = None, alone_bytes: int = MOST_BYTES) -> None:
        self._most, self._alone_bytes = most or _MOST_ROWS, alone_bytes
        self._blocks = passing_over(upstream, state)
        self._rows: Block | None = None
        self._at: Callable[[int], Mark] = lambda _: {}
        self._first = 0
        self._failure: Exception | None = None
        self.size = 1
        self.large = False
        self.ended = False

    def next(self) -> tuple[Block, Callable[[int], Mark]] | None:
        """At most `size` elements, with a function that gives the mark after so many of them; None at the end."""
        if self._rows is None or self._first >= self._rows.size:
            try:
                self._rows, _, _, self._at = next(self._blocks)
            except StopIteration:
                self.ended = True
                return None
            except Exception as error:  # noqa: BLE001 - raised again by `close`
                self.ended, self._failure = True, error
                return None
            self._first = 0
            if type(self._rows) is Failure:
                failure, self._rows = self._rows, None
                return failure, self._at
        first, at = self._first, self._at
        part = self._rows.rows(first, first + self.size)
        self._first += part.size
        return part, lambda done: at(first + done)

    @property
    def empty(self) -> bool:
        """Whether the next part needs another block."""
        return self._rows is None or self._first >= self._rows.size

    def took(self, done: "Done") -> None:
        """Choose the size of the next parts by the time that one took, and by the bytes of its results."""
        if rows := done.rows:
            nbytes = sum([part.nbytes for part in done.parts if isinstance(part, Block)])
            most = min(4 * self.size, rows_within(rows, nbytes, self._most)) if nbytes < self._alone_bytes * rows else 1
            self.size = int(max(1, min(_PART_SECONDS * rows / max(done.seconds, 1e-9), most)))
            self.large = nbytes > MOST_BYTES * rows

    def waiting(self, workers: int) -> int:
        """How many parts may be in progress: two for each worker, so that none is idle, unless they take much memory."""
        return workers if self.large else 2 * workers

    def close(self) -> None:
        """Raise the error that ended the stream, if one did."""
        if self._failure is not None:
            raise self._failure


@dataclass
class FailedCall:
    """An error of a call: the index of the function, the element in words, and the traceback of another process."""

    error: Exception
    index: int
    element: str
    trace: str = ""


@dataclass
class Done:
    """The results of a part in blocks, with an error in the place of each missing result.

    From another process, also the specs of what the functions before the last return.
    """

    parts: list[Block | FailedCall]
    seconds: float = 0.0
    kinds: Kinds = ()

    @property
    def rows(self) -> int:
        """How many results there are."""
        return sum([part.size for part in self.parts if isinstance(part, Block)])

    def delivered(self, given: Block, at: Callable[[int], Mark], note: Note, *, tolerant: bool) -> Results:
        """The results for the elements `given`. If `tolerant`, errors are failures; otherwise the first one is raised."""
        done = 0
        for part in self.parts:
            if isinstance(part, Block):
                yield part, behind(at, done), given.rows(done, done + part.size)
                done += part.size
                continue
            note(part.error, part.index, part.element)
            if not tolerant:
                raise part.error
            done += 1
            yield Failure(part.error), behind(at, done), given.rows(done, done)


@dataclass(frozen=True, eq=False)
class Calling:
    """Functions that are called in a pass.

    Args:
      chain: the functions.
      run: the pass.
      counter: the figures of the step in it.
      note: is called with the errors of the functions.
      stalls: whether the next block of elements may wait for what the loop does with those before it.
    """

    chain: Calls
    run: Run
    counter: OpCounters
    note: Note
    stalls: Callable[[], bool] = lambda: False

    def parts(self, upstream: Stream, state: State) -> Parts:
        """The elements of a stream in parts; of one element each where nothing may be read ahead."""
        return Parts(upstream, state, None if self.run.run_ahead is None else 1)

    def work(self, rows: Block, over: Callable[[], bool] | None) -> Done:
        """The results for a part; see `work`."""
        return work(self.chain, rows, over, tolerant=self.run.tolerant)

    def delivered(self, done: Done, rows: Block, at: Callable[[int], Mark]) -> Results:
        """The results of a part one after the other; see `Done.delivered`."""
        return done.delivered(rows, at, self.note, tolerant=self.run.tolerant)


def work(chain: Calls, part: Block, over: Callable[[], bool] | None, *, tolerant: bool) -> Done:
    """Call the functions on the elements of a part until `over` returns true or, unless `tolerant`, there is an error."""
    stride = 1 if over is not None else part.size
    parts: list[Block | FailedCall] = []
    begin = Run.clock()
    first = 0
    while first < part.size:
        results: list[Any] = []
        trouble: FailedCall | None = None
        try:
            calls = chain.results(part.rows(first, part.size))
            while first + len(results) < part.size and (over is None or not over()):
                wanted = min(len(results) + stride, part.size - first)
                results.extend(islice(calls, stride))
                if len(results) < wanted:
                    raise stopped()
        except Exception as error:  # noqa: BLE001 - raised when its turn comes
            index, given = chain.place(error, part.row(first + len(results)))
            trouble = FailedCall(error, index, chain.told(given))
        for made, place, _ in formed(results, chain.said) if results else ():
            if isinstance(made, Block):
                parts.append(made)
            else:
                parts.append(FailedCall(made, len(chain.functions) - 1, chain.told(part.row(first + place))))
        if trouble is None:
            break
        parts.append(trouble)
        if not tolerant:
            break
        first += len(results) + 1
    return Done(parts, Run.clock() - begin)


# ----------------------------------------------------------------------------
# Parts of a stream are worked on elsewhere, several at a time; their results come in the order of the elements.
# ----------------------------------------------------------------------------


class Lanes(Protocol):
    """Threads, processes or an executor: parts are sent there, and their results received in the order of sending."""

    workers: int

    def send(self, rows: Block) -> Any:
        """Hand a part over; what is returned stands for its results."""

    def ready(self, sent: Any) -> bool:
        """Whether these results are there."""

    def receive(self, sent: Any) -> Done:
        """These results, waited for.

        Raises:
          Closed: the run was closed meanwhile.
        """


def in_order(
    parts: Parts,
    calling: Calling,
    lanes: Lanes,
    most: int | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Results:
    """Results until the parts have ended, or `enough` returns true and those under way have come.

    Args:
      parts: of the elements.
      calling: the functions, and the pass.
      lanes: where they are called.
      most: parts that may be under way; None: as many as keep the workers busy.
      enough: asked before a part is sent.

    Raises:
      Closed: the run was closed.
    """
    run, chain, counter = calling.run, calling.chain, calling.counter
    counter.workers = lanes.workers
    waiting: deque[tuple[Block, Callable[[int], Mark], Any]] = deque()
    run.holding.append(waiting)
    while True:
        limit = run.at_once(most or parts.waiting(lanes.workers)) if chain.settled else 1
        full = len(waiting) >= limit or parts.ended or enough() or bool(waiting and parts.empty and calling.stalls())
        if waiting and (full or _ready(lanes, *waiting[0])):
            rows, mark_at, sent = waiting.popleft()
            if type(rows) is Failure:
                yield rows, mark_at, rows
                continue
            done = counter.waits(lanes.receive, sent)
            counter.worked += done.seconds
            parts.took(done)
            chain.settle(done.kinds)
            yield from calling.delivered(done, rows, mark_at)
        elif full:
            return
        elif (part := parts.next()) is not None:
            rows, mark_at = part
            waiting.append((rows, mark_at, None if type(rows) is Failure else lanes.send(rows)))


def _ready(lanes: Lanes, rows: Block, _: Callable[[int], Mark], sent: Any) -> bool:
    return type(rows) is Failure or lanes.ready(sent)
