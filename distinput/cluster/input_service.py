# SPDX-License-Identifier: Apache-2.0
"""Input services: processes of a running Dask or Ray cluster, or of an executor, that call functions for a pipeline.

All that a pipeline asks of an engine is the methods of `InputService`. Which workers there are, how they are reached,
and what becomes of the work of those that are lost is the engine's.
"""

import asyncio
import hashlib
import json
import socket
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from importlib import import_module
from itertools import count
from threading import Lock
from time import monotonic, sleep
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from distinput.cluster.dask import close_client, connected, has_ended
from distinput.errors import UnavailableError, UnimplementedError, importing
from distinput.kernels.kernel import renewed
from distinput.run.threads import check_threads


class InputService(Protocol):
    """What a pipeline asks of an engine.

    Calls are futures as `concurrent.futures` has them: `done()`, `result(timeout)` and `cancel()`.

    Attributes:
      keeps: whether the object that a call returned stays at its worker until its future is dropped.
    """

    keeps: bool

    def workers(self) -> int:
        """How many calls it makes at a time, now; 0 while there are no workers."""

    def shared(self, data: bytes, word: str = "") -> Any:
        """What stands for the data among the arguments of a call, so that it is sent to a worker only once.

        Data with the same `word` is the same, whatever its bytes are.
        """

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        """Have a function called by a worker. Equal calls are separate calls, but for those with the same `word`.

        Of these one is made, as long as somebody holds its future, where the engine can tell: in Dask for all clients of a
        cluster, with Ray and executors in this process.
        """

    def first(self, word: str, value: Any, known: str = "") -> Any:
        """What somebody was the first to give for a word: `value`, if nobody has. It is kept as long as the engine runs.

        In Dask for all clients of a cluster, with executors in this process.

        Raises:
          LookupError: nobody has given anything for `known`; empty: this is not asked.
          UnavailableError: there is no answer.
        """

    def gave_up(self, error: BaseException) -> bool:
        """Whether the engine has had the call made again, and lost its workers too often."""

    def forgot(self, call: "Future[Any]") -> bool:
        """Whether it will never finish, since the engine no longer knows it: its scheduler is another one, say."""
        return False

    def reconnected(self) -> bool:
        """Whether it has a new connection since this was asked last, so that what was shared has to be so again."""
        return False

    def close(self) -> None:
        """End what was opened here."""


_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://", "inproc://")


def is_service(service: Any) -> bool:
    """Whether it is an address of Dask or Ray, a client of Dask, or an executor."""
    if isinstance(service, str):
        return service == "ray" or service.startswith(("ray://", *_ADDRESSES))
    return _is_dask_client(service) or (not isinstance(service, type) and callable(getattr(service, "submit", None)))


def opened(service: Any) -> InputService:
    """The service that an argument names.

    Raises:
      EngineMissing: its package is not installed.
      FailedPreconditionError: its threads are those of the process of which this is a fork.
      UnavailableError: there is nothing at the address.
    """
    if isinstance(service, str):
        return _Ray(service) if service.startswith("ray") else _Dask(connected(service), owned=True)
    check_threads(service)
    client = getattr(service, "_client", service)  # that of `client.get_executor()`
    if _is_dask_client(client):
        return _Dask(client, owned=False)
    return _OfExecutor(service)


def _is_dask_client(service: Any) -> bool:
    return hasattr(service, "scheduler_info") and hasattr(service, "submit")


_FEW_BYTES = 1 << 16
"""Of steps that are sent with each call."""

_ASKED_SECONDS, _REACHED_SECONDS = 10.0, 2.0
"""How long an answer is waited for, and a connection."""

_AWAY_SECONDS, _AGAIN_SECONDS = 30.0, 0.2
"""How long a scheduler may be away while it is asked who was the first, and the pause between two questions."""


