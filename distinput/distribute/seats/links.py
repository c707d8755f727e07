# SPDX-License-Identifier: Apache-2.0
"""Calls of objects in other processes: the side of the caller.

A process knows the clusters that it takes part in, each by its number, with the secret that opens connections. To every other
process that it calls it keeps as many connections as it has had calls at the same time; each waits for its answer on the
thread of the caller, so that nothing comes between the two processes.
"""

import contextlib
import hmac
import pickle
import secrets
import socket
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.distribute.seats.seats import SeatLost, emptied
from distinput.values import buffers

# ---- Python objects over a connected socket, one at a time in each direction: a request, then its answer
#
# An object travels as a pickle; large arrays follow as they lie in memory, without being copied into it, and come out as
# views of the memory that they were received into. Pickle can run any code, so a connection is opened only to those who know
# the secret of the cluster; each end proves that it does before anything is unpickled.
#
# Source: pickle protocol 5 with buffers out of band (PEP 574).

_HEADER = struct.Struct("<IQ")
"""How many buffers follow, and the bytes of the pickle."""
_CHUNK = 1 << 16
_SMALL = 1 << 12
"""Buffers of fewer bytes are cheaper within the pickle."""
_MOST_PARTS = 512
"""Parts that one system call takes; Linux allows 1024."""
_NONCE = 32
_BYTE = np.dtype(np.uint8)


class Ended(ConnectionError):
    """The other end has closed the connection."""


def send(connection: socket.socket, value: Any, dumps: Callable[..., bytes] = pickle.dumps) -> None:
    """Send an object. Nothing has been sent if pickling raises.

    Args:
      connection: connected, with no message under way.
      value: what to send.
      dumps: with the arguments of `pickle.dumps`.

    Raises:
      OSError: the connection is broken.
      Exception: whatever pickling raises.
    """
    parts: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL:
            return True
        parts.append(raw)
        return False

    data = dumps(value, protocol=5, buffer_callback=keep)
    head = _HEADER.pack(len(parts), len(data))
    if not parts:
        connection.sendall(head + data)
        return
    lengths = struct.pack(f"<{len(parts)}Q", *(part.nbytes for part in parts))
    _send_parts(connection, [memoryview(head + lengths), memoryview(data), *parts])


def _send_parts(connection: socket.socket, parts: list[memoryview]) -> None:
    if not hasattr(connection, "sendmsg") or _is_encrypted(connection):
        for part in parts:
            connection.sendall(part)
        return
    first = 0
    while first < len(parts):
        sent = connection.sendmsg(parts[first : first + _MOST_PARTS])
        while first < len(parts) and sent >= parts[first].nbytes:
            sent -= parts[first].nbytes
            first += 1
        if sent:
            parts[first] = parts[first][sent:]


def _is_encrypted(connection: socket.socket) -> bool:
    return type(connection) is not socket.socket


def receive(connection: socket.socket) -> Any:
    """The next object.

    Raises:
      Ended: the other end has closed the connection.
      OSError: it is broken.
      Exception: whatever unpickling raises.
    """
    chunk = connection.recv(_CHUNK)
    if not chunk:
        raise Ended("the connection was closed")
    if len(chunk) < _HEADER.size:
        chunk += _read(connection, _HEADER.size - len(chunk))
    count, size = _HEADER.unpack_from(chunk)
    if not count and len(chunk) == _HEADER.size + size:
        return pickle.loads(memoryview(chunk)[_HEADER.size :])
    rest = memoryview(chunk)[_HEADER.size :]
    lengths, rest = _exactly(connection, rest, 8 * count)
    data, rest = _exactly(connection, rest, size)
    parts = []
    for length in struct.unpack(f"<{count}Q", lengths):
        part, rest = _exactly(connection, rest, length)
        parts.append(part)
    return pickle.loads(data, buffers=parts)


def _exactly(connection: socket.socket, rest: memoryview, size: int) -> tuple[memoryview, memoryview]:
    """So many bytes, which can be written to: first what was received already, and what is left of that."""
    memory = buffers.empty((size,), _BYTE).data
    here = min(size, len(rest))
    memory[:here] = rest[:here]
    view = memory[here:]
    # All at once where the system can, rather than as they come, with a change of threads for each piece.
    flags = 0 if _is_encrypted(connection) else getattr(socket, "MSG_WAITALL", 0)
    while len(view):
        count = connection.recv_into(view, len(view), flags)
        if not count:
            raise Ended("the connection was closed in the middle of a message")
        view = view[count:]
    return memory, rest[here:]


