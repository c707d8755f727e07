# SPDX-License-Identifier: Apache-2.0
"""Files are read ahead: stamps and beginnings of the next ones, blocks and portions of this one, and where each stands."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from distinput.columns.block import Block, Failure, is_defect, trouble_of
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import Mark, State
from distinput.errors import CancelledError, DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.paths import file_system, is_web, local_path
from distinput.files.source import stamp_of, stamped
from distinput.formats.format import Portion
from distinput.run.run import Run
from distinput.run.threads import Task, cores

if TYPE_CHECKING:
    from distinput.run.threads import Pool


# ----------------------------------------------------------------------------
# What is to be known of the next remote files is asked while this one is read, of several where that is quick.
# ----------------------------------------------------------------------------


FILES_AHEAD = 4
"""The most files of which something is asked ahead."""

STAMP_LASTS, BEGINNING_LASTS = 2.0, 10.0
"""Seconds that the stamp of a file is good for, and its beginning: behind files that take longer, asking again costs little,
and the file may be another one."""

A = TypeVar("A")


class _Asked(NamedTuple):
    path: str
    at: float
    answer: Task[Any]


class AskedAhead(Generic[A]):
    """What is asked of files that are read one after the other, of each once.

    Args:
      ask: asks about a file, on a thread; returns None if that failed, which is left to who reads the file.
      good_for: seconds that an answer is good for.
      always: whether the next file is asked about in any case; else only behind one that was quickly read.
      run: ends the threads.
      stack: ends them as well.
    """

    def __init__(
        self, ask: Callable[[str], A | None], good_for: float, run: Run, stack: ExitStack, *, always: bool = False
    ) -> None:
        self._ask, self._good_for, self._run, self._least = ask, good_for, run, int(always)
        self._asked: deque[_Asked] = deque()
        self._before = -inf
        stack.callback(self._give_up)

    def of(self, path: str, following: Sequence[str]) -> A | None:
        """The answer about a file that is about to be read; None: ask.

        Args:
          path: of the file.
          following: the files after it, as far as they are known; they are asked about now.
        """
        while self._asked and self._asked[0].path != path:
            self._asked.popleft().answer.cancel()
        mine = self._asked.popleft() if self._asked else None
        now = monotonic()
        # The answer about the last one is to be good until the others are read.
        quick = (now - self._before) * (FILES_AHEAD + 1) < self._good_for
        if not self._run.cancelled.is_set():
            remote = [name for name in following if local_path(name) is None]
            for name in remote[len(self._asked) : FILES_AHEAD if quick else self._least]:
                self._asked.append(_Asked(name, now, self._run.room[1]().submit(self._ask, name)))
        self._before = now
        if mine is None or now - mine.at > self._good_for:
            return None
        try:
            return mine.answer.result()  # type: ignore[no-any-return]
        except CancelledError:  # the run has ended
            return None

    def _give_up(self) -> None:
        for each in self._asked:
            each.answer.cancel()


class RecentStamps:
    """The stamps of files of web servers of which rows are fetched: their answers say themselves when a file is another one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, str]] = {}

    @contextmanager
    def of(self, path: str) -> Iterator[None]:
        """Rows of a file are fetched within: its stamp is of this moment, or of one that was shortly before.

        Raises:
          NotFoundError: it is not there.
        """
        with stamped(path, self._stamp(path)):
            try:
                yield
            except DataLossError:  # it may have been replaced; who tries again reads the one that is there
                self._known.pop(path, None)
                raise

    def _stamp(self, path: str) -> str | None:
        """None: its reader asks for it."""
        if local_path(path) is not None or not is_web(file_system(path)[0]):
            return None
        at, stamp = self._known.get(path, (0.0, ""))
        if not stamp or monotonic() - at > STAMP_LASTS:
            at, stamp = self._known[path] = monotonic(), stamp_of(path)
        return stamp


# ----------------------------------------------------------------------------
# Make the next blocks of a stream on a thread while earlier ones are used, where measurements show that it pays.
# ----------------------------------------------------------------------------


_TASKS, _TASK_BYTES = 2, 4 << 20
"""Blocks that a thread makes ahead, so that neither side has to wait for the other's lock at once; and the room for one of
them: a chunk of a file, and the offsets of the records in it."""

