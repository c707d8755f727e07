# SPDX-License-Identifier: Apache-2.0
"""Call a chain of functions through an executor of `concurrent.futures`, with the results in the order of the elements.

What the functions raise travels as a result. So what a future raises tells that the worker was lost, and its part is sent
again: to the same executor, or, if that is broken, to a new one.

Source: PEP 3148.
"""

import pickle
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from distinput.core.block import Block
from distinput.core.cores import cores
from distinput.core.failure import Failure
from distinput.core.processes import pickled
from distinput.core.rows import Stream
from distinput.core.run import Counter, Run
from distinput.core.state import Mark, State
from distinput.errors import UnavailableError
from distinput.functions.chain import Kinds
from distinput.functions.parts import Calls, Done, Note, Parts, Results, Trouble, work
from distinput.functions.worker_processes import Task, packed

__all__ = ["called_by_executor", "check_executor"]

_TRIES = 4
"""How often a part is sent before its loss is an error."""

_LOOK_SECONDS = 0.2
"""How often a wait looks whether the iteration was closed."""


def check_executor(executor: Any) -> None:
    """Refuse what is neither an executor nor a function; a class of executors is neither, since it has yet to be told a size.

    Raises:
      TypeError: it is neither.
    """
    if isinstance(executor, type) and callable(getattr(executor, "submit", None)):
        name = executor.__name__
        raise TypeError(
            f"map: executor must be a concurrent.futures.Executor, or a function that makes one, got the class {name}; "
            f"give {name}(4), or lambda: {name}(4)"
        )
    if not callable(getattr(executor, "submit", None)) and not callable(executor):
        raise TypeError(
            "map: executor must be a concurrent.futures.Executor, or a function that makes one, got "
            f"{executor!r}; for Dask give client.get_executor()"
        )


@dataclass
class _Sent:
    """A part that is under way, or a failure that keeps its place."""

    rows: Block
    at: Callable[[int], Mark]
    future: "Future[Done] | None" = None
    to: "Executor | None" = None
    tries: int = 0


def called_by_executor(
    upstream: Stream,
    state: State,
    executor: Any,
    most: int | None,
    chain: Calls,
    run: Run,
    counter: Counter,
    note: Note,
) -> Results:
    """Blocks of the results of `chain`, called through an executor.

    Args:
      upstream: of elements.
      state: where it begins.
      executor: or a function that makes one.
      most: parts that may be under way; None: two for each worker.
      chain: the functions.
      run: the iteration.
      counter: of the step.
      note: is called with errors of the functions.

    Raises:
      UnavailableError: the executor is broken, or has lost a part several times.
    """
    parts = Parts(upstream, state, None if run.run_ahead is None else 1)
    lanes = _Lanes(executor, chain, run)
    waiting: deque[_Sent] = deque()
    workers = lanes.workers()
    counter.workers = workers
    try:
        while waiting or not parts.ended:
            limit = run.at_once(most or parts.waiting(workers)) if chain.settled else 1
            full = len(waiting) >= limit or parts.ended
            if waiting and (full or waiting[0].future is None or waiting[0].future.done()):
                sent = waiting.popleft()
                if sent.future is None:
                    yield sent.rows, sent.at, sent.rows
                    continue
                done = counter.waits(lanes.received, sent)
                if done is None:
                    return  # the run was closed while it waited
                counter.worked += done.seconds
                parts.took(done)
                chain.settle(done.kinds)
                yield from done.delivered(sent.rows, sent.at, note, tolerant=run.tolerant)
            else:
                part = parts.next()
                if part is not None:
                    made = _Sent(*part)
                    if type(made.rows) is not Failure:
                        lanes.send(made)
                    waiting.append(made)
    finally:
        for left in waiting:
            if left.future is not None:
                left.future.cancel()
        lanes.close()
    parts.close()


