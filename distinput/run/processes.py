# SPDX-License-Identifier: Apache-2.0
"""Worker processes that call one function, started once and used for pass after pass.

Each is a fresh interpreter, never a fork of this one, whose threads and locks a fork would copy in the middle of their work.
It ends when this process ends, however that happens, because their connection is closed then. What takes long to import is
imported when the first worker starts, since few programs need it.

Another worker takes the place of one that ended, as the system ends one when memory is short, and gets what that had not
answered. Work that ends its worker each time is an error.
"""

import importlib.util
import os
import pickle
import signal
import socket
import sys
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from threading import Lock, get_ident, main_thread
from typing import TYPE_CHECKING, Any

from distinput.columns.block import trace_text
from distinput.errors import FailedPreconditionError, UnavailableError
from distinput.names.lazy import dataclass
from distinput.run.segments import Closed, SegmentConnection, dumps
from distinput.run.threads import Ending, Task, check_process

if TYPE_CHECKING:
    import subprocess


# ----------------------------------------------------------------------------
# What runs in a worker process: a function, called with what comes, until the parent has gone.
# ----------------------------------------------------------------------------


_HERE = False


def this_is_one() -> bool:
    """Whether this process is a worker."""
    return _HERE


def main(descriptor: int) -> None:
    """Serve the parent at the other end of a socket: the function first, then its arguments."""
    global _HERE
    _HERE = True
    # The parent, which gets these signals as well, decides: after SIGTERM it may still need elements until it has saved.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    channel = SegmentConnection(socket.socket(fileno=descriptor))
    with closing(channel), suppress(Closed):
        function = _function(channel)
        while True:
            _serve(channel, function)


def _function(channel: SegmentConnection) -> Any:
    path, preparation, payload = channel.receive()
    sys.path[:] = path
    try:
        if preparation is not None:
            from multiprocessing import spawn

            spawn.prepare(preparation)
        function = pickle.loads(payload)
    except Exception as error:  # noqa: BLE001 - told to the parent
        channel.send((None, f"{type(error).__name__}: {error}"))
        raise Closed from None
    channel.send((True, None))
    return function


def _serve(channel: SegmentConnection, function: Any) -> None:
    # In a function of its own, so that nothing of one task is held while the next one is waited for.
    try:
        answer: tuple[Any, str | None] = (function(channel.receive()), None)
    except Closed:
        raise
    except BaseException as error:  # noqa: BLE001 - told to the parent: sys.exit() in a function too
        answer = (None, trace_text(error))
    try:
        channel.send(answer)
    except Closed:
        raise
    except Exception as error:  # noqa: BLE001 - what the function made cannot be sent
        channel.send((None, f"{type(error).__name__}: {error}"))


_PATIENCE = 0.5
"""Seconds that an idle worker gets to end by itself."""

_TRIES = 4
"""How often a worker is given the same work before its end is an error."""

_RUNNING: "set[Processes]" = set()
"""Those not closed yet. Kept here so that none is garbage-collected before it is closed."""