_WORTH_SECONDS, _WORTH_PART = 0.003, 0.125
"""Seconds that a thread must save before it is worth starting, which takes about a millisecond; and the fraction of the total
time that they must be."""

_HAND_OVER_SECONDS = 3e-4
"""Extra seconds for each block that a thread makes, because both sides wait for the GIL several times: 0.2 to 0.3 ms were
measured, whatever the size of the block."""

_COUNTED_SECONDS = 0.05
"""Only the last so many seconds that were measured count, so that a block that had to load kernels is soon forgotten."""


class Pace:
    """How long it takes to make the blocks of a stream, and to use them; a thread saves at most the shorter of the two.

    One is kept for all passes over a node, so that a later pass begins in the way that was best in earlier ones. Only blocks
    that were made and used in turn are counted, since those made on a thread wait for the GIL; the last ones count most.

    Attributes:
      goes_on: whether the last pass asked for more than its first block.
    """

    def __init__(self) -> None:
        self._made = self._used = self._blocks = 0.0
        self.goes_on = False

    def begin(self) -> None:
        """Begin a pass; earlier measurements count less from now on."""
        self._keep(0.75)

    def took(self, made: float, used: float) -> None:
        """Count a block: the seconds to make it, and then to use it."""
        self._made, self._used, self._blocks = self._made + made, self._used + used, self._blocks + 1
        self._keep(min(1.0, _COUNTED_SECONDS / (self._made + self._used + 1e-9)))

    def _keep(self, part: float) -> None:
        self._made, self._used, self._blocks = self._made * part, self._used * part, self._blocks * part

    @property
    def pays(self) -> bool:
        """Whether a thread is worth its start and the hand-overs."""
        saved = min(self._made, self._used) - self._blocks * _HAND_OVER_SECONDS
        return saved > _WORTH_SECONDS and saved > _WORTH_PART * (self._made + self._used)


def blocks_ahead(open_stream: Callable[[Run], Stream], run: Run, pace: Pace) -> Stream:
    """The blocks of a stream that is read from files.

    Once a thread pays, it makes the next blocks, during which the GIL is free most of the time; never on a single core, or
    where the run has no room. States do not depend on it, and errors keep their place.

    Args:
      open_stream: opens the stream with a run that has a `reading` of its own.
      run: ends the thread; its `reading` follows the blocks that have been delivered.
      pace: of this stream in earlier passes.
    """
    aside = run.aside()
    with ExitStack() as stack:
        # Closed by whoever drops it last: this function, or a task that is still running when this function ends.
        stream = open_stream(aside)
        pool: Pool | None = None
        ahead: deque[Task[_Made]] = deque()
        alone = cores() == 1
        pace.begin()
        while True:
            made = ahead.popleft().result() if ahead else _made(stream, aside)
            begin = Run.clock()
            if made.reading is not None:
                run.reading = partial(str, made.reading)
            if made.item is None:
                return
            if isinstance(made.item, Exception):
                raise made.item
            yield made.item
            if pool is None:
                pace.took(made.seconds, Run.clock() - begin)
                if not alone and pace.pays and run.read_ahead.enter(_TASKS * _TASK_BYTES):
                    stack.callback(run.read_ahead.leave, _TASKS * _TASK_BYTES)
                    pool = stack.enter_context(run.pool(1))
            while pool is not None and len(ahead) < _TASKS:
                ahead.append(pool.submit(_made, stream, aside))


class _Made(NamedTuple):
    """The next item of a stream.

    Attributes:
      item: a block, the error in its place, or None at the end.
      reading: what the run's `reading` said at that time.
      seconds: how long it took to make.
    """

    item: tuple[Block, State] | Exception | None
    reading: str | None
    seconds: float


def _made(stream: Stream, aside: Run) -> _Made:
    """The next block of a stream that was opened with the run `aside`."""
    begin = Run.clock()
    item: tuple[Block, State] | Exception | None
    try:
        item = next(stream, None)
    except Exception as error:  # noqa: BLE001 - raised when its turn has come
        item = error
    try:
        return _Made(item, None if aside.reading is None else aside.reading(), Run.clock() - begin)
    finally:
        del item  # the traceback of an error refers to this frame, and the frame must not refer back


