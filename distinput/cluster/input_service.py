# SPDX-License-Identifier: Apache-2.0
"""Input services: processes of a running Dask or Ray cluster, or of an executor, that call functions for a pipeline.

All that a pipeline asks of an engine is the four methods of `InputService`. Which workers there are, how they are reached,
and what becomes of the work of those that are lost is the engine's.
"""

import hashlib
import uuid
from concurrent.futures import Executor, Future
from importlib import import_module
from itertools import count
from threading import Lock
from typing import Any, Protocol
from weakref import WeakValueDictionary

from distinput.cluster.dask import connected
from distinput.errors import EngineMissing, UnavailableError

__all__ = ["InputService", "is_service", "opened"]


class InputService(Protocol):
    """What a pipeline asks of an engine.

    Calls are futures as `concurrent.futures` has them: `done()`, `result(timeout)` and `cancel()`.
    """

    def workers(self) -> int:
        """How many calls it makes at a time, now; 0 while there are no workers."""

    def shared(self, data: bytes, word: str = "") -> Any:
        """What stands for the data among the arguments of a call, so that it is sent to a worker only once.

        Data with the same `word` is the same, whatever its bytes are.
        """

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        """Have a function called by a worker. Equal calls are separate calls, but for those with the same `word`.

        Of these one is made, as long as somebody holds its future, where the engine can tell: in Dask for all clients of a
        cluster, with executors in this process.
        """

    def gave_up(self, error: BaseException) -> bool:
        """Whether the engine has had the call made again, and lost its workers too often."""

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
      UnavailableError: there is nothing at the address.
    """
    if isinstance(service, str):
        return _Ray(service) if service.startswith("ray") else _Dask(connected(service), owned=True)
    client = getattr(service, "_client", service)  # that of `client.get_executor()`
    if _is_dask_client(client):
        return _Dask(client, owned=False)
    return _OfExecutor(service)


def _is_dask_client(service: Any) -> bool:
    return hasattr(service, "scheduler_info") and hasattr(service, "submit")


class _Dask:
    """A Dask cluster. It calls again what a lost worker had, as often as its `allowed-failures` says.

    Args:
      client: connected to the scheduler.
      owned: whether it is closed at the end.
    """

    def __init__(self, client: Any, *, owned: bool) -> None:
        self._client, self._owned = client, owned
        self._prefix, self._numbers = f"distinput-piece-{uuid.uuid4().hex}", count()

    def workers(self) -> int:
        return sum(self._client.nthreads().values())

    def shared(self, data: bytes, word: str = "") -> Any:
        # A call, not `scatter`: what only a lost worker held is made again.
        return self._client.submit(_itself, data, key=f"distinput-steps-{word or hashlib.sha256(data).hexdigest()}")

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        key = f"distinput-shared-{word}" if word else f"{self._prefix}-{next(self._numbers)}"
        made: Future[Any] = self._client.submit(function, *arguments, key=key)
        return made

    def gave_up(self, error: BaseException) -> bool:
        return type(error).__name__ == "KilledWorker"

    def close(self) -> None:
        if self._owned:
            self._client.close()


def _itself(data: bytes) -> bytes:
    return data


class _Ray:
    """A Ray cluster. It calls a function again whose worker was lost, as often as Ray's `max_retries` says.

    Args:
      address: "ray://host:10001"; "ray" for the one that the program has connected to, or else one of this machine.
    """

    def __init__(self, address: str) -> None:
        try:
            self._ray = import_module("ray")
        except ImportError as error:
            raise EngineMissing(
                "on_workers: a service of Ray needs the package ray, which is not installed; run "
                "`pip install 'distinput[ray]'`"
            ) from error
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
        made: Future[Any] = self._call.remote(function, *arguments).future()
        return made

    def gave_up(self, error: BaseException) -> bool:
        return type(error).__name__ == "WorkerCrashedError"

    def close(self) -> None:
        """Ray stays connected: other steps may use it."""


def _called(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


_SHARED: "WeakValueDictionary[str, Future[Any]]" = WeakValueDictionary()
_SHARING = Lock()


class _OfExecutor:
    """An executor of `concurrent.futures`, as mpi4py, loky and Python have them. Nothing that it loses is done again by it.

    Args:
      executor: it is not shut down here.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def workers(self) -> int:
        found = getattr(self._executor, "_max_workers", None)
        return found if isinstance(found, int) and found > 0 else 1

    def shared(self, data: bytes, word: str = "") -> Any:
        return data

    def submit(self, function: Any, *arguments: Any, word: str = "") -> "Future[Any]":
        if not word:
            return self._executor.submit(function, *arguments)
        with _SHARING:
            made = _SHARED.get(word)
            if made is None or made.cancelled() or (made.done() and made.exception() is not None):
                made = _SHARED[word] = self._executor.submit(function, *arguments)
            return made

    def gave_up(self, error: BaseException) -> bool:
        return "Broken" in type(error).__name__

    def close(self) -> None:
        """The executor is the program's."""
