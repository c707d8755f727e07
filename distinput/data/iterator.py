# SPDX-License-Identifier: Apache-2.0
"""Iterators of a dataset, whose position can be saved after any element."""

import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from itertools import compress, repeat
from operator import length_hint
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self

from distinput.core.block import Block, ColumnBlock
from distinput.core.failure import Failure
from distinput.core.run import Counter, Run
from distinput.core.state import State
from distinput.data.element import T_co
from distinput.data.iteration import Iteration
from distinput.data.optional import Optional
from distinput.data.passes import Passes
from distinput.errors import AbortedError, CancelledError, OutOfRangeError, StateError, UnavailableError
from distinput.plan.node import Node, walk
from distinput.plan.seeds import drawn_seeds, stores, with_drawn_seeds
from distinput.rewrite.running import Running

if TYPE_CHECKING:
    from distinput.data.seal import Seal
    from distinput.data.stats import Stats

__all__ = ["BlockIterator", "DatasetIterator", "resumed", "run_of"]

_EMPTY: Iterator[Any] = iter(())

_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if only one thread at a time runs inside an iterator written in C."""

_LAST = (AbortedError, CancelledError, UnavailableError)
"""Errors that do not belong to a single element: nothing follows them."""


class DatasetIterator(Generic[T_co]):
    """Elements of a dataset, one by one; a context manager that ends its threads when it is closed or dropped.

    An error takes the place of an element: the next call continues after it. If nothing can follow, it is raised again.

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
        self._seeds, self._stores = drawn_seeds(plan), stores(plan)
        self._make_run = make_run
        self._run = run_of(node, make_run)
        self._run.by_element = True
        self._lock = RLock()
        self._run.tolerant = place.get("tolerant", False)
        self._run.resumed = bool(place["skip"]) or place["at"] != node.start(place["epoch"])
        self._passed: str | None = place.get("passed")  # the code of an error that was raised, and comes once more
        self._rows_since = False  # whether there were elements since then
        self._at: State = place["at"]
        self._epoch: int = place["epoch"]
        self._over: int = place["skip"]
        self._after: State = self._at
        self._size = 0  # of the current block
        # Elements before the current block, if they are known; elements that an error stands for are missing.
        self._before = None if self._run.resumed or self._run.tolerant else 0
        self._elements: Iterator[T_co] = _EMPTY
        self._parts: Iterator[Iterator[T_co]] = _EMPTY  # the elements of the current block behind these
        self._left = _EMPTY  # its length hint is the number of elements left in the current block
        self._failure: BaseException | None = None
        self._ended = False
        self._iteration = Iteration(node, self._at, self._run)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        for element in self._elements:  # which several threads may do at a time; see `_counted`
            return element
        return self._in_turn()

    def __length_hint__(self) -> int:
        """The number of elements left, if it is known, as for a list that is made of them."""
        if self._ended:
            return 0
        try:
            whole = self._plan.cardinality
        except Exception:  # noqa: BLE001 - the next element raises it
            return NotImplemented  # type: ignore[no-any-return]
        if whole < 0 or self._before is None:
            return NotImplemented  # type: ignore[no-any-return]
        with self._lock:
            left = length_hint(self._left)
            return max(0, whole - self._before - self._size + left)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a DatasetIterator cannot be copied or sent to another process, since its threads stay here; send the dataset and "
            "the result of state(), and call dataset.restore(state) there"
        )

    def _in_turn(self) -> T_co:
        """The next element, while no other thread gets one."""
        with self._lock:
            for element in self._elements:  # another thread got the next ones meanwhile
                return element
            for part in self._parts:
                self._elements = compress(
                    part, self._left
                )  # which takes one of the elements left for each that it gives
                for element in self._elements:
                    return element
            return self._next_block()

    def _next_block(self) -> T_co:
        """The first element of the next block that has one."""
        if self._failure is not None and not self._ended:
            self._go_on(self._failure)
        while not self._ended:
            if self._before is not None:
                self._before += self._size
            self._at, self._size, self._left = self._after, 0, _EMPTY
            self._elements = self._parts = _EMPTY  # drops the block, so that its memory can be reused for the next one
            try:
                item = next(self._iteration.stream, None)
            except BaseException as error:
                self._failure = error
                if isinstance(error, Exception) and not self._run.tolerant:
                    self._passed = _code(error)
                self._iteration.close()
                raise
            if item is None:
                self._ended = True
                if not self._run.cancelled.is_set():  # otherwise closing it would wait for its threads
                    self._iteration.close()
                break
            block, self._after = item
            if type(block) is Failure:
                if self._is_passed(block.error):
                    self._passed = None
                    continue
                raise block.error
            self._rows_since = self._rows_since or block.size > 0
            over, self._over = self._over, max(0, self._over - block.size)
            if over < block.size:
                self._size = block.size
                self._parts, elements, self._left = _counted(block.rows(over, block.size))
                first: T_co = next(elements)
                self._elements = elements
                return first
        raise StopIteration

    def _go_on(self, error: BaseException) -> None:
        """Begin again after the last element delivered, in a run that continues after errors.

        This is done when the next element is requested, since most loops end at an error.

        Raises:
          BaseException: `error` again, if nothing can follow it.
        """
        if isinstance(error, _LAST) or (isinstance(error, Exception) and self._run.tolerant):
            raise error
        place, counters = self._place(), self._run.counters
        self._run = run_of(self._node, self._make_run)
        self._run.counters, self._run.by_element, self._run.tolerant = counters, True, True
        self._at = self._after = place["at"]
        self._over, self._failure, self._rows_since = place["skip"], None, False
        self._iteration = Iteration(self._node, self._at, self._run)

    def _is_passed(self, error: Exception) -> bool:
        """True if an error is the one raised before, met again on the way to the position after it."""
        code = _code(error)
        if self._passed is None or self._rows_since:
            return self._passed == code
        return self._passed.partition(":")[0] == code.partition(":")[0]  # messages may depend on the block

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
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    def get_next_as_optional(self) -> Optional[T_co]:
        """The next element, if there is one.

        >>> import distinput as di
        >>> it = iter(di.data.Dataset.range(1))
        >>> it.get_next_as_optional(), it.get_next_as_optional()
        (Optional(np.int64(0)), Optional())
        """
        try:
            return Optional(next(self), self.element_spec)
        except StopIteration:
            return Optional(element_spec=self.element_spec)

    def state(self) -> State:
        """The position after the last element delivered or error raised: a small JSON value for `Dataset.restore`."""
        return self.sealed(self.place())

    def place(self) -> State:
        """The position after the last element delivered or error raised, without the identity of the pipeline."""
        with self._lock:
            return self._place()

    def _place(self) -> State:
        left = length_hint(self._left)
        made: State
        if not left and not self._over:  # the block is used up, so no part of it has to be made again
            made = {"epoch": self._epoch, "at": self._after, "skip": 0}
        else:
            made = {"epoch": self._epoch, "at": self._at, "skip": self._size - left + self._over}
        if self._passed is not None:
            made["passed"] = self._passed
        if self._run.tolerant or self._failure is not None:
            made["tolerant"] = True
        if self._seeds:
            made["seeds"] = self._seeds
        if self._stores:
            made["kept"] = [store.epoch for store in self._stores]
        return made

    def sealed(self, place: State) -> State:
        """The state of a place that this iterator was at."""
        if self._made_seal is None:
            from distinput.data.seal import Seal

            self._made_seal = Seal(self._plan, self._running)
        return self._made_seal(place)

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
        from distinput.data.seal import place_in

        place, running = place_in(self._plan, self._running, state, may_differ)
        plan, running = resumed(self._plan, running, place)
        self.close()
        self._passes.goes_on(place["epoch"])
        if plan is not self._plan:
            self._passes.taken_over = self._plan, plan, running
        self.__init__(plan, running, place, self._passes, self._make_run)  # type: ignore[misc]

    def get_state(self) -> bytes:
        """The same as `state()`, as the JSON text that Grain's tools expect."""
        from json import dumps  # saved states are few

        return dumps(self.state()).encode()

    def set_state(self, state: bytes | State) -> None:
        """The same as `load_state_dict`, of a result of `get_state` or `state`."""
        from json import loads

        self.load_state_dict(loads(state) if isinstance(state, bytes | str) else state)

    def start_prefetch(self) -> None:
        """Do nothing; Grain's tools call it after `set_state`. What is read ahead begins with the first element."""

    def stats(self) -> "Stats":
        """Statistics of each step so far, the choices of AUTOTUNE, and the step that the others wait for."""
        from distinput.data.stats import stats_of

        return stats_of(*self.counted)

    def _repr_html_(self) -> str:
        """What notebooks show: the statistics so far."""
        return self.stats()._repr_html_()

    @property
    def counted(self) -> tuple[Node, Mapping[Hashable, Counter]]:
        """The tree that runs, and the live counters of its steps."""
        return self._node, self._run.counters

    def close(self) -> None:
        """End the iteration and its threads; may be called again."""
        self._run.cancel()  # also seen by another thread that waits for an element
        with self._lock:
            self._elements = _EMPTY
            self._ended = True
            self._iteration.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_iteration"):
            self._iteration.drop()