class _Dask(InputService):
    """A Dask cluster. It calls again what a lost worker had, as often as its `allowed-failures` says.

    Args:
      client: connected to the scheduler.
      owned: whether it is closed at the end.
    """

    def __init__(self, client: Any, *, owned: bool) -> None:
        self._client, self._owned, self._address = client, owned, client.scheduler.address
        self.keeps = True
        self._prefix, self._numbers = f"distinput-piece-{uuid.uuid4().hex}", count()
        self._shared = self._is_new = False
        self._calls: WeakKeyDictionary[Future[Any], Any] = WeakKeyDictionary()

    def workers(self) -> int:
        with suppress(OSError, TimeoutError):
            if self._client.status == "running":
                threads = self._asked(self._client.scheduler.ncores, workers=None)
                if threads and self._owned and self._client.direct_to_workers is None:
                    self._client.direct_to_workers = _is_reached(next(iter(threads)))
                return sum(threads.values())
        return 0  # while the scheduler is away

    def shared(self, data: bytes, word: str = "") -> Any:
        # A few bytes go with each call: of calls that depend on another one, Dask gives the first to the worker that has it.
        if len(data) <= _FEW_BYTES:
            return data
        # A call, not `scatter`: what only a lost worker held is made again. The second time is after a loss, under another key:
        # a client believes that the scheduler knows what it has sent.
        known = word or hashlib.sha256(data).hexdigest()
        key = f"{self._prefix}-{next(self._numbers)}" if self._shared else known
        self._shared = True
        return self._client.submit(_itself, data, key=f"distinput-steps-{key}")

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        if self._ended and not self._is_stuck:
            raise ConnectionError(f"the connection to the scheduler at {self._address} was lost")
        key = f"distinput-shared-{word}" if word else f"{self._prefix}-{next(self._numbers)}"
        call = self._client.submit(function, *arguments, key=key)
        made = asyncio.run_coroutine_threadsafe(_result_of(call), self._client.loop.asyncio_loop)
        self._calls[made] = call  # whose result is at the cluster as long as somebody has the future
        return made

    def first(self, word: str, value: Any, known: str = "") -> Any:
        until = monotonic() + _AWAY_SECONDS
        while True:
            try:
                return self._first(word, value, known or word)
            except (OSError, TimeoutError) as error:  # asked again, since who was the first does not change
                self._renew()
                if self._ended or monotonic() > until:
                    raise UnavailableError(
                        f"on_workers: the scheduler at {self._address} does not answer ({type(error).__name__}: {error}); "
                        "start it again"
                    ) from error
                sleep(_AGAIN_SECONDS)

    def _first(self, word: str, value: Any, known: str) -> Any:
        there = self._asked(self._client._get_dataset, name=[known, word], default=None)
        if known != word and there[0] is None:
            raise LookupError(known)
        if there[1] is None:
            with suppress(KeyError):  # somebody was faster
                self._asked(self._client._publish_dataset, json.dumps(value), name=word)
            (there[1],) = self._asked(self._client._get_dataset, name=[word])
        return json.loads(there[1])

    def gave_up(self, error: BaseException) -> bool:
        return type(error).__name__ == "KilledWorker"

    def forgot(self, call: "Future[Any]") -> bool:
        if self._ended:
            return True
        # A scheduler that sees late that a connection has ended drops what the client has asked for since.
        with suppress(OSError, TimeoutError):
            if self._client.status == "running" and not call.done():
                key = self._calls[call].key
                return self._asked(self._client.scheduler.get_task_status, keys=[key])[key] is None and not call.done()
        return False

    @property
    def _ended(self) -> bool:
        return has_ended(self._client)

    @property
    def _is_stuck(self) -> bool:
        """Whether our client says that it is connecting, and nobody works at that."""
        return bool(self._owned and self._client.status == "connecting" and self._ended)

    def _renew(self) -> None:
        if self._is_stuck:
            self.close()
            self._client, self._is_new = connected(self._address), True

    def reconnected(self) -> bool:
        self._renew()
        was_new, self._is_new = self._is_new, False
        return was_new

    def _asked(self, question: Any, *given: Any, **about: Any) -> Any:
        return self._client.sync(question, *given, callback_timeout=_ASKED_SECONDS, **about)

    def close(self) -> None:
        if self._owned:
            close_client(self._client)