class Processes:
    """`count` workers that call `function`.

    Args:
      function: called with one argument in each worker; it, its arguments and results must be picklable.
      count: how many workers.
      call: what the program wrote to have them, for messages; see `without`.

    Raises:
      TypeError: `function` cannot be sent.
      FailedPreconditionError: this process is a worker itself, which happens when a script starts workers while it is
        imported by them.
    """

    def __init__(self, function: Any, count: int, call: str) -> None:
        op, _ = without(call)
        if this_is_one():
            raise FailedPreconditionError(
                f"{op}: a worker process cannot start worker processes; put what runs the script under "
                "`if __name__ == '__main__':`"
            )
        self.op, self.call, self._process = op, call, os.getpid()
        self._unanswered: list[deque[Any]] = [deque() for _ in range(count)]
        self._ended = [0] * count  # how many workers the first of these has ended
        self._workers: list[tuple[subprocess.Popen[bytes], SegmentConnection]] = []
        self._changing = Lock()  # of the workers, of which there are no more once it is closed
        self.broken = self._closed = False
        _RUNNING.add(self)
        self._function, self._message = function, [sys.path, *_payload(call, function)]
        try:
            for worker in range(count):
                self._start(worker)
            for worker in range(count):
                self._begin(worker)
            for worker in range(count):
                try:
                    self._begun(worker)
                except Closed:
                    self._replace(worker)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for process, _ in self._workers]

    def send(self, worker: int, argument: Any) -> None:
        """Have `function(argument)` called by a worker, after what it was sent before.

        Raises:
          UnavailableError: the worker ended, and so did those in its place.
        """
        check_process(self._process)
        self.broken = True  # where an interrupt comes before the end, nobody knows what the worker has got
        try:
            self._workers[worker][1].send(argument)
        except Closed:
            self._unanswered[worker].append(argument)
            self._replace(worker)
        except Exception:  # of pickling
            self.broken = False
            raise
        else:
            self._unanswered[worker].append(argument)
        self.broken = False

    def receive(self, worker: int, wait: Callable[[], bool]) -> Any:
        """The next result of a worker.

        Raises:
          UnavailableError: the worker has ended, and so have those that got its work.
          Closed: `wait` gave up.
          RuntimeError: the result cannot be sent, or the function raised.
        """
        result, why = self._received(worker, wait)
        if why is not None:
            raise RuntimeError(f"{self.op}: worker process {self.pids[worker]} failed:\n{why}")
        return result

    @property
    def alive(self) -> bool:
        """Whether all workers are there, and those of this process, not of one that it is a fork of."""
        usable = not self.broken and self._process == os.getpid()
        return usable and all(process.poll() is None for process, _ in self._workers)

    def ready(self, worker: int) -> bool:
        """Whether a worker has answered."""
        return self._workers[worker][1].ready

    def drain(self, wait: Callable[[], bool]) -> None:
        """Drop the results that nobody asked for."""
        for worker, unanswered in enumerate(self._unanswered):
            while unanswered:
                self._received(worker, wait, again=False)

    def close(self) -> None:
        """End the workers; what they are doing is lost. A fork leaves them to the process that has begun them."""
        _RUNNING.discard(self)
        self.broken = True
        if self._process != os.getpid():
            return
        _in_one_piece(self._end_all)

    def _end_all(self) -> None:
        import subprocess

        with self._changing:
            self._closed = True
            workers, self._workers = self._workers, []
        for (process, channel), busy in zip(workers, self._unanswered, strict=False):
            channel.close()
            if busy:
                process.kill()
        for process, _ in workers:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, worker: int) -> None:
        """Start a worker, the next one or in the place of another."""

        def start() -> None:
            with self._changing:
                if not self._closed:
                    self._workers[worker : worker + 1] = [_started()]

        _in_one_piece(start)

    def _begin(self, worker: int) -> None:
        with suppress(Closed):  # noticed by `_begun`
            self._workers[worker][1].send(self._message)

    def _begun(self, worker: int) -> None:
        """Wait until a worker has the function.

        Raises:
          Closed: the worker has ended.
          TypeError: it could not be sent.
        """
        ready, why = self._workers[worker][1].receive()
        if not ready:
            raise _unsendable(self.call, self._function, why)

    def _received(self, worker: int, wait: Callable[[], bool], *, again: bool = True) -> Any:
        """What a worker answers; where it has ended, another one does, or, unless `again`, nobody."""
        check_process(self._process)
        unanswered = self._unanswered[worker]
        while unanswered:
            self.broken = True  # where an interrupt comes before the end, nobody knows what is still to come
            try:
                answer = self._workers[worker][1].receive(wait)
            except Closed:
                if not wait():
                    self.broken = False
                    raise
                if not again:
                    unanswered.clear()
                self._replace(worker)
                continue
            unanswered.popleft()
            self._ended[worker] = 0
            self.broken = False
            return answer
        return None, None

    def _replace(self, worker: int) -> None:
        """Start another worker in the place of one that has ended, and give it what that had not answered.

        Raises:
          UnavailableError: workers ended each time that they had this work.
        """
        self.broken = True  # unless all of this comes to its end
        while True:
            how = self._end(worker)
            self._ended[worker] += 1
            if self._ended[worker] >= _TRIES:
                raise UnavailableError(
                    f"{self.op}: {how} while it had work, and so did {_TRIES - 1} that had the same work before; the function "
                    "may have crashed, or the system may have run out of memory"
                )
            self._workers[worker][1].close()
            self._start(worker)
            try:
                self._begin(worker)
                self._begun(worker)
                for argument in self._unanswered[worker]:
                    self._workers[worker][1].send(argument)
            except Closed:
                continue
            break
        self.broken = False

    def _end(self, worker: int) -> str:
        """How a worker ended, in words."""
        import subprocess

        process = self._workers[worker][0]
        try:
            code = process.wait(_PATIENCE)
            how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            how = "closed its connection"
        return f"worker process {process.pid} {how}"