# ----------------------------------------------------------------------------
# Reading one file after the other, and where it stands: for notes on errors, and to go on after a file that fails.
# ----------------------------------------------------------------------------


ReadingPlace = dict[str, Any]
"""Where reading stands, for notes on errors: the "path" of a file, and the "position" in it.

Also the mark "behind" the file, where reading resumes after an "error" before its first record, or once the file is "lost"
because of a later error; and "stated_rows", which tells how many records a file says it has.
"""

PlacedPortion = tuple[Mark, ReadingPlace, Portion | Failure]
"""A portion, or the error in its place, with the mark of its file and where reading stands."""


def places(
    queue: RowQueue, state: State, run: Run, opened: Callable[[Any, Any], ReadingPlace]
) -> Iterator[tuple[Mark, ReadingPlace]]:
    """Where to begin in each file, with the mark of its element.

    Args:
      queue: one element for each file.
      state: holds the position in the first file.
      run: says whether reading continues after a file that cannot be opened.
      opened: (element, position) -> the place at which to begin.
    """
    position = state["position"]
    while queue.fill(1) or queue.failure is not None:
        mark = queue.mark()
        place: ReadingPlace
        name: Any = None
        try:
            if queue.size:
                name = queue.take(1).row(0)
                place = opened(name, position)
            else:
                place = {"error": queue.passed().error}
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            place = {"error": error}
            if isinstance(name, bytes):
                place |= {"path": name.decode(errors="replace"), "position": position}
        place["behind"] = {**queue.mark(), "position": None}
        yield mark, place
        position = None


DAMAGE = (DataLossError, InvalidArgumentError)
"""Errors of a record, behind which there may be others."""


ReadFrom = Callable[[ReadingPlace], Iterator[tuple[Block, Any]]]

Past = Callable[[str, Any], Any]
"""(path, position of a damaged record) -> the position of the next one that can be read; None: there is none."""


def blocks_in(
    files: Iterator[tuple[Mark, ReadingPlace]],
    read: ReadFrom,
    run: Run,
    past: Past | None = None,
    *,
    one_version: bool = False,
) -> Stream:
    """The records of files; in a tolerant run an error is delivered as a failure, and reading continues with the next file.

    Args:
      files: from `places`.
      read: gives the records from a place on, with the position after each block.
      run: says whether it is tolerant.
      past: finds where to go on behind one; None: with the next file.
      one_version: in a tolerant run the rest of a file is lost once it has changed, also behind a damaged record.
    """
    for mark, place in files:
        if "error" in place:
            yield failure_at(place["error"], place), place["behind"]
            continue
        try:
            yield from _read(place, read, mark, run, past, one_version)
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            yield failure_at(error, place), place["behind"]


def _read(place: ReadingPlace, read: ReadFrom, mark: Mark, run: Run, past: Past | None, one_version: bool) -> Stream:
    """The records of a file from a place on; where reading can go on behind damage, with a failure in its place."""
    stamp = stamp_of(place["path"]) if one_version and run.tolerant else None
    unsure = False  # whether the file was opened again
    while True:
        try:
            for block, after in read(place):
                if unsure:
                    _check_same(place, stamp)
                unsure = False
                place["position"] = after
                yield block, {**mark, "position": after}
            return
        except DAMAGE as error:
            if stamp is not None:
                _check_same(place, stamp, error)
            behind = None if past is None else past(place["path"], place["position"])
            if behind is None or not run.tolerant:
                raise
            failure = failure_at(error, place, behind)
            place["position"], unsure = behind, stamp is not None
            yield failure, {**mark, "position": behind}


def _check_same(place: ReadingPlace, stamp: str | None, error: Exception | None = None) -> None:
    """Reject what a file holds that has changed since this stamp: it does not belong to what was read before.

    Raises:
      DataLossError: it has changed.
    """
    try:
        if stamp_of(place["path"]) == stamp:
            return
    except NotFoundError:
        pass
    place.pop("stated_rows", None)  # of which of its versions?
    raise DataLossError(
        f"{place['path']}: changed while it was read, and nothing is read of its other version; write another file under "
        f"another name instead{'' if error is None else f'; noticed at: {error}'}"
    ) from error


