# SPDX-License-Identifier: Apache-2.0
"""Iterators of a dataset, whose position can be saved after any element, their spec, and `Optional`."""

import os
import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import suppress
from itertools import compress, repeat
from operator import length_hint
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeVar

from distinput.arrow.adopt import adopt
from distinput.columns.block import Block, ColumnBlock, Failure, users_frames
from distinput.columns.state import State
from distinput.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    StateError,
    UnavailableError,
)
from distinput.names.lazy import dataclass, later, without_secrets
from distinput.plan.families import decided, drawn_seeds, stores, with_drawn_seeds
from distinput.plan.node import Node, walk
from distinput.rewrite.rules import Running
from distinput.run.run import OpCounters, Run, note_element
from distinput.run.threads import Closing, Ending, check_goes_on
from distinput.values.buffers import copy_of, end_iteration
from distinput.values.leaves import as_leaves
from distinput.values.nest import structure_of
from distinput.values.spec import ElementsSpec, OptionalSpec, Spec

if TYPE_CHECKING:
    from distinput.data import loader
    from distinput.data import seal as seals
    from distinput.data import stats as statistics
    from distinput.data.seal import Seal
    from distinput.data.stats import Stats
    from distinput.plan import options as plan_options
else:
    loader = later("distinput.data.loader")  # processes that inherited a dataset, and passes with a number, are few
    seals = later("distinput.data.seal")  # what makes and reads states is for those who save them
    statistics = later("distinput.data.stats")  # for those who ask for them
    plan_options = later("distinput.plan.options")  # few pipelines have some


# ----------------------------------------------------------------------------
# The type of a dataset's elements, for editors and type checkers; it is not used at run time.
# ----------------------------------------------------------------------------


if TYPE_CHECKING:
    import typing_extensions  # comes with every type checker

    T_co = typing_extensions.TypeVar("T_co", covariant=True, default=Any)
    """The type of the elements; Any where a program says `Dataset` alone."""
else:
    T_co = TypeVar("T_co", covariant=True)


# ----------------------------------------------------------------------------
# `Optional`: the next element of an iterator, or nothing at its end.
# ----------------------------------------------------------------------------


_NOTHING: Any = object()

U = TypeVar("U")