@dataclass(eq=False)
class Dealt:
    """Work that a worker was given.

    Args:
      worker: which one.
      pid: the process that has answered; 0: none has.
      result: what came back.
      error: raised for it: the result cannot be sent, or the function raised.
    """

    worker: int
    pid: int = 0
    result: Any = None
    error: RuntimeError | None = None


class Dealer:
    """Gives each work to the worker that has the fewest to do: on a busy machine one can be twice as fast as another.

    Args:
      processes: workers that get no work but from here.
      wait: asked while nothing comes; see `Processes.receive`.
    """

    def __init__(self, processes: Processes, wait: Callable[[], bool]) -> None:
        self._processes, self._wait = processes, wait
        self._unanswered: list[deque[Dealt]] = [deque() for _ in range(len(processes))]
        self._last = -1

    def send(self, argument: Any) -> Dealt:
        """Have `function(argument)` called; see `Processes.send`."""
        for worker, unanswered in enumerate(self._unanswered):
            while unanswered and self._processes.ready(worker):
                self._take(worker)
        following = [(self._last + n) % len(self._unanswered) for n in range(1, 1 + len(self._unanswered))]
        worker = min(following, key=lambda each: len(self._unanswered[each]))
        self._processes.send(worker, argument)
        sent, self._last = Dealt(worker), worker
        self._unanswered[worker].append(sent)
        return sent

    def ready(self, sent: Dealt) -> bool:
        """Whether the oldest work that nobody has received is answered."""
        return bool(sent.pid) or self._processes.ready(sent.worker)

    def receive(self, sent: Dealt) -> Any:
        """The result of a work; see `Processes.receive`."""
        while not sent.pid:
            self._take(sent.worker)
        if sent.error is not None:
            raise sent.error
        return sent.result

    def _take(self, worker: int) -> None:
        """Wait for the next answer of a worker; an error of its work is raised when its turn comes."""
        sent = self._unanswered[worker][0]
        try:
            sent.result = self._processes.receive(worker, self._wait)
        except RuntimeError as error:
            sent.error = error
        sent.pid = self._processes.pids[worker]
        self._unanswered[worker].popleft()


class Workforce:
    """The workers of one step of a pipeline, kept from pass to pass; they end when it is dropped, or the program ends.

    Args:
      make: starts workers.
    """

    def __init__(self, make: Callable[[], Processes]) -> None:
        self._make = make
        self._idle = _Idle()

    @contextmanager
    def lent(self) -> Iterator[Processes]:
        """Workers for one stream, which nobody else uses meanwhile."""
        workers = self._idle.take()
        if workers is not None and not workers.alive:  # the system may end a process that is idle, too
            workers.close()
            workers = None
        workers = workers or self._make()
        try:
            yield workers
        finally:
            if workers.broken:
                workers.close()
            else:
                self._idle.give(workers)

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self._idle.drop()