def greet(connection: socket.socket, secret: bytes, kind: bytes) -> None:
    """Prove to whom was connected that this end knows the secret, and have it prove the same.

    Args:
      connection: just connected.
      secret: of the cluster.
      kind: one byte that says what the connection is for.

    Raises:
      ConnectionError: the other end does not know the secret, or closed the connection.
    """
    theirs = _read(connection, _NONCE)
    mine = secrets.token_bytes(_NONCE)
    connection.sendall(_proof(secret, b"caller" + kind + theirs) + mine + kind)
    if not hmac.compare_digest(_read(connection, 32), _proof(secret, b"seat" + kind + mine)):
        raise ConnectionError("the other end does not know the secret of the cluster")


def answer_greeting(connection: socket.socket, secret: bytes) -> bytes:
    """The other side of `greet`.

    Returns:
      What the connection is for.

    Raises:
      ConnectionError: the caller does not know the secret, or closed the connection.
    """
    mine = secrets.token_bytes(_NONCE)
    connection.sendall(mine)
    answer = _read(connection, 32 + _NONCE + 1)
    proof, theirs, kind = answer[:32], answer[32:-1], answer[-1:]
    if not hmac.compare_digest(proof, _proof(secret, b"caller" + kind + mine)):
        raise ConnectionError("the caller does not know the secret of the cluster")
    connection.sendall(_proof(secret, b"seat" + kind + theirs))
    return kind


def _proof(secret: bytes, what: bytes) -> bytes:
    return hmac.digest(secret, what, "sha256")


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise Ended("the connection was closed in the middle of a message")
        data += chunk
    return data


# ---- Calls of objects in other processes: the side of the caller

Address = tuple[str, int]
"""Host and port of the host of a seat."""

CALLS, PULSE = b"c", b"p"
"""What a connection is for: calls, or to see that both ends are alive."""

_CONNECT_SECONDS = 10.0


class _Cluster:
    """What this process knows of one cluster."""

    def __init__(self, secret: bytes, wrap: Callable[[socket.socket, str], socket.socket] | None) -> None:
        self.secret, self.wrap = secret, wrap
        self.links: dict[Address, Links] = {}
        self.lock = threading.Lock()


_CLUSTERS: dict[str, _Cluster] = {}


def join_cluster(
    cluster: str, secret: bytes, wrap: Callable[[socket.socket, str], socket.socket] | None = None
) -> None:
    """Let this process call the seats of a cluster.

    Args:
      cluster: its number.
      secret: what opens connections.
      wrap: encrypts a connection to a host; None where the cluster does not encrypt.
    """
    _CLUSTERS.setdefault(cluster, _Cluster(secret, wrap))


def leave_cluster(cluster: str) -> None:
    """Close all connections of this process within a cluster."""
    known = _CLUSTERS.pop(cluster, None)
    if known is not None:
        for links in list(known.links.values()):
            links.close("the cluster was closed")


def connect(cluster: str, address: Address, kind: bytes, seconds: float = _CONNECT_SECONDS) -> socket.socket:
    """A new connection to the host of a seat.

    Raises:
      OSError: nobody is there, or one who does not belong to the cluster.
    """
    known = _CLUSTERS.get(cluster)
    if known is None:
        raise ConnectionError("this process does not belong to the cluster of the object, or the cluster was closed")
    connection = socket.create_connection(address, timeout=seconds)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if known.wrap is not None:
            connection = known.wrap(connection, address[0])
        greet(connection, known.secret, kind)
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return connection