class Optional(Generic[T_co]):
    """A value, or nothing. Elements of datasets may be, or hold, Optionals; batches of them are refused, as by TensorFlow.

    Args:
      value: the value; omit it for an empty Optional.
      element_spec: the spec of the value.

    >>> import distinput as di
    >>> it = iter(di.data.Dataset.range(1))
    >>> first, second = it.get_next_as_optional(), it.get_next_as_optional()
    >>> first.get_value(), second.has_value()
    (np.int64(0), False)
    >>> halves = di.data.Dataset.range(4).map(
    ...     lambda x: di.data.experimental.Optional(x // 2, di.TensorSpec([], "int64")) if x % 2 == 0 else second
    ... )
    >>> [half.get_value() for half in halves if half.has_value()]
    [np.int64(0), np.int64(1)]

    Source: `tf.experimental.Optional`.
    """

    __slots__ = ("_value", "element_spec")

    nest_leaf = True
    """Marks the class as a leaf for `values.leaves`, which cannot import it."""
    is_optional = True

    def __init__(self, value: T_co = _NOTHING, element_spec: Any = None) -> None:
        self._value = value
        self.element_spec = element_spec

    @staticmethod
    def from_value(value: U) -> "Optional[U]":
        """An Optional that holds `value`, with its spec.

        Raises:
          TypeError: the value is not an element.

        >>> import distinput as di
        >>> di.data.experimental.Optional.from_value(37.0).element_spec
        TensorSpec(shape=(), dtype=float32)

        Source: `tf.experimental.Optional.from_value`.
        """
        value = adopt(value)
        structure = structure_of(value)
        leaves = as_leaves(structure.flatten(value), structure.paths)
        shown = [leaf.to_user() if getattr(leaf, "nest_leaf", False) else copy_of(leaf) for leaf in leaves]
        return Optional(structure.build(shown), Spec.of_value(value).nest)

    @staticmethod
    def empty(element_spec: Any) -> "Optional[Any]":
        """An Optional without a value; `element_spec` describes the missing one."""
        return Optional(element_spec=element_spec)

    def has_value(self, name: str | None = None) -> bool:
        """True if there is a value.

        Args:
          name: ignored.
        """
        return self._value is not _NOTHING

    def get_value(self, name: str | None = None) -> T_co:
        """The value.

        Args:
          name: ignored.

        Raises:
          InvalidArgumentError: there is none.
        """
        if self._value is _NOTHING:
            raise InvalidArgumentError(
                "The given optional does not have a value: the data ended; ask has_value() first"
            )
        return self._value

    @property
    def leaf_spec(self) -> OptionalSpec:
        """The spec of the Optional as a leaf of an element."""
        if self.element_spec is None and self.has_value():
            return OptionalSpec(Spec.of_value(self._value).nest)
        return OptionalSpec(self.element_spec)

    def to_user(self) -> "Optional[T_co]":
        """Itself: what users are given of a leaf."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The mark of an empty one would be another object where it is sent to.
        if self.has_value():
            return Optional, (self._value, self.element_spec)
        return Optional.empty, (self.element_spec,)

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.has_value() else "Optional()"


OptionalSpec.value_type = Optional


# ----------------------------------------------------------------------------
# An iteration: the stream that is being read, and the run that its threads share.
# ----------------------------------------------------------------------------


class Iteration(Ending):
    """What an iterator reads from. It does not refer to the iterator, so dropping the iterator ends the iteration.

    Args:
      node: the tree that runs.
      state: the position to begin at.
      run: its threads and counters.
    """

    __slots__ = ("_cut", "_lock", "run", "stream")

    def __init__(self, node: Node, state: State, run: Run) -> None:
        self.run, self._lock, self._cut = run, RLock(), False
        self.stream = node.open(state, run)
        self.begun()

    def next(self, left: Callable[[], int] | None = None) -> tuple[Block, State] | None:
        """The next block, and the state after it; None at the end, and once it is closed.

        Args:
          left: how many elements are to come, as far as that is known.

        Raises:
          CancelledError: see `check_goes_on`.
        """
        with self._lock:  # nobody closes the stream meanwhile
            try:
                item = next(self.stream, None)
            except CancelledError:
                if not self.run.cancelled.was_set:
                    raise
                item, self._cut = None, True
        if item is None and self._cut and (left is None or left() != 0):
            check_goes_on()
        return item

    def end(self, patience: float | None) -> None:
        self._cut = self._cut or self.run.has_threads
        self.run.cancel()
        try:
            if self._lock.acquire(blocking=False):  # otherwise the thread that is in it finds it cancelled
                try:
                    if not getattr(self.stream, "gi_running", False):  # by this thread, which was interrupted
                        self._cut = True
                        self.stream.close()  # type: ignore[attr-defined]
                finally:
                    self._lock.release()
        finally:
            self.run.close(patience)
            end_iteration()


# ----------------------------------------------------------------------------
# What an iterator has in hand: the elements of one block, and the place after each of them.
#
# An iterator takes over a block by putting another hand in the place of the one before. After that, only C code changes it:
# it counts down with each element that is taken. So an interrupt finds the iterator before an element or behind it, never
# between.
# ----------------------------------------------------------------------------


NONE: Iterator[Any] = iter(())
"""No elements."""

_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if only one thread at a time runs inside an iterator written in C."""


@dataclass(slots=True)
class Hand:
    """The elements of a block, of which some were taken.

    Args:
      at: the state of the tree before the block.
      after: the state of the tree after it.
      over: how many elements have to be passed over before the first one that is delivered.
      before: elements before the block, if they are known; elements that an error stands for are missing.
      passed: the code of an error that was raised, and comes once more on the way.
      since: whether there were elements since then.
      size: elements of the block.
      left: its length hint is the number of elements that were not taken.
      parts: the elements, in iterators of which each is used up before the next one. Each element that is taken must take one
        from `left`.
    """

    at: State
    after: State
    over: int = 0
    before: int | None = None
    passed: str | None = None
    since: bool = False
    size: int = 0
    left: Iterator[Any] = NONE
    parts: Iterator[Iterator[Any]] = NONE

    def part(self) -> Iterator[Any] | None:
        """The next part of the elements; None if there is none."""
        for part in self.parts:
            return compress(part, self.left)
        return None

    def drop(self) -> None:
        """Let go of a block that is used up, so that its memory can be reused for the next one."""
        self.left = self.parts = NONE

    def behind(self, after: State, over: int, *, passed: str | None, since: bool) -> Self:
        """Behind this block, with none in hand."""
        before = None if self.before is None else self.before + self.size
        return type(self)(self.after, after, over, before, passed, since)

    def hold(self, block: Block, over: int) -> Iterator[Any]:
        """Take a block, of which the first elements are passed over; the first part of the others.

        Several threads may take elements from a part at a time, and each goes to one of them.
        """
        size, rows = block.size, block.rows(over, block.size) if over else block
        parts = (rows.shared_parts() if _GIL else None) or iter((_Turns(rows.elements()),))
        elements: Iterator[Any] = next(parts)
        if length_hint(elements, -1) == rows.size:
            self.left = elements  # all of them
        else:
            self.left = repeat(True, rows.size)
            elements = compress(elements, self.left)
        self.size, self.parts = size, parts
        return elements

    def place(self, left: int) -> tuple[State, int]:
        """The state of the tree, and how many elements to pass over from there, where so many are left in hand."""
        if not left and not self.over:  # the block is used up, so no part of it has to be made again
            return self.after, 0
        return self.at, self.size - left + self.over


class _Turns:
    """An iterator from which several threads take in turn.

    Args:
      elements: an iterator that only one thread may be in.
    """

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements, self._lock = elements, RLock()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._elements)


# ----------------------------------------------------------------------------
# Passes over a dataset, counted so that each one can be shuffled differently.
# ----------------------------------------------------------------------------


class Passes:
    """Counts the passes begun over a dataset."""

    def __init__(self) -> None:
        self.begun = 0
        self.process = os.getpid()
        self.taken_over: tuple[Node, Node, Any] | None = None
        """A tree whose seeds a restored state has others for; the tree with those, and what runs for it."""

    def begin(self, node: Node, number: int | None = None) -> int:
        """The number of the pass over `node` that begins now: `number`, or the one after the latest pass."""
        if self.process != os.getpid():  # the counter of another process does not apply here
            self.process = os.getpid()
            loader.look_around(node)
            if number is None:
                self.begun = loader.first_pass(node, self.begun)
        elif number is not None and number == self.begun - 1:
            loader.look_again(node, number)
        self.begun = (self.begun if number is None else number) + 1
        return self.begun - 1

    def goes_on(self, number: int) -> None:
        """Pass `number` continues from a saved state; the next pass is the one after it."""
        self.begun = number + 1


# ----------------------------------------------------------------------------
# The iterators, of elements and of blocks.
# ----------------------------------------------------------------------------


_LAST = (AbortedError, CancelledError, UnavailableError)
"""Errors that do not belong to a single element: nothing follows them."""

_PATIENCE = 1.0
"""Seconds that are waited after an interrupt for threads that are in the middle of something."""


HandMark = tuple[Hand, int, BaseException | None]
"""A position: what was in hand, how many elements were left of it, and the error with which the stream had ended."""


def _begin_with_the_user(error: BaseException) -> None:
    """In a notebook, have the traceback of an error begin with the function of the user's that raised it.

    An error that is raised in this library keeps all of its frames, and so does every error elsewhere.
    """
    shell = sys.modules.get("IPython")
    if shell is None or shell.get_ipython() is None:
        return
    error.__traceback__ = users_frames(error) or error.__traceback__


