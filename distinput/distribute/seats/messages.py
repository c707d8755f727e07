# SPDX-License-Identifier: Apache-2.0
"""Python objects over a connected socket, one at a time in each direction: a request, then its answer.

An object travels as a pickle; large arrays follow as they lie in memory, without being copied into it, and come out as
views of the memory that they were received into. Pickle can run any code, so a connection is opened only to those who know
the secret of the cluster; each end proves that it does before anything is unpickled.

Source: pickle protocol 5 with buffers out of band (PEP 574).
"""

import hmac
import pickle
import secrets
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.core import buffers

__all__ = ["Ended", "answer_greeting", "greet", "receive", "send"]

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
    while len(chunk) < _HEADER.size:
        chunk += _some(connection)
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


def _some(connection: socket.socket) -> bytes:
    chunk = connection.recv(_CHUNK)
    if not chunk:
        raise Ended("the connection was closed in the middle of a message")
    return chunk


def _exactly(connection: socket.socket, rest: memoryview, size: int) -> tuple[memoryview, memoryview]:
    """So many bytes, which can be written to: first what was received already, and what is left of that."""
    buffer = buffers.empty((size,), _BYTE).data
    here = min(size, len(rest))
    buffer[:here] = rest[:here]
    view = buffer[here:]
    # All at once where the system can, rather than as they come, with a change of threads for each piece.
    flags = 0 if _is_encrypted(connection) else getattr(socket, "MSG_WAITALL", 0)
    while len(view):
        count = connection.recv_into(view, len(view), flags)
        if not count:
            raise Ended("the connection was closed in the middle of a message")
        view = view[count:]
    return buffer, rest[here:]


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
            raise Ended("the connection was closed during the greeting")
        data += chunk
    return data
