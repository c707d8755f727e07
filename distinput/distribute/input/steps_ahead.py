# SPDX-License-Identifier: Apache-2.0
"""Steps that are finished, such as put on devices, on a thread before they are needed.

The position of the iteration stays that of the last step delivered: each step carries the position after it.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, final

from distinput.core.ending import Ending
from distinput.core.state import State
from distinput.distribute.input.drawing import END
from distinput.distribute.input.source import Seen, Steps
from distinput.errors import StateError

__all__ = ["StepsAhead"]

_SHARE_OF_ONE = 0.25
"""How much one step counts in the moving average of what steps take."""


@dataclass(frozen=True, slots=True)
class _After:
    """The position after a step.

    Args:
      places: of the input pipelines, or the error for which they have none.
      seen: the shapes of the last element.
    """

    places: Sequence[State] | StateError
    seen: Seen

    @classmethod
    def of(cls, steps: Steps) -> "_After":
        """The position where an iteration is."""
        try:
            places: Sequence[State] | StateError = steps.places()
        except StateError as error:
            places = error
        return cls(places, steps.seen)


@dataclass(frozen=True, slots=True)
class _Made:
    """A step that waits to be delivered.

    Args:
      step: as it is delivered, or `END`.
      error: raised instead.
      partial: True if some replicas have no element.
      after: the position after it.
    """

    step: Any
    error: BaseException | None
    partial: bool
    after: _After

    @property
    def ends(self) -> bool:
        """True if nothing comes after it: the end, or an error such as an interruption."""
        return self.step is END and (self.error is None or not isinstance(self.error, Exception))


def _make(steps: Steps, finish: Callable[[Any], Any], *, keeps_partial: bool) -> _Made:
    step: Any = END
    error: BaseException | None = None
    try:
        step = steps.next(keeps_partial)
        if step is not END:
            step = finish(step)
    except BaseException as failure:  # noqa: BLE001 - raised when its turn has come
        error, step = failure, END
    return _Made(step, error, step is not END and steps.partial, _After.of(steps))


@final
class StepsAhead:
    """An iteration of finished steps, of which the next ones are made on a thread.

    The thread begins with the first step. It ends with the last one, when the iteration is closed, or when it is dropped.

    Args:
      steps: the iteration.
      finish: makes a step as it is delivered.
      ahead: how many finished steps may wait; 0 makes each one when it is asked for, without a thread.
      quick: seconds. While steps take less than that to make, they are made when they are asked for: handing them over from
        a thread would take longer.
      bind: makes of a function one that runs on another thread with the settings that the caller's thread has.
      delivered: called with each step on the thread that takes it.
    """

    def __init__(
        self,
        steps: Steps,
        finish: Callable[[Any], Any],
        ahead: int,
        quick: float = 0.0,
        bind: Callable[..., Any] | None = None,
        delivered: Callable[[Any], None] | None = None,
    ) -> None:
        self._steps, self._finish, self._ahead, self._quick, self._bind = steps, finish, ahead, quick, bind
        self._delivered = delivered
        self._seconds: float | None = None  # to make a step, as a moving average
        self._line: _Line | None = None
        self._after: _After | None = None

    def next(self, keeps_partial: bool) -> Any:
        """The next step, or `END`; see `Steps.next`."""
        if not self._ahead:
            made = _make(self._steps, self._finish, keeps_partial=keeps_partial)
        elif self._line is None and (self._seconds or 0.0) < self._quick:
            made = self._measured(keeps_partial)
        else:
            if self._line is None:
                self._after = _After.of(self._steps)
                self._line = _Line(self._steps, self._finish, self._ahead, self._bind)
            made = self._line.take()
        self._after = made.after
        if made.error is not None:
            try:
                raise made.error
            finally:
                del made  # the traceback refers to this frame, and the frame must not refer back
        # The thread cannot know how its steps will be asked for, so it keeps the last one even if it is partial.
        if made.step is END or (made.partial and not keeps_partial):
            return END
        if self._delivered is not None:
            self._delivered(made.step)
        return made.step

    def _measured(self, keeps_partial: bool) -> _Made:
        """Make a step here, and measure how long that takes, except for the first one, which starts the input."""
        begin = perf_counter()
        made = _make(self._steps, self._finish, keeps_partial=keeps_partial)
        if self._seconds is None:
            self._seconds = 0.0
        else:
            self._seconds += _SHARE_OF_ONE * (perf_counter() - begin - self._seconds)
        return made

    @property
    def partial(self) -> bool:
        """Not asked of finished steps."""
        return False

    @property
    def seen(self) -> Seen:
        """The shapes of the leaves of the last element delivered."""
        return self._steps.seen if self._after is None else self._after.seen

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        """Where the pass begins; see `Steps.beginning`."""
        return self._steps.beginning

    def places(self) -> list[State]:
        """The positions of the input pipelines after the last step delivered.

        Raises:
          StateError: that step failed half-way.
        """
        if self._after is None:
            return self._steps.places()
        if isinstance(self._after.places, StateError):
            raise self._after.places
        return list(self._after.places)

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        """The states of the input pipelines at these positions."""
        return self._steps.inputs(step, places)

    def close(self) -> None:
        """End the thread and the iteration."""
        if self._line is not None:
            self._line.close()
        self._steps.close()

    def __del__(self) -> None:
        if getattr(self, "_line", None) is not None:
            self._line.drop()  # type: ignore[union-attr]


class _Line(Ending):
    """The steps that wait, and the thread that makes them. The thread refers to this alone, not to the iteration.

    Both ends use queues written in C, with which a step that waits is taken in a few microseconds.
    """

    def __init__(self, steps: Steps, finish: Callable[[Any], Any], most: int, bind: Callable[..., Any] | None) -> None:
        self._steps, self._finish, self._most = steps, finish, most
        self._waiting: SimpleQueue[_Made | None] = SimpleQueue()  # None: the line was closed
        self._room: SimpleQueue[bool] = SimpleQueue()  # True for each step that may be made; False: the line was closed
        self._closed = self._last = False
        self._add_room()
        self.begun()
        fill = self._fill if bind is None else bind(self._fill)
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(fill,), name="distinput-steps-ahead", daemon=True)
        self._thread.start()

    def take(self) -> _Made:
        """Wait for the next step. After the last one: the end, again and again."""
        if not self._closed and not self._last:
            made = self._waiting.get()
            if made is not None:
                self._last = made.ends
                self._room.put(True)
                return made
        return _Made(END, None, False, _After.of(self._steps))

    def _fill(self) -> None:
        try:
            while self._room.get() and not self._closed:
                made = _make(self._steps, self._finish, keeps_partial=True)
                ends, failed = made.ends, made.error is not None
                if not self._closed:
                    self._waiting.put(made)
                del made
                # What comes after an error is made once that has been raised, as the consumer may stop there.
                if ends or (failed and not self._all_taken()):
                    return
        finally:
            if self._closed:
                self._steps.close()

    def _add_room(self) -> None:
        for _ in range(self._most):
            self._room.put(True)

    def _all_taken(self) -> bool:
        """Wait until no step waits; False if the line was closed."""
        if not all(self._room.get() for _ in range(self._most)):
            return False
        self._add_room()
        return True

    def end(self, patience: float | None) -> None:
        self._closed = True
        self._room.put(False)
        with suppress(Empty):
            while True:
                self._waiting.get_nowait()
        self._waiting.put(None)  # for a thread that waits for a step
        if patience != 0 and self._thread is not threading.current_thread():
            self._thread.join(patience)