def _is_reached(address: str) -> bool:
    """Whether a worker can be asked for results by this process: half of the way, if it can."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACHED_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


async def _result_of(call: Any) -> Any:
    """What a call of Dask returned, here. It is fetched once, however long that takes, and before anybody waits for it."""
    try:
        await call._exception()  # until it has ended
        if not call.client.direct_to_workers:
            return await _gathered(call._result())
        try:
            return await asyncio.wait_for(_gathered(call._result()), _ASKED_SECONDS)
        except TimeoutError:  # the worker stands still: the scheduler learns of its end
            return (await _gathered(call.client._gather([call], direct=False)))[0]
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # A call that Dask has lost.
        raise ConnectionError(str(error) or "a gather of the client was cancelled") from None


async def _gathered(results: Any) -> Any:
    """Results that Dask brings. It goes on when nobody waits any more.

    Dask brings what several calls returned in one go. It does not bear that one of these waits is cancelled: the others are
    too, and all that the client is asked for later.
    """
    going_on = asyncio.ensure_future(results)
    going_on.add_done_callback(lambda done: done.cancelled() or done.exception())  # which somebody has seen
    return await asyncio.shield(going_on)


def _itself(data: bytes) -> bytes:
    return data


class _Ray(InputService):
    """A Ray cluster. It calls a function again whose worker was lost, as often as Ray's `max_retries` says.

    Args:
      address: "ray://host:10001"; "ray" for the one that the program has connected to, or else one of this machine.
    """

    keeps = False

    def __init__(self, address: str) -> None:
        with importing(
            "on_workers: a service of Ray needs the package ray, which is not installed; run "
            "`pip install 'distinput[ray]'`"
        ):
            self._ray = import_module("ray")
        if not self._ray.is_initialized():
            try:
                self._ray.init(address=None if address == "ray" else address, include_dashboard=False)
            except ConnectionError as error:
                raise UnavailableError(f"on_workers: there is no Ray cluster at {address}: {error}") from error
        self._call = self._ray.remote(_called)

    def workers(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def shared(self, data: bytes, word: str = "") -> Any:
        return self._ray.put(data)

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        return _once(word, lambda: self._call.remote(function, *arguments).future())

    def first(self, word: str, value: Any, known: str = "") -> Any:
        raise UnimplementedError(
            "distribute: at Ray, programs cannot tell each other which elements of a job they have; leave out job_name where "
            "one program reads; where several do, give consumer_index and num_consumers, or a Dask cluster"
        )

    def gave_up(self, error: BaseException) -> bool:
        return type(error).__name__ == "WorkerCrashedError"

    def close(self) -> None:
        """Ray stays connected: other steps may use it."""


def _called(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


_SHARED: "WeakValueDictionary[str, Future[Any]]" = WeakValueDictionary()
_FIRST: "WeakKeyDictionary[Executor, dict[str, Any]]" = WeakKeyDictionary()
_SHARING = renewed(Lock())


def _once(word: str, submit: "Callable[[], Future[Any]]") -> "Future[Any]":
    """The call with this word that somebody in this process holds, or a new one."""
    if not word:
        return submit()
    with _SHARING:
        made = _SHARED.get(word)
        if made is None or made.cancelled() or (made.done() and made.exception() is not None):
            made = _SHARED[word] = submit()
        return made


class _OfExecutor(InputService):
    """An executor of `concurrent.futures`, as mpi4py, loky and Python have them. Nothing that it loses is done again by it.

    Args:
      executor: it is not shut down here.
    """

    keeps = False

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def workers(self) -> int:
        found = getattr(self._executor, "_max_workers", None)
        return found if isinstance(found, int) and found > 0 else 1

    def shared(self, data: bytes, word: str = "") -> Any:
        return data

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        return _once(word, lambda: self._executor.submit(function, *arguments))

    def first(self, word: str, value: Any, known: str = "") -> Any:
        with _SHARING:
            told = _FIRST.setdefault(self._executor, {})
            if known and known not in told:
                raise LookupError(known)
            return told.setdefault(word, value)

    def gave_up(self, error: BaseException) -> bool:
        return "Broken" in type(error).__name__

    def close(self) -> None:
        """The executor is the program's."""