class _Lanes:
    """The executor, and how parts get there."""

    def __init__(self, executor: Any, chain: Calls, run: Run) -> None:
        self._given, self._chain, self._run = executor, chain, run
        self._made: list[Executor] = []
        self._executor: Any = executor if hasattr(executor, "submit") else self._fresh()
        self._payload: bytes | None = None

    def workers(self) -> int:
        """How many there are, as far as the executor tells."""
        found = getattr(self._executor, "_max_workers", None)
        return found if isinstance(found, int) and found > 0 else cores()

    def send(self, sent: _Sent) -> None:
        """Hand a part to the executor.

        Raises:
          UnavailableError: it takes no more.
        """
        sent.tries += 1
        for again in (True, False):
            sent.to = self._executor
            try:
                sent.future = self._submitted(sent.rows)
                return
            except Exception as error:
                if not again or not self._renewed():
                    raise self._broken(error) from error

    def received(self, sent: _Sent) -> Done | None:
        """The results of a part, sent again if they were lost; None if the run was closed."""
        while True:
            assert sent.future is not None
            try:
                return sent.future.result(_LOOK_SECONDS)
            except TimeoutError as error:
                if self._run.cancelled.is_set():
                    return None
                if not sent.future.done():
                    continue
                lost: BaseException = error
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                lost = error
            if isinstance(
                lost, TypeError | AttributeError | pickle.PicklingError
            ):  # it could not be sent, or sent back
                raise TypeError(
                    f"map: {self._chain.functions!r:.200}, its elements or its results cannot be sent to the executor: {lost}; "
                    "define functions at the top level of a module, or install cloudpickle"
                ) from lost
            if sent.tries >= _TRIES:
                raise UnavailableError(
                    f"map: the executor lost {sent.rows.size} elements {_TRIES} times, the last time with "
                    f"{type(lost).__name__}: {lost}; a function may end its worker, or need more memory than there is"
                ) from lost
            if sent.to is self._executor:
                self._renewed()
            self.send(sent)

    def close(self) -> None:
        """End the executors that were made here."""
        for made in self._made:
            made.shutdown(wait=False, cancel_futures=True)

    def _submitted(self, rows: Block) -> "Future[Done]":
        executor = self._executor
        if _is_here(executor):
            made: Future[Done] = executor.submit(
                work, self._chain, rows, self._run.cancelled.is_set, tolerant=self._run.tolerant
            )
            return made
        if self._payload is None:
            self._payload = pickled("map", Task(self._chain))
        given = (packed(rows), self._chain.kinds, self._run.tolerant)
        return executor.submit(_called_there, self._payload, given)  # type: ignore[no-any-return]

    def _renewed(self) -> bool:
        """Whether there is a new executor in the place of a broken one."""
        if hasattr(self._given, "submit"):
            return False
        self._executor = self._fresh()
        return True

    def _fresh(self) -> Executor:
        made: Executor = self._given()
        if not callable(getattr(made, "submit", None)):
            raise TypeError(
                f"map: the function given as executor must make a concurrent.futures.Executor, got {made!r}"
            )
        self._made.append(made)
        return made

    def _broken(self, error: Exception) -> UnavailableError:
        return UnavailableError(
            f"map: the executor takes no more work ({type(error).__name__}: {error}); give a function that makes an executor, "
            "which is called again when one has broken: executor=lambda: ProcessPoolExecutor(4)"
        )


def _is_here(executor: Any) -> bool:
    """Whether its workers are threads of this interpreter, so that nothing needs to be pickled."""
    names = [kind.__name__ for kind in type(executor).__mro__]
    return isinstance(executor, ThreadPoolExecutor) and "InterpreterPoolExecutor" not in names


@lru_cache(maxsize=8)
def _task(data: bytes) -> Task:
    made = pickle.loads(data)
    assert isinstance(made, Task)
    return made


def _called_there(data: bytes, given: tuple[Block, Kinds, bool]) -> Done:
    """What a worker does with a part."""
    done = _task(data)(given)
    for made in done.parts:
        if isinstance(made, Trouble):
            made.error.add_note(f"in a worker of the executor:\n{made.trace}")
    return done