def failure_at(error: Exception, place: ReadingPlace, behind: Any = None) -> Failure:
    """A failure of reading, which says in which file it was, from which record on, and how much is lost with it.

    Args:
      error: what was raised.
      place: where.
      behind: the position in the file from which on it is read; None: the rest of the file, or fragment, is lost.
    """
    if "path" in place:
        position = place["position"]
        if "fragment" in place and "row" not in place["fragment"].start:  # rows are counted from its beginning
            position = {**(position or {}), "row": None}
        trouble = trouble_of(error)
        trouble.place = place["path"], position
        if "error" not in place:
            trouble.lost = _lost(place, position, behind), behind is None
    return Failure(error)


def _lost(place: ReadingPlace, position: Any, behind: Any) -> int | None:
    """The records from a position to the one where reading goes on, or to the end; None: nobody knows."""
    fragment = place.get("fragment")
    end = behind if behind is not None or fragment is None else fragment.stop
    first, stop = [at.get("row") if isinstance(at, dict) else None for at in (position or {"row": 0}, end)]
    if end is None and "stated_rows" in place:
        try:
            stop = place["stated_rows"](place["path"])
        except Exception:  # noqa: BLE001 - the file is damaged: it need not be able to tell
            stop = None
    return None if first is None or stop is None or stop < first else int(stop - first)


def portions_in(
    files: Iterator[tuple[Mark, ReadingPlace]], read: Callable[[ReadingPlace], Iterator[Portion]], run: Run
) -> Iterator[PlacedPortion]:
    """As `blocks_in`, for `portions_ahead`."""
    for mark, place in files:
        if "error" in place:
            yield mark, place, failure_at(place["error"], place)
            continue
        try:
            for portion in read(place):
                if "lost" in place:
                    break
                yield mark, place, portion
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            yield mark, place, failure_at(error, place)


# ----------------------------------------------------------------------------
# Decode the next portions of files on threads while earlier ones are used.
# ----------------------------------------------------------------------------


_WORTH_A_THREAD, _WORTH_A_SHARE = 1 << 16, 1 << 19
"""Bytes of a portion, and of one of an input that shares its room with others. Who asks for smaller ones decodes them: to hand
one over to a thread, and to wait for it, takes as long."""


def portions_ahead(portions: Iterator[PlacedPortion], run: Run, pace: Pace) -> Stream:
    """The rows of portions, in order.

    Once a second block is requested, portions are decoded on threads, during which the GIL is free: as many as the run has
    room for, and none on a single core. Behind a pass that requested one, those of the first file are from the beginning.
    States do not depend on it, and errors keep their place.

    Args:
      portions: each with the mark of its file and the place that `run.reading` reports, which is kept up to date.
      run: ends the threads.
      pace: of this stream in earlier passes.
    """
    with ExitStack() as stack:
        ahead = _Ahead(portions, run, pace)
        stack.callback(ahead.give_up)
        ahead.go_on()
        while (pulled := ahead.next()) is not None:
            if isinstance(pulled.item, tuple) and "lost" in pulled.item[1]:
                ahead.drop(pulled)
            else:
                yield from _blocks(pulled, ahead, run)


def _blocks(pulled: "_Pulled", ahead: "_Ahead", run: Run) -> Stream:
    """The rows of one portion. A function of its own, so that nothing of it is held while the next one is decoded."""
    if pulled.reading is not None:
        run.reading = pulled.reading
    if isinstance(pulled.item, Exception):
        raise pulled.item
    mark, place, portion = pulled.item
    if isinstance(portion, Failure):
        yield portion, place["behind"]
        return
    rest: Portion | None = portion
    while rest is not None:
        try:
            decoded = ahead.decoded(pulled, portion) if rest is portion else rest.decode()
            # A large portion has to wait until the one before it is no longer in use.
            ahead.go_on(run.read_ahead.nbytes)
            for block, after in rest.blocks(decoded):
                place["position"] = after
                yield block, {**mark, "position": after}
                ahead.asked = ahead.pace.goes_on = True
                ahead.go_on()
            return
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            if not run.asked.past_damage or rest.past is None or not isinstance(error, DAMAGE):
                place["lost"] = True
                yield failure_at(error, place), place["behind"]
                return
            rest, behind = rest.past(place["position"])
            failure, place["position"] = failure_at(error, place, behind), behind
            yield failure, {**mark, "position": behind}


