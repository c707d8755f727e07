# SPDX-License-Identifier: Apache-2.0
"""The delivery of steps: their spec, padding, and placement on devices, ahead of the program."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

from distinput.columns.state import State
from distinput.distribute.core.replicas import Consumer
from distinput.distribute.core.values import PartialPerReplica, PerReplica, marked, replica_leaves
from distinput.distribute.input.dealing import END, StepPadding, per_replica_spec
from distinput.distribute.input.sources import SeenShapes, Steps, StepSource
from distinput.errors import StateError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import dataclass, library
from distinput.run.run import thread_use
from distinput.run.threads import Ending, check_goes_on
from distinput.values.spec import LeafSpec, TensorSpec

if TYPE_CHECKING:
    import queue
    from queue import SimpleQueue
else:
    queue = library("queue")  # for steps that are finished on a thread

# ---- Steps that are finished, such as put on devices, on a thread before they are needed
#
# The position of the iteration stays that of the last step delivered: each step carries the position after it.

_SHARE_OF_ONE = 0.25
"""How much one step counts in the moving average of what steps take."""


@dataclass(slots=True)
class _After:
    """The position after a step.

    Args:
      places: of the input pipelines, or the error for which they have none.
      seen: the shapes of the last element.
    """

    places: Sequence[State] | StateError
    seen: SeenShapes

    @classmethod
    def of(cls, steps: Steps) -> "_After":
        """The position where an iteration is."""
        try:
            places: Sequence[State] | StateError = steps.places()
        except StateError as error:
            places = error
        return cls(places, steps.seen)


@dataclass(slots=True, eq=False)
class _Made:
    """A step that waits to be delivered.

    Args:
      step: as it is delivered, or `END`.
      error: raised instead.
      partial: True if some replicas have no element.
      after: the position after it; None: where the iteration of steps is.
      ends: True if nothing comes after it: the end, or an error such as an interruption.
    """

    step: Any
    error: BaseException | None
    partial: bool
    after: _After | None
    ends: bool


def _make(steps: Steps, finish: Callable[[Any], Any]) -> _Made:
    """The next step, made on a thread, which no interrupt reaches."""
    step: Any = END
    error: BaseException | None = None
    try:
        step = steps.next(True)
        if step is not END:
            step = finish(step)
    except BaseException as failure:  # noqa: BLE001 - raised when its turn has come
        error, step = failure, END
    ends = step is END and not isinstance(error, Exception)
    return _Made(step, error, step is not END and steps.partial, _After.of(steps), ends)


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
        self._before: _After | None = None
        self._after: _After | None = None
        self._begun: tuple[Any, ...] = ()  # a step that is being finished here
        self._made: _Made | None = None  # the next step, while it is delivered

    def next(self, keeps_partial: bool) -> Any:
        """The next step, or `END`; see `Steps.next`."""
        if self._made is None:
            self._take(keeps_partial)
        made = self._made
        assert made is not None
        if made.error is not None:
            self._before, self._after, self._made = self._after, made.after, None
            try:
                raise made.error
            finally:
                del made  # the traceback refers to this frame, and the frame must not refer back
        # The thread cannot know how its steps will be asked for, so it keeps the last one even if it is partial.
        step = END if made.partial and not keeps_partial else made.step
        if step is not END and self._delivered is not None:
            self._delivered(step)
        self._before, self._after, self._made = self._after, made.after, None
        return step  # no function is called before it is taken

    def _take(self, keeps_partial: bool) -> None:
        """Get the next step."""
        if not self._ahead:
            if self._after is None:
                self._after = _After.of(self._steps)
            self._make(keeps_partial)
        elif self._line is None and (self._seconds or 0.0) < self._quick:
            self._measure(keeps_partial)
        else:
            if self._line is None:
                self._after = _After.of(self._steps)
                self._line = _Line(self._steps, self._finish, self._ahead, self._bind)
            line = self._line
            for made in line.steps:
                self._made, line.last, line.taken = made, made.ends, line.taken + 1
                line.add_room()
                return
            if not line.last:
                check_goes_on()
            self._made = _Made(END, None, False, _After.of(self._steps), True)

    def _make(self, keeps_partial: bool) -> None:
        """Make the next step here. An interrupt leaves what was drawn for it."""
        try:
            if not self._begun:
                step = self._steps.next(keeps_partial)
                self._begun = (step,)
            (step,) = self._begun
            step = END if step is END else self._finish(step)
        except Exception:
            self._before, self._after, self._begun = self._after, self._here(), ()
            raise
        partial, after = step is not END and self._steps.partial, self._here()
        self._made, self._begun = _Made(step, None, partial, after, step is END), ()

    def _here(self) -> _After | None:
        """The position after a step that was made here. None where it can be asked for later: before a thread makes steps."""
        return None if self._ahead else _After.of(self._steps)

    def _measure(self, keeps_partial: bool) -> None:
        """Make a step here, and measure how long that takes, except for the first one, which starts the input.

        Other programs may have had this thread's core. What it had itself is asked for, which costs more than the clock, while
        steps do not look quick by that.
        """
        looked = self._seconds or 0.0
        before = thread_use() if looked > self._quick / 4 else None
        begin = perf_counter()
        self._make(keeps_partial)
        seconds = perf_counter() - begin
        if before is not None:
            use = thread_use() - before
            seconds = seconds if use.waits else use.seconds
        # One step that the system interrupted says nothing of the others, so it counts as twice a quick one at most.
        counted = min(seconds, 2 * self._quick)
        self._seconds = 0.0 if self._seconds is None else looked + _SHARE_OF_ONE * (counted - looked)

    @property
    def failed(self) -> bool:
        """See `Steps.failed`."""
        return self._steps.failed

    @property
    def seen(self) -> SeenShapes:
        """The shapes of the leaves of the last element delivered."""
        return self._steps.seen if self._after is None else self._after.seen

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        """Where the pass begins; see `Steps.beginning`."""
        return self._steps.beginning

    def places(self, waiting: bool = False) -> list[State]:
        """The positions of the input pipelines after the last step delivered; see `Steps.places`.

        Raises:
          StateError: that step failed half-way.
        """
        found = self._before if waiting else self._after
        if found is None:
            return self._steps.places(waiting or self._made is not None or bool(self._begun))
        if isinstance(found.places, StateError):
            raise found.places
        return list(found.places)

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
        self._waiting: SimpleQueue[_Made | None] = queue.SimpleQueue()  # None: the line was closed
        # True for each step that may be made; False: the line was closed
        self._room: SimpleQueue[bool] = queue.SimpleQueue()
        self._closed = False
        self.last = False
        """True if nothing comes after the step that was taken last."""
        self.taken = 0
        """How many steps were taken."""
        self._added = 0  # room for so many
        self._once = threading.Lock()  # held from the beginning of the thread on
        self._fills = self._fill if bind is None else bind(self._fill)
        self._context = copy_context()
        self._thread: threading.Thread | None = None
        self.begun()

    @property
    def steps(self) -> Iterator[_Made]:
        """Waits for the next step when it is asked for one, unless nothing comes any more."""
        if self._closed or self.last:
            return iter(())
        self.add_room()
        if self._thread is None:
            thread = HelperThread(target=self._context.run, args=(self._fills,), name="distinput-steps-ahead")
            thread.start()
            self._thread = thread
        # Taken by C code alone, so that no interrupt comes between the queue and who takes the step.
        return iter(self._waiting.get, None)

    def add_room(self) -> None:
        """Make room in the place of what was taken."""
        while self._added < self.taken + self._most:
            self._room.put(True)
            self._added += 1

    def _fill(self) -> None:
        if not self._once.acquire(blocking=False):  # an interrupt came when the thread had been started
            return
        try:
            while self._room.get() and not self._closed:
                made = _make(self._steps, self._finish)
                ends, failed = made.ends, made.error is not None
                if not (self._closed or self._ended):
                    self._waiting.put(made)
                del made
                # What comes after an error is made once that has been raised, as the consumer may stop there.
                if ends or (failed and not self._all_taken()):
                    return
        finally:
            if self._closed:
                self._steps.close()

    def _all_taken(self) -> bool:
        """Wait until no step waits; False if the line was closed."""
        if not all(self._room.get() for _ in range(self._most)):
            return False
        for _ in range(self._most):
            self._room.put(True)
        return True

    def end(self, patience: float | None) -> None:
        self._closed = True
        self._room.put(False)
        with suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        self._waiting.put(None)  # for a thread that waits for a step
        if patience != 0 and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(patience)


# ---- The delivery of steps: their spec, padding, and placement on devices


@dataclass(frozen=True)
class Delivery:
    """Delivers steps to their consumer: pads them and puts them on devices.

    Args:
      consumer: takes the steps.
      padding: pads each part to the same number of rows; None leaves parts unchanged.
      fetch: put the parts on the devices.
      ahead: how many steps are put on the devices before they are needed.
    """

    consumer: Consumer
    padding: StepPadding | None = None
    fetch: bool = True
    ahead: int = 0

    @property
    def changes(self) -> bool:
        """False if steps are delivered unchanged."""
        return self.padding is not None or self._puts

    @property
    def _puts(self) -> bool:
        return self.fetch and not self.consumer.replicas.devices.host_memory

    def steps(self, source: StepSource, steps: Steps) -> Steps | StepsAhead:
        """An iteration whose steps are as they are delivered, some of them made ahead."""
        if not self.changes:
            return steps
        # Agreements between workers must come in the order of the program, so no thread may make them.
        ahead = self.ahead if self._puts and not source.agrees else 0
        devices = self.consumer.replicas.devices
        bind, delivered = getattr(devices, "bind", None), getattr(devices, "delivered", None)
        return StepsAhead(steps, self.finished, max(0, ahead), bind=bind, delivered=delivered if self._puts else None)

    def finished(self, step: Any) -> Any:
        """The step as it is delivered."""
        if self.padding is not None:
            step = self.padding(step)
        return self._put(step) if self._puts else step

    def _put(self, step: Any) -> Any:
        structure, leaves = replica_leaves(step)
        parts = [leaf.values if isinstance(leaf, PerReplica) else (leaf,) for leaf in leaves]
        put_step = getattr(self.consumer.replicas.devices, "put_step", self._put_one_by_one)
        made = [_like(leaf, value) for leaf, value in zip(leaves, put_step(parts), strict=True)]
        return structure.build(made)

    def _put_one_by_one(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        put = self.consumer.replicas.devices.put
        return [PerReplica([put(part, i, owned=True) for i, part in enumerate(parts)]) for parts in leaves]

    def element_spec(self, source: StepSource) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica."""
        replicas, terms = self.consumer.replicas, source.terms
        spec = source.spec if self.padding is None else self.padding.spec
        if not replicas.wraps:
            return spec.nest
        if replicas.workers > 1 and terms.keeps_partial and self.padding is None:
            spec = spec.map(open_rows)
        return per_replica_spec(spec, replicas.count)


def _like(leaf: Any, put: PerReplica) -> Any:
    """What was put, as a leaf of the same kind."""
    if isinstance(leaf, PartialPerReplica):
        return marked(put, leaf.present)
    return put if isinstance(leaf, PerReplica) else put.values[0]


def open_rows(leaf: LeafSpec) -> LeafSpec:
    """The spec with an unknown number of rows."""
    return leaf.with_shape((None, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf
