# SPDX-License-Identifier: Apache-2.0
"""What engines share: the place of a worker in its job, and threads that wait in the background."""

import ipaddress
import queue
import secrets
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from distinput.distribute.collectives.channel import ChannelLost
from distinput.kernels.kernel import HelperThread

# ----------------------------------------------------------------------------
# The place of a worker in a job: its rank, the `host:port` of rank 0, and the address by which others reach it.
# ----------------------------------------------------------------------------


def check_rank_and_size(found_by: str, given: tuple[int | None, int | None], found: tuple[int, int]) -> None:
    """Raise if the rank and size that the caller passes are not those of the engine.

    Raises:
      ValueError: they differ.

    >>> check_rank_and_size("engine 'mpi': mpiexec started this process", (None, 2), (1, 3))
    Traceback (most recent call last):
    ValueError: engine 'mpi': mpiexec started this process with size 3, got size 2; leave it out
    """
    for what, mine, its in zip(("rank", "size"), given, found, strict=True):
        if mine is not None and mine != its:
            raise ValueError(f"{found_by} with {what} {its}, got {what} {mine}; leave it out")


def is_loopback(host: str) -> bool:
    """True for a name or an address that only processes of this machine reach.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("host0")
    (True, True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens at an address of this machine.

    Args:
      host: a name or an address, without brackets.
      port: 0 for any that is free.
      backlog: how many connections may wait to be accepted.

    Raises:
      OSError: this machine does not have the address, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog)


def split_address(address: str) -> tuple[str, int]:
    """Host and port.

    Raises:
      ValueError: it is not `host:port`.

    >>> split_address("worker-0.example:2222"), split_address("[::1]:80")
    (('worker-0.example', 2222), ('::1', 80))
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(
            f"the address of rank 0 must be host:port, got {address!r}; launchers say it in MASTER_ADDR and MASTER_PORT, or "
            "in TF_CONFIG"
        )
    return host, int(port)


def local_address(host: str, port: int) -> str | None:
    """The address of this machine that a host sees, None if there is no route to the host; nothing is sent."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return None


# ----------------------------------------------------------------------------
# What engines share: threads that wait in the background, names of attempts, a status board on rank 0.
# ----------------------------------------------------------------------------


# ---- A thread that makes calls that may never return, for callers that must not block


class BackgroundCall:
    """One call that a background thread makes.

    Args:
      function: what to call.
      args: its arguments.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._function, self._args = function, args
        self._done = threading.Event()
        self._value: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Make the call; never raises."""
        try:
            self._value = self._function(*self._args)
        except Exception as error:  # noqa: BLE001 - raised again by `wait`
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Whether the call has returned, after waiting at most this long; raises what the call raised."""
        if not self._done.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def value(self) -> Any:
        """What the call returned."""
        return self._value


class BackgroundThread:
    """Makes calls one after the other on a daemon thread, which is started with the first one.

    Args:
      name: the name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[BackgroundCall | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], *args: Any) -> BackgroundCall:
        """Queue a call, to be made after those submitted before."""
        if self._thread is None:
            self._thread = HelperThread(target=_serve, args=(self._calls,), name=self._name)
            try:
                self._thread.start()
            except RuntimeError:  # there are as many threads as there may be; the next call tries again
                self._thread = None
                raise
        call = BackgroundCall(function, args)
        self._calls.put(call)
        return call

    def has_queued(self) -> bool:
        """Whether there are calls that have not been begun."""
        return not self._calls.empty()

    def close(self) -> None:
        """Let the thread end after the last call, and wait for that a short time."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join(0.5)
            self._thread = None


def _serve(calls: "queue.SimpleQueue[BackgroundCall | None]") -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # an idle thread keeps nothing alive


# ---- A name for one attempt of a job, under which its workers find nothing that earlier attempts have left in the store
#
# A store may outlive the workers: torchrun's agent keeps its store whenever it restarts them, and then neither the numbers of
# restarts nor those of groups opened before need be equal on all machines. So the name is not derived from numbers: every
# worker writes a random token, and rank 0 proposes a name for the tokens of all.

_PAUSES = (1e-3, 2e-2)  # seconds between two looks at the store, at least and at most; each time twice as long


class KeyValueStore(Protocol):
    """The interface of a store that all workers share."""

    def put(self, key: str, value: str) -> None:
        """Write a value; it replaces an older one."""

    def get(self, key: str) -> str | None:
        """The value, None if there is none; does not wait for one."""