class DatasetIterator(Closing, Generic[T_co]):
    """Elements of a dataset, one by one; a context manager that ends its threads when it is closed or dropped.

    An error takes the place of an element: the next call continues after it. If nothing can follow, it is raised again.

    An interrupt (`KeyboardInterrupt`, or another exception that a signal handler raises) takes no element away: a loop that is
    run again, with this iterator or one restored from its state, continues with the element after the last one that it got.

    Args:
      plan: the node as the user described it, for the fingerprint.
      running: the tree that runs.
      place: where to begin, as returned by `place()`.
      passes: the counter of the dataset; None for a new one.
      make_run: makes the runs that it needs, of the steps and `run_ahead`; a recording gives one that takes notes.

    >>> import distinput as di
    >>> with iter(di.data.Dataset.range(4)) as it:
    ...     first, state = next(it), it.state()
    >>> [int(x) for x in di.data.Dataset.range(4).restore(state)]
    [1, 2, 3]
    """

    def __init__(
        self,
        plan: Node,
        running: Running,
        place: State,
        passes: Passes | None = None,
        make_run: Callable[..., Run] = Run,
    ) -> None:
        node = running.node
        self._plan, self._running, self._node, self._passes = plan, running, node, passes or Passes()
        self._made_seal: Seal | None = None
        self._seeds, self._stores, self._decided = drawn_seeds(plan), stores(plan), decided(plan)
        self._is_plain = not (self._seeds or self._stores or self._decided)
        self._make_run = make_run
        self._run = run_of(node, make_run).asking(by_element=True, tolerant=place.get("tolerant", False))
        self._lock = RLock()
        self._run.resumed = bool(place["skip"]) or place["at"] != node.start(place["epoch"])
        self._epoch: int = place["epoch"]
        self._kept: list[int | None] | None = place.get("kept")  # as the state had it, until there is a block
        # An interrupt may come with any function call or loop. So what belongs together is assigned in one statement.
        self._hand = _hand_at(place, None if self._run.resumed or self._run.tolerant else 0)
        self._elements: Iterator[T_co] = NONE  # in hand, as far as they come from one part of the block
        self._torn: int | None = None  # those that are lost (1), or come again (-1), when taking one was interrupted
        self._pulling = False  # more has been taken from the block or the stream than the hand knows
        self._failure: BaseException | None = None  # the error with which the stream ended
        self._ended = False
        self._iteration = Iteration(node, place["at"], self._run)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        while True:
            elements = self._elements
            try:
                for element in elements:  # which several threads may do at a time; see `Hand`
                    return element
            except BaseException as error:
                self._torn, self._elements = 0, NONE
                if isinstance(error, Exception):
                    self._torn = 1
                    self._tell_record(error)
                raise
            if not self._refilled(elements):
                raise StopIteration

    def _tell_record(self, error: Exception) -> None:
        """Say which record an error is about that came when an element was handed out, as of a text that is not UTF-8."""
        hand = self._hand
        told = None
        with suppress(Exception):  # of looking for it, such as that the file is gone
            told = self._node.told_record(error, *hand.place(length_hint(hand.left)))
        if told:
            error.add_note(without_secrets(told))

    def __length_hint__(self) -> int:
        """The number of elements left, if it is known, as for a list that is made of them."""
        if self._ended:
            return 0
        try:
            whole = self._plan.cardinality
        except Exception:  # noqa: BLE001 - the next element raises it
            return NotImplemented  # type: ignore[no-any-return]
        with self._lock:
            hand = self._hand
            if whole < 0 or hand.before is None:
                return NotImplemented  # type: ignore[no-any-return]
            return max(0, whole - hand.before - hand.size + length_hint(hand.left))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a DatasetIterator cannot be copied or sent to another process, since its threads stay here; send the dataset and "
            "the result of state(), and call dataset.restore(state) there"
        )

    def _refilled(self, spent: Iterator[T_co]) -> bool:
        """Take up the next elements behind those that are spent; False at the end."""
        self._run.check_process()
        with self._lock:
            if self._ended or self._elements is not spent:  # another thread has taken up the next ones meanwhile
                return not self._ended
            if self._torn is None and not self._pulling:
                self._pulling = True
                part = self._hand.part()
                if part is not None:
                    self._elements, self._pulling = part, False
                    return True
            else:
                self._begin_again()
            return self._pulled()

    def _pulled(self) -> bool:
        """Take over the next block that has elements; False at the end."""
        self._pulling, self._elements = True, NONE
        while True:
            self._hand.drop()
            try:
                item = self._iteration.next(self.__length_hint__)
            except BaseException as error:
                waits = isinstance(error, Exception) and not self._run.cancelled.is_set()
                self._iteration.close(None if waits else _PATIENCE)
                self._failure = error
                _begin_with_the_user(error)
                raise
            hand = self._hand
            if item is None:
                self._ended, self._pulling = True, False
                if not self._run.cancelled.is_set():  # otherwise closing it would wait for its threads
                    self._iteration.close()
                return False
            block, after = item
            if type(block) is Failure:
                is_passed = self._is_passed(block.error)
                next_hand = hand.behind(after, hand.over, passed=None if is_passed else hand.passed, since=hand.since)
                if not is_passed:
                    self._hand, self._pulling = next_hand, False
                    _begin_with_the_user(block.error)
                    raise block.error
                self._hand = next_hand
                continue
            size, over = block.size, hand.over
            next_hand = hand.behind(after, max(0, over - size), passed=hand.passed, since=hand.since or size > 0)
            if over >= size:
                next_hand.size = size
                self._hand = next_hand
                continue
            elements = next_hand.hold(block, over)
            self._hand, self._elements, self._pulling = next_hand, elements, False
            return True

    def _begin_again(self) -> None:
        """Begin again behind the last element delivered, after an error in a run that continues after errors.

        This is done when the next element is requested, since most loops end at an error.

        Raises:
          BaseException: the error again, if nothing can follow it.
        """
        failure = self._failure
        if isinstance(failure, _LAST) or (isinstance(failure, Exception) and self._run.tolerant):
            raise failure
        self._iteration.close(_PATIENCE)  # unless the error did that
        place, counters = self.place(), self._run.counters
        run = run_of(self._node, self._make_run).asking(by_element=True, tolerant=place.get("tolerant", False))
        run.counters, run.resumed = counters, True
        hand, iteration = _hand_at(place, None), Iteration(self._node, place["at"], run)
        self._run, self._iteration, self._hand = run, iteration, hand
        self._failure, self._torn, self._pulling = None, None, False

    def _is_passed(self, error: Exception) -> bool:
        """True if an error is the one raised before, met again on the way to the position after it."""
        code, passed = _code(error), self._hand.passed
        if passed is None or self._hand.since:
            return passed == code
        return passed.partition(":")[0] == code.partition(":")[0]  # messages may depend on the block

    @property
    def element_spec(self) -> Any:
        """The spec of an element, as `Dataset.element_spec`."""
        return self._plan.element_spec

    @property
    def epoch(self) -> int:
        """The number of the pass."""
        return self._epoch

    @property
    def seeds(self) -> list[int]:
        """The seeds that were drawn by steps without one."""
        return list(self._seeds)

    def get_next(self) -> T_co:
        """The next element.

        Raises:
          OutOfRangeError: there is none.
        """
        for element in self:
            return element
        raise OutOfRangeError("End of sequence")

    def get_next_as_optional(self) -> Optional[T_co]:
        """The next element, if there is one.

        >>> import distinput as di
        >>> it = iter(di.data.Dataset.range(1))
        >>> it.get_next_as_optional(), it.get_next_as_optional()
        (Optional(np.int64(0)), Optional())
        """
        spec = self.element_spec
        for element in self:
            try:
                return Optional(element, spec)
            except BaseException:
                self._torn, self._elements = -1, NONE
                raise
        return Optional(element_spec=spec)

    def state(self) -> State:
        """The position after the last element delivered or error raised: a small JSON value for `Dataset.restore`."""
        seal, hand = self._made_seal or self._seal(), self._hand
        at, skip = hand.place(length_hint(hand.left))
        is_plain = self._is_plain and hand.passed is None and not self._run.asked.tolerant
        if is_plain and self._failure is None and self._torn is None and self._hand is hand:
            return seal.usual(self._epoch, at, skip)  # no lock is needed, since no other thread has gone on meanwhile
        return seal(self.place())

    def place(self, mark: HandMark | None = None) -> State:
        """The position after the last element delivered or error raised, without the identity of the pipeline.

        Args:
          mark: what `mark` gave; None: the position now.
        """
        with self._lock:
            hand, left, failure = mark or self.mark()
            at, skip = hand.place(left)
            state: State = {"epoch": self._epoch, "at": at, "skip": skip}
            passed, tolerant = hand.passed, self._run.tolerant
            if failure is not None and isinstance(failure, Exception):
                passed, tolerant = passed if tolerant else _code(failure), True
            if passed is not None:
                state["passed"] = passed
            if tolerant:
                state["tolerant"] = True
            if self._seeds:
                state["seeds"] = self._seeds
            if self._stores:
                untouched = self._kept is not None and hand.after is hand.at
                state["kept"] = self._kept if untouched else [store.epoch for store in self._stores]
            if self._decided:
                state["decided"] = [each.state for each in self._decided]
            return state

    def mark(self) -> HandMark:
        """What `place` needs to tell this position later; quick to make."""
        hand = self._hand
        return hand, length_hint(hand.left) - (self._torn or 0), self._failure

    def annotate(self, error: Exception, element: Any, where: str) -> None:
        """Say with an error of a function outside of the steps which element it was given, the last one, and its record.

        Args:
          error: that the function raised.
          element: that was given.
          where: what called the function.
        """
        with self._lock:
            hand, left, _ = self.mark()
        note_element(error, element)
        self._run.annotate(error, lambda: where)
        self._run.note_record(error, self._node, hand.at, hand.size - left + hand.over - 1)

    def sealed(self, place: State) -> State:
        """The state of a place that this iterator was at."""
        if self._decided:  # also what was decided since then, about elements that were still to come
            place = {**place, "decided": [each.state for each in self._decided]}
        return (self._made_seal or self._seal())(place)

    def _seal(self) -> "Seal":
        if self._made_seal is None:
            self._made_seal = seals.Seal(self._plan, self._running)
        return self._made_seal

    def state_dict(self) -> State:
        """The same as `state()`, under the name that PyTorch's tools expect."""
        return self.state()

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """Continue from a saved state, in this iterator.

        Args:
          state: a result of `state_dict`.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: the state is of another pipeline or version.
        """
        place, running = seals.place_in(self._plan, self._running, state, may_differ)
        plan, running = resumed(self._plan, running, place)
        other: DatasetIterator[T_co] = DatasetIterator(plan, running, place, self._passes, self._make_run)
        self._passes.goes_on(place["epoch"])
        if plan is not self._plan:  # later passes go on with the seeds of the state
            self._passes.taken_over = self._plan, plan, running
        self.__dict__, other.__dict__ = other.__dict__, self.__dict__
        other.close()

    def get_state(self) -> bytes:
        """The same as `state()`, as the JSON text that Grain's tools expect; quicker than `json.dumps(iterator.state())`."""
        return self._seal().text(self.state()).encode()

    def set_state(self, state: bytes | State) -> None:
        """The same as `load_state_dict`, of a result of `get_state` or `state`."""
        self.load_state_dict(seals.of_text(state, "set_state", "get_state()"))

    def start_prefetch(self) -> None:
        """Do nothing; Grain's tools call it after `set_state`. What is read ahead begins with the first element."""

    def stats(self) -> "Stats":
        """Statistics of each step so far, the choices of AUTOTUNE, and the step that the others wait for."""
        return statistics.stats_of(*self.counted)

    def _repr_html_(self) -> str:
        """What notebooks show: the statistics so far."""
        return self.stats()._repr_html_()

    @property
    def counted(self) -> tuple[Node, Mapping[Hashable, OpCounters]]:
        """The tree that runs, and the live counters of its steps."""
        return self._node, self._run.counters

    def close(self) -> None:
        """End the iteration and its threads; may be called again."""
        self._run.cancel()  # also seen by another thread that waits for an element
        with self._lock:
            self._ended, self._elements = True, NONE
            self._iteration.close()

    def __del__(self) -> None:
        if hasattr(self, "_iteration"):
            self._iteration.drop()


class BlockIterator(Closing):
    """Blocks of a dataset as they are made, without conversion to elements.

    Args:
      node: the node that runs.
      state: where to begin.
    """

    def __init__(self, node: Node, state: State) -> None:
        self._iteration = Iteration(node, state, run_of(node))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ColumnBlock:
        item = self._iteration.next()
        if item is None:
            raise StopIteration
        return item[0].materialize()  # users of blocks look at whole columns

    def close(self) -> None:
        """End the iteration and its threads."""
        self._iteration.close()

    def __del__(self) -> None:
        if hasattr(self, "_iteration"):
            self._iteration.drop()


def _code(error: Exception) -> str:
    """A code by which an error is recognised: its class, and a number derived from its message."""
    from zlib import crc32  # errors are rare

    return f"{type(error).__name__[:40]}:{crc32(str(error).encode(errors='surrogatepass'))}"


def _hand_at(place: State, before: int | None) -> Hand:
    """What an iterator has in hand at a place."""
    return Hand(place["at"], place["at"], place["skip"], before, place.get("passed"))


def run_of(node: Node, make_run: Callable[..., Run] = Run) -> Run:
    """What one iteration of a tree shares, as its options say."""
    steps = list(walk(node))
    if any(step.own_options is not None for step in steps):
        options = plan_options.options_of(node)
        run = make_run(steps, run_ahead=options.run_ahead, memory_budget=options.memory_budget)
        run.ram_budget = options.autotune.ram_budget or run.ram_budget
        return run
    return make_run(steps)