class BlockIterator:
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
        return next(self._iteration.stream)[0].materialize()  # users of blocks look at whole columns

    def close(self) -> None:
        """End the iteration and its threads."""
        self._iteration.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_iteration"):
            self._iteration.drop()


def _code(error: Exception) -> str:
    """A code by which an error is recognised: its class, and a number derived from its message."""
    from zlib import crc32  # errors are rare

    return f"{type(error).__name__[:40]}:{crc32(str(error).encode())}"


def _counted(block: Block) -> tuple[Iterator[Iterator[Any]], Iterator[Any], Iterator[Any]]:
    """The elements of a block in parts: those after the first one, the first one, and what counts the elements left.

    Several threads may take elements from a part at a time, and each goes to one of them. The length hint of the third is the
    number of elements left in all parts; each element of a later part must take one from it.
    """
    parts = (block.shared_parts() if _GIL else None) or iter((_Turns(block.elements()),))
    elements = next(parts)
    if length_hint(elements, -1) == block.size:
        return parts, elements, elements  # all of them
    left = repeat(True, block.size)
    return parts, compress(elements, left), left


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


def run_of(node: Node, make_run: Callable[..., Run] = Run) -> Run:
    """What one iteration of a tree shares, as its options say."""
    steps = list(walk(node))
    if any(step.own_options is not None for step in steps):
        from distinput.plan.options import options_of

        options = options_of(node)
        run = make_run(steps, run_ahead=options.run_ahead)
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
    return plan, running