class Links:
    """The connections of this process to one other process.

    Args:
      cluster: the number of the cluster.
      seat: the name of the seat, for messages.
      address: where its host listens.
      broken: told why, when a connection breaks.
    """

    def __init__(
        self, cluster: str, seat: str, address: Address, broken: Callable[[str], None] = lambda _: None
    ) -> None:
        self.cluster, self.seat, self.address, self._broken = cluster, seat, address, broken
        self._free: deque[socket.socket] = deque()
        self._all: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.lost = ""
        self.dropped: deque[int] = deque()
        """Objects that nothing refers to any more; the next call tells the host."""

    def call(self, number: int, method: str, args: tuple[Any, ...], timeout: float | None = None) -> Any:
        """Call a method of an object there; see `Placed.call`."""
        if self.lost:
            raise SeatLost(self.seat, self.lost, started=False)
        connection = self._taken()
        try:
            if timeout is not None:
                connection.settimeout(timeout)
            send(connection, (number, method, args, emptied(self.dropped)))
            succeeded, value = receive(connection)
            if timeout is not None:
                connection.settimeout(None)
        except TimeoutError:
            self._give_up(connection)
            raise TimeoutError(f"{self.seat}: no result of {method!r} within {timeout} seconds") from None
        except OSError as error:
            self._give_up(connection)
            self._broken(str(error))
            raise SeatLost(self.seat, self.lost or str(error)) from None
        except BaseException:  # also an interruption in the middle of a message, after which no other may follow
            self._give_up(connection)
            raise
        self._free.append(connection)
        if self.lost:
            self.close(self.lost)
            if not succeeded:
                raise SeatLost(self.seat, self.lost)
        if succeeded:
            return value
        raise value

    def close(self, reason: str) -> None:
        """Break all connections: calls under way, and those to come, raise `SeatLost`."""
        with self._lock:
            self.lost = self.lost or reason
            connections, self._all = self._all, set()
        while self._free:
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                free = self._free.pop()
                connections.discard(free)
                free.close()
        for connection in connections:
            _wake(connection)

    def _taken(self) -> socket.socket:
        try:
            return self._free.pop()
        except IndexError:
            pass
        try:
            made = connect(self.cluster, self.address, CALLS)
        except OSError as error:
            self._broken(str(error))
            raise SeatLost(self.seat, self.lost or str(error), started=False) from None
        with self._lock:
            if not self.lost:
                self._all.add(made)
                return made
        made.close()
        raise SeatLost(self.seat, self.lost, started=False)

    def _give_up(self, connection: socket.socket) -> None:
        with self._lock:
            self._all.discard(connection)
        connection.close()


def _wake(connection: socket.socket) -> None:
    """Have the thread that waits for an answer on a connection wake up; it closes it then."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


_keeping = threading.local()


class pickled_with:  # noqa: N801 - used as a function
    """Collects the `PlacedThere`s that are pickled on this thread meanwhile.

    What is pickled holds only their numbers, so whoever keeps it must keep them as well, or their objects go.
    """

    def __enter__(self) -> "list[PlacedThere]":
        self._before = getattr(_keeping, "found", None)
        found: list[PlacedThere] = []
        _keeping.found = found
        return found

    def __exit__(self, *_: object) -> None:
        _keeping.found = self._before


class PlacedThere:
    """An object in another process; see `Placed`.

    Args:
      links: the connections to the process.
      number: of the object, at the host.
      owner: whether the object goes when this `PlacedThere` does.
    """

    __slots__ = ("__weakref__", "_links", "_number")

    def __init__(self, links: Links, number: int, *, owner: bool) -> None:
        self._links, self._number = links, number
        if owner:
            weakref.finalize(self, links.dropped.append, number).atexit = False

    @property
    def seat(self) -> str:
        """The name of the seat."""
        return self._links.seat

    def call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        """Call a method of the object; see `Placed.call`."""
        return self._links.call(self._number, method, args, timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        found = getattr(_keeping, "found", None)
        if found is not None:
            found.append(self)
        return _reach, (self._links.cluster, self.seat, self._links.address, self._number)


def _reach(cluster: str, seat: str, address: Address, number: int) -> PlacedThere:
    known = _CLUSTERS.get(cluster)
    if known is None:  # a process outside of the cluster may look at the object, but not call it
        return PlacedThere(Links(cluster, seat, address), number, owner=False)
    with known.lock:
        links = known.links.get(address)
        if links is None:
            links = known.links[address] = Links(cluster, seat, address)
    return PlacedThere(links, number, owner=False)


def links_to(cluster: str, seat: str, address: Address, broken: Callable[[str], None]) -> Links:
    """The connections of the coordinator to a seat, which it is told about when they break."""
    known = _CLUSTERS[cluster]
    links = Links(cluster, seat, address, broken)
    with known.lock:
        known.links[address] = links
    return links