def resumed(plan: Node, running: Running, place: State) -> tuple[Node, Running]:
    """The tree as described and as it runs, with the seeds that were drawn, and the passes kept, where a state was saved.

    Raises:
      StateError: there were other seeds.
    """
    here, saved = drawn_seeds(plan), place.get("seeds", [])
    if len(here) != len(saved):
        raise StateError(
            f"restore: the state must hold a seed for each of the {len(here)} steps that draw one, got {len(saved)}; it must "
            "be what iterator.state() gave"
        )
    kept = dict(enumerate(place.get("kept", [])))
    known = [(store.epoch, kept.get(index)) for index, store in enumerate(stores(plan))]
    if here != saved or any(a is not None and b is not None and a != b for a, b in known):
        plan = with_drawn_seeds(plan, saved)
        running = Running.of(plan, running.rules)
    for index, store in enumerate(stores(plan)):
        if store.epoch is None:
            store.epoch = kept.get(index)
    _decide_again(plan, place)
    return plan, running


def _decide_again(plan: Node, place: State) -> None:
    """Have steps whose users decide what comes next go on with the decisions of a state.

    Raises:
      StateError: it has others.
    """
    here = decided(plan)
    decisions = place.get("decided")
    if decisions is None:  # a place that no iterator was at
        return
    said: str | None = "it does not hold the decisions of each mixture"
    if isinstance(decisions, list) and len(decisions) == len(here):
        said = next((why for live, each in zip(here, decisions, strict=True) if (why := live.misfit(each))), None)
    if said is not None:
        raise StateError(f"restore: the state is damaged: {said}; it must be what iterator.state() gave")
    for live, each in zip(here, decisions, strict=True):
        live.restore(each)