class _Pulled:
    """A portion or the error in its place, with what `run.reading` said at that time.

    Attributes:
      future: of the decoded portion, if a thread decodes it.
    """

    __slots__ = ("future", "item", "reading")

    def __init__(self, item: PlacedPortion | Exception, reading: Callable[[], str] | None) -> None:
        self.item, self.reading = item, reading
        self.future: Task[Any] | None = None


class _Ahead:
    """The portions that were pulled and not yet used: those that threads decode, and one that has to wait.

    Attributes:
      asked: true once a second block was requested; a consumer that takes only the first element pays for one portion, in all
        passes but one behind a longer one.
      pace: of the stream, which tells that from pass to pass.
    """

    def __init__(self, portions: Iterator[PlacedPortion], run: Run, pace: Pace) -> None:
        self.asked, self.pace, pace.goes_on = pace.goes_on, pace, False
        self._portions, self._run = portions, run
        self._most = run.read_ahead.pieces
        self._decoding: deque[_Pulled] = deque()
        self._held: _Pulled | None = None
        self._place: ReadingPlace = {}  # of the last portion that a thread decodes
        self._reading: Callable[[], str] | None = None

    def next(self) -> _Pulled | None:
        """The next portion or error; None at the end."""
        if self._decoding:
            return self._decoding.popleft()
        held, self._held = self._held, None
        return held or self._pull()

    def decoded(self, pulled: _Pulled, portion: Portion) -> Any:
        """The decoded portion, as `portion.blocks` takes it."""
        if pulled.future is None:
            return portion.decode()
        try:
            return pulled.future.result()
        finally:
            self._run.read_ahead.leave(portion.nbytes)

    def drop(self, pulled: _Pulled) -> None:
        """Release a portion that is no longer wanted."""
        if pulled.future is not None and isinstance(pulled.item, tuple) and isinstance(pulled.item[2], Portion):
            with suppress(Exception):
                self.decoded(pulled, pulled.item[2])

    def go_on(self, most: float = inf) -> None:
        """Let threads decode portions of at most `most` bytes, as long as there is room."""
        while self.asked and len(self._decoding) < self._most:
            pulled = self._held or self._pull()
            if pulled is None:
                self._most = 0
                return
            self._held = pulled
            if isinstance(pulled.item, Exception):
                return
            _, place, portion = pulled.item
            if self._decoding and place is not self._place and not self.pace.goes_on:
                return  # the first block need not wait until further files are opened
            if isinstance(portion, Failure) or not self._may_begin(portion, most):
                return
            under_way = self._run.read_ahead.under_way(portion.nbytes, waits=portion.waits)
            pulled.future = self._run.shared_pool("decoding", under_way).submit(portion.decode)
            self._decoding.append(pulled)
            self._held, self._place = None, place

    def _may_begin(self, portion: Portion, most: float) -> bool:
        if portion.nbytes > most or self._run.cancelled.is_set() or (cores() == 1 and not portion.waits):
            return False
        least = _WORTH_A_THREAD if self._run.asked.room is None else _WORTH_A_SHARE
        if portion.nbytes < least and not portion.waits:
            return False
        last = self._decoding[-1].future if self._decoding else None
        if portion.follows and last is not None and not last.done():
            return False
        self._most = self._run.read_ahead.most(waits=portion.waits)
        return self._run.read_ahead.enter(portion.nbytes, waits=portion.waits)

    def _pull(self) -> _Pulled | None:
        before = self._run.reading
        if self._reading is not None:  # only the first portion of a file sets it
            self._run.reading = self._reading
        try:
            item: PlacedPortion | Exception | None = next(self._portions, None)
        except Exception as error:  # noqa: BLE001 - raised when its turn has come
            item = error
        self._reading = reading = self._run.reading
        if before is not None:
            self._run.reading = before
        return None if item is None else _Pulled(item, reading)

    def give_up(self) -> None:
        """Release everything: the consumer has gone."""
        for pulled in self._decoding:
            if pulled.future is not None:
                pulled.future.cancel()
            if not isinstance(pulled.item, Exception):
                self._run.read_ahead.leave(pulled.item[2].nbytes)
        self._decoding.clear()
