# SPDX-License-Identifier: Apache-2.0
"""Call a chain of functions through an executor of `concurrent.futures`, with the results in the order of the elements.

What the functions raise travels as a result. So what a future raises tells that the worker was lost, and its part is sent
again: to the same executor, or, if that is broken, to a new one. A pool of processes of Python's is broken for good when one
of its processes is killed; one with the same settings takes its place.

Source: PEP 3148.
"""

import pickle
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any

from distinput.columns.block import Block
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import UnavailableError
from distinput.functions.chain import Chain, Kinds
from distinput.functions.parts import Calling, Done, PartFailure, Results, in_order
from distinput.functions.workers import WorkerTask, packed
from distinput.run.cores import cores
from distinput.run.pickled_code import dumps, has_cloudpickle
from distinput.run.processes import pickled
from distinput.run.segments import Closed
from distinput.values.nest import Structure

__all__ = ["called_by_executor", "check_executor", "workers_of"]

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


@dataclass(eq=False)
class _Sent:
    """A part that is under way."""

    rows: Block
    future: "Future[Done]"
    to: Executor
    tries: int = 1


def workers_of(executor: Any) -> int:
    """How many calls an executor makes at a time; where it does not tell, how many cores this machine has."""
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)  # Dask's, by the address of the worker
    found = sum(threads().values()) if callable(threads) else getattr(executor, "_max_workers", None)
    return found if isinstance(found, int) and found > 0 else cores()


def called_by_executor(upstream: Stream, state: State, executor: Any, most: int | None, calling: Calling) -> Results:
    """Blocks of the results of functions called through an executor.

    Args:
      upstream: of elements.
      state: where it begins.
      executor: or a function that makes one.
      most: parts that may be under way; None: two for each worker.
      calling: the functions, and the pass.

    Raises:
      UnavailableError: the executor is broken, or has lost a part several times.
    """
    parts = calling.parts(upstream, state)
    lanes = _Lanes(executor, calling)
    try:
        yield from in_order(parts, calling, lanes, most)
    except Closed:
        return  # the run was closed while it waited
    finally:
        lanes.close()
    parts.close()