# ----------------------------------------------------------------------------
# What makes passes.
# ----------------------------------------------------------------------------


class DatasetLike(Protocol):
    """A dataset, as tables, writers and recordings need one; the class `Dataset` uses these, and so stands above them."""

    _passes: Passes
    _counted: tuple[Node, Mapping[Hashable, OpCounters]]

    @property
    def node(self) -> Node: ...

    def cardinality(self) -> int: ...

    def iter_blocks(self) -> BlockIterator: ...

    def explain(self) -> str: ...

    def stats(self) -> "Stats": ...

    def _runs(self) -> Running: ...

    def _watched(self, make_run: Callable[..., Run]) -> "tuple[DatasetLike, Any, int]": ...


# ----------------------------------------------------------------------------
# The spec of iterators.
# ----------------------------------------------------------------------------


class IteratorSpec(ElementsSpec):
    """The spec of an iterator of a dataset; the counterpart of `tf.data.IteratorSpec`.

    Args:
      element_spec: the spec nest of its elements.

    >>> import distinput as di
    >>> di.data.IteratorSpec.from_value(iter(di.data.Dataset.range(3)))
    IteratorSpec(element_spec=TensorSpec(shape=(), dtype=int64))

    Source: `tf.data.IteratorSpec`.
    """

    value_type: ClassVar[type] = DatasetIterator
    called: ClassVar[str] = "an iterator"