def attempt_name(store: KeyValueStore, rank: int, size: int, folder: str, timeout: float) -> str:
    """The name that the workers of this attempt share, and that no other attempt has.

    Rank 0 may find tokens of an earlier attempt first. It proposes a new name whenever a token changes, and the name is final
    as soon as every worker has confirmed it; a worker confirms only a name that was proposed for its own new token.

    Args:
      store: shared by all workers.
      rank: this worker.
      size: how many workers there are.
      folder: the prefix of the keys.
      timeout: seconds to wait for the others.

    Raises:
      ChannelLost: not all workers came.
    """
    mine = secrets.token_hex(8)
    if size == 1:
        return mine
    store.put(f"{folder}/token/{rank}", mine)
    deadline, pause = time.monotonic() + timeout, _PAUSES[0]
    leader = _Leader(store, size, folder, mine) if rank == 0 else None
    follower = _Follower(store, rank, folder, mine)
    while True:
        name = leader.step() if leader is not None else follower.step()
        if name is not None:
            return name
        if time.monotonic() >= deadline:
            late = leader.late() if leader is not None else follower.late()
            raise ChannelLost(f"rank {', '.join(map(str, late))} did not come")
        time.sleep(pause)
        pause = min(2 * pause, _PAUSES[1])


class _Leader:
    def __init__(self, store: KeyValueStore, size: int, folder: str, mine: str) -> None:
        self._store, self._size, self._folder, self._mine = store, size, folder, mine
        self._tokens: list[str | None] = []
        self._name = ""

    def step(self) -> str | None:
        tokens = [self._mine, *(self._store.get(f"{self._folder}/token/{rank}") for rank in range(1, self._size))]
        if None in tokens:
            return None
        if tokens != self._tokens:
            self._tokens, self._name = tokens, secrets.token_hex(8)
            self._store.put(f"{self._folder}/proposal", " ".join([self._name, *map(str, tokens)]))
        if self.late():
            return None
        self._store.put(f"{self._folder}/name", self._name)
        return self._name

    def late(self) -> list[int]:
        """The workers that have not confirmed the latest name."""
        confirmed = (self._store.get(f"{self._folder}/confirmed/{rank}") for rank in range(1, self._size))
        return [rank for rank, name in enumerate(confirmed, 1) if not self._name or name != self._name]


class _Follower:
    def __init__(self, store: KeyValueStore, rank: int, folder: str, mine: str) -> None:
        self._store, self._rank, self._folder, self._mine = store, rank, folder, mine
        self._confirmed = ""

    def step(self) -> str | None:
        name, *tokens = (self._store.get(f"{self._folder}/proposal") or "").split(" ")
        if self._mine not in tokens[self._rank : self._rank + 1]:
            return None
        if name != self._confirmed:
            self._store.put(f"{self._folder}/confirmed/{self._rank}", name)
            self._confirmed = name
        return name if self._store.get(f"{self._folder}/name") == name else None

    def late(self) -> list[int]:
        """Rank 0, unless it has come; then the workers that have not confirmed its latest name."""
        name, *tokens = (self._store.get(f"{self._folder}/proposal") or "").split(" ")
        if self._mine not in tokens:
            return [0]
        confirmed = ((rank, self._store.get(f"{self._folder}/confirmed/{rank}")) for rank in range(1, len(tokens)))
        return [rank for rank, confirmation in confirmed if confirmation != name] or [0]


# ---- A status board in a key-value store that another worker hosts, and that may stop answering

# Seconds to wait for the store: a host that is stopped keeps its connections open and says nothing.
_PUBLISH_SECONDS, _READ_SECONDS = 0.5, 0.1


class HostedStatusBoard(ABC):
    """A `StatusBoard` in a store; what the store does not answer in time stays as it was last known.

    Args:
      host_rank: the worker that hosts the store, None if none of them does.
    """

    def __init__(self, host_rank: int | None) -> None:
        self.host_rank = host_rank
        self._thread = BackgroundThread("distinput-board")
        self._reading: BackgroundCall | None = None
        self._known: Mapping[int, str] = {}
        self._lost: ChannelLost | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def store_status(self, status: str) -> None:
        """Write this worker's status to the store, and return once it is there."""

    @abstractmethod
    def fetch_statuses(self) -> Mapping[int, str]:
        """The statuses of the other workers, from the store."""

    def publish(self, status: str) -> None:
        """Replace this worker's status."""
        with self._lock:
            self._wait(self._thread.submit(self.store_status, status), _PUBLISH_SECONDS)

    def read(self) -> Mapping[int, str]:
        """The latest known statuses of the others."""
        with self._lock:
            if self._reading is None:
                self._reading = self._thread.submit(self.fetch_statuses)
            if self._wait(self._reading, _READ_SECONDS):
                self._known, self._reading = self._reading.value(), None
            return self._known

    def _wait(self, call: BackgroundCall, seconds: float) -> bool:
        if self._lost is not None:
            raise self._lost
        try:
            return call.wait(seconds)
        except ChannelLost as lost:
            self._lost = lost
            raise

    def close(self) -> None:
        """End the thread; the last group is closed."""
        self._thread.close()