class _Lanes:
    """The executor, and how parts get there."""

    def __init__(self, executor: Any, calling: Calling) -> None:
        self._given, self._calling = executor, calling
        self._made: list[Executor] = []
        self._executor: Any = executor if hasattr(executor, "submit") else self._fresh(executor)
        self._payload: bytes | None = None
        self._pass, self._calls = uuid.uuid4().hex, count()
        self._under_way: deque[_Sent] = deque()
        self.workers = workers_of(self._executor)

    def send(self, rows: Block) -> _Sent:
        """Hand a part to the executor.

        Raises:
          UnavailableError: it takes no more.
        """
        sent = _Sent(rows, *self._submitted(rows))
        self._under_way.append(sent)
        return sent

    def ready(self, sent: _Sent) -> bool:
        """Whether its results, or the news of its loss, are there."""
        return sent.future.done()

    def receive(self, sent: _Sent) -> Done:
        """The results of a part, sent again if they were lost.

        Raises:
          Closed: the run was closed.
          TypeError: it cannot be sent.
          UnavailableError: it was lost several times.
        """
        while True:
            try:
                result = sent.future.result(_LOOK_SECONDS)
            except TimeoutError as error:
                if self._calling.run.cancelled.is_set():
                    raise Closed from None
                if not sent.future.done():
                    continue
                lost: BaseException = error
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                lost = error
            else:
                self._under_way.remove(sent)
                return pickle.loads(result) if isinstance(result, bytes) else result
            # It could not be sent, or sent back.
            if isinstance(lost, TypeError | AttributeError | pickle.PicklingError):
                functions = self._calling.chain.functions
                raise TypeError(
                    f"map: {functions!r:.200}, its elements or its results cannot be sent to the executor: {lost}; "
                    "define functions at the top level of a module, or install cloudpickle"
                ) from lost
            if sent.tries >= _TRIES:
                raise UnavailableError(
                    f"map: the executor lost {sent.rows.size} elements {_TRIES} times, the last time with "
                    f"{type(lost).__name__}: {lost}; a function may end its worker, or need more memory than there is"
                ) from lost
            if sent.to is self._executor:
                self._renewed(lost)
            sent.future, sent.to = self._submitted(sent.rows)
            sent.tries += 1

    def close(self) -> None:
        """Cancel what is under way, and end the executors that were made here."""
        for sent in self._under_way:
            sent.future.cancel()
        for made in self._made:
            made.shutdown(wait=False)  # without `cancel_futures`, which Dask and loky do not know

    def _submitted(self, rows: Block, *, again: bool = True) -> "tuple[Future[Done], Executor]":
        """What the executor, or a new one in its place, makes of a part, and which of them it was.

        Raises:
          TypeError: the part cannot be sent.
          UnavailableError: neither takes more work.
        """
        executor = self._executor
        function, given = self._call_of(executor, rows)
        try:
            return executor.submit(function, *given), executor
        except Exception as error:
            if again and self._renewed(error):
                return self._submitted(rows, again=False)
            raise self._broken(error) from error

    def _call_of(self, executor: Any, rows: Block) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What a worker calls for a part, and with which arguments."""
        calling = self._calling
        if _is_here(executor):
            return calling.work, (rows, calling.run.cancelled.is_set)
        if self._payload is None:
            self._payload = pickled("map", WorkerTask(calling.chain))
        # Dask takes calls with equal arguments for one call, so there is a number, too.
        part: Any = (packed(rows), calling.chain.kinds, calling.run.tolerant)
        if _is_of_main(rows.structure):
            part = dumps(part)
        return _called_there, (self._payload, part, (self._pass, next(self._calls)))

    def _renewed(self, error: BaseException) -> bool:
        """Whether there is a new executor in the place of a broken one."""
        if not hasattr(self._given, "submit"):
            self._executor = self._fresh(self._given)
        elif _is_pool_of_processes(self._given) and isinstance(error, BrokenExecutor):
            self._executor = self._fresh(partial(_like, self._given))
        else:
            return False
        return True

    def _fresh(self, make: Callable[[], Executor]) -> Executor:
        made = make()
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


def _is_pool_of_processes(executor: Any) -> bool:
    """Whether it is the one of Python, which nobody has to import in order to ask."""
    kind = type(executor)
    return (kind.__module__, kind.__name__) == ("concurrent.futures.process", "ProcessPoolExecutor")


def _like(broken: Any) -> Executor:
    """A pool of processes with the settings of one that is of no use any more, since one of its processes was killed."""
    made: Executor = type(broken)(
        broken._max_workers, broken._mp_context, initializer=broken._initializer, initargs=broken._initargs
    )
    return made


def _is_here(executor: Any) -> bool:
    """Whether its workers are threads of this interpreter, so that nothing needs to be pickled."""
    names = [kind.__name__ for kind in type(executor).__mro__]
    return isinstance(executor, ThreadPoolExecutor) and "InterpreterPoolExecutor" not in names


@lru_cache(maxsize=8)
def _sent(data: bytes) -> WorkerTask:
    """What was sent, with all that the functions hold."""
    made = pickle.loads(data)
    assert isinstance(made, WorkerTask)
    return made


@lru_cache(maxsize=8)
def _task(data: bytes, of_pass: str) -> WorkerTask:  # noqa: ARG001 - a pass of its own
    """The work of a pass: the functions are shared, and what they return is claimed anew."""
    chain = _sent(data).chain
    return WorkerTask(chain.anew() if isinstance(chain, Chain) else chain)


def _is_of_main(structure: Structure) -> bool:
    """Whether elements have classes of the main script, which are sent whole, as functions are: workers may have none."""
    own = structure.cls is not None and structure.cls.__module__ == "__main__"
    return has_cloudpickle() and (own or any(map(_is_of_main, structure.children)))


def _called_there(data: bytes, part: tuple[Block, Kinds, bool] | bytes, call: tuple[str, int]) -> Done | bytes:
    """What a worker does with a part; `call` is the pass, and a number in it."""
    done = _task(data, call[0])(pickle.loads(part) if isinstance(part, bytes) else part)
    for made in done.parts:
        if isinstance(made, PartFailure):
            made.error.add_note(f"in a worker of the executor:\n{made.trace}")
    return dumps(done) if any(map(_made_of_main, done.parts)) else done


def _made_of_main(made: Block | PartFailure) -> bool:
    if isinstance(made, PartFailure):
        return has_cloudpickle() and type(made.error).__module__ == "__main__"
    return _is_of_main(made.structure)
