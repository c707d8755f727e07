# SPDX-License-Identifier: Apache-2.0
"""Decode the next portions of files on threads while earlier ones are used."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from math import inf
from typing import TYPE_CHECKING, Any

from distinput.core.cores import cores
from distinput.core.failure import Failure, is_defect
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.formats.portion import Portion
from distinput.streaming.places import DAMAGE, PlacedPortion, failure_at

if TYPE_CHECKING:
    from distinput.core.pool import Pool, Task

__all__ = ["portions_ahead"]


def portions_ahead(portions: Iterator[PlacedPortion], run: Run) -> Stream:
    """The rows of portions, in order.

    Once a second block is requested, the next portions are decoded on threads, during which the GIL is free: as many as the
    run has room for, and none on a single core. States do not depend on it, and errors keep their place.

    Args:
      portions: each with the mark of its file and the place that `run.reading` reports, which is kept up to date.
      run: ends the threads.
    """
    with ExitStack() as stack:
        ahead = _Ahead(portions, run, stack)
        stack.callback(ahead.give_up)
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
            ahead.go_on(
                run.read_ahead.nbytes
            )  # a large portion has to wait until the one before it is no longer in use
            for block, after in rest.blocks(decoded):
                place["position"] = after
                yield block, {**mark, "position": after}
                ahead.asked = True
                ahead.go_on()
            return
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            if not run.past_damage or rest.past is None or not isinstance(error, DAMAGE):
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
      asked: true once a second block was requested; a consumer that takes only the first element pays for one portion.
    """

    def __init__(self, portions: Iterator[PlacedPortion], run: Run, stack: ExitStack) -> None:
        self.asked = False
        self._portions, self._run, self._stack = portions, run, stack
        self._most = run.read_ahead.pieces
        self._pool: Pool | None = None
        self._decoding: deque[_Pulled] = deque()
        self._held: _Pulled | None = None
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
            portion = None if isinstance(pulled.item, Exception) else pulled.item[2]
            if portion is None or isinstance(portion, Failure) or not self._may_begin(portion, most):
                return
            if self._pool is None:
                under_way = self._run.read_ahead.under_way(portion.nbytes, waits=portion.waits)
                self._pool = self._stack.enter_context(self._run.pool(under_way))
            pulled.future = self._pool.submit(portion.decode)
            self._decoding.append(pulled)
            self._held = None

    def _may_begin(self, portion: Portion, most: float) -> bool:
        if portion.nbytes > most or self._run.cancelled.is_set() or (cores() == 1 and not portion.waits):
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
            if not isinstance(pulled.item, Exception):
                self._run.read_ahead.leave(pulled.item[2].nbytes)
        self._decoding.clear()