class _Idle(Ending):
    """Workers that nobody uses at the moment."""

    def __init__(self) -> None:
        self.workers: list[Processes] = []
        self.begun()

    def take(self) -> Processes | None:
        """Some of them, if there are any."""
        try:
            return self.workers.pop()
        except IndexError:
            return None

    def give(self, workers: Processes) -> None:
        """Take back workers that are no longer used. Dropped streams call this as well, so it never waits."""
        if self._ended:
            _in_background(workers.close)
        else:
            self.workers.append(workers)

    def end(self, patience: float | None) -> None:
        while (workers := self.take()) is not None:
            if patience == 0:
                _in_background(workers.close)
            else:
                workers.close()


def _in_background(call: Callable[[], None]) -> None:
    try:
        start_new_thread(call, ())
    except RuntimeError:  # the program is ending
        call()


def _in_one_piece(call: Callable[[], None]) -> None:
    """Make a call that no interrupt parts, so that nobody loses a process: it ends even where the wait for it does not.

    Interrupts come on the main thread, so the call is made on another one.
    """
    task = Task(call)
    if get_ident() == main_thread().ident and not sys.is_finalizing():
        _in_background(task.run)
    else:
        task.run()
    task.result()


def _started() -> "tuple[subprocess.Popen[bytes], SegmentConnection]":
    import subprocess

    here, there = socket.socketpair()
    with there:
        start = f"from distinput.run.processes import main; main({there.fileno()})"
        program = f"import sys; sys.path[:] = {sys.path!r}; {start}"
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
        try:
            process = subprocess.Popen(
                [sys.executable, *flags, "-c", program], pass_fds=[there.fileno()], stdin=subprocess.DEVNULL
            )
        except OSError:  # there are as many processes, or open files, as there may be
            here.close()
            raise
    return process, SegmentConnection(here)


def check_sendable(op: str, function: Any) -> None:
    """Refuse a function that clearly cannot be sent to another process.

    Raises:
      TypeError: the message says what to do.
    """
    if os.name != "posix":
        raise TypeError(f"{op}: processes=True needs a POSIX system, this is {os.name}; use threads")
    name = getattr(function, "__qualname__", "")
    if ("<lambda>" in name or "<locals>" in name) and importlib.util.find_spec("cloudpickle") is None:
        raise _unsendable(f"{op}(processes=True)", function, "it has no name that another process could import")


def pickled(call: str, function: Any) -> bytes:
    """A function as bytes, from which `pickle.loads` makes it in a process that can import what it names.

    Args:
      call: what the program wrote to have workers, for messages; see `without`.
      function: the function.

    Raises:
      TypeError: it cannot be sent.
    """
    return _payload(call, function)[1]


def _payload(call: str, function: Any) -> tuple[Any, bytes]:
    """What a worker needs to know about this program's main module, and the function as bytes."""
    by_name = importlib.util.find_spec("cloudpickle") is None
    try:
        data = pickle.dumps(function) if by_name else dumps(function)
    except Exception as error:
        raise _unsendable(call, function, f"{type(error).__name__}: {error}") from error
    if not by_name or b"__main__" not in data:
        return None, data
    from multiprocessing import spawn

    known = spawn.get_preparation_data("distinput-worker")
    return {key: value for key, value in known.items() if key.startswith("init_main")}, data


def _unsendable(call: str, function: Any, why: str | None) -> TypeError:
    op, cure = without(call)
    return TypeError(
        f"{op}: {function!r} cannot be sent to worker processes: {why}; define the function at the top level of a module, or "
        f"install cloudpickle, or {cure}"
    )


def without(call: str) -> tuple[str, str]:
    """The op of a call that has workers, and how a program does without them, in words.

    >>> without("map(executor=)"), without("on_workers")
    (('map', 'leave out executor='), ('on_workers', 'leave out on_workers'))
    """
    op, _, option = call.rstrip(")").partition("(")
    return op, f"leave out {option or op}"
