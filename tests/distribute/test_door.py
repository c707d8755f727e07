# SPDX-License-Identifier: Apache-2.0
"""Strangers at a door are few and have little time; members get in, and stay."""

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from io import FileIO

import pytest

from distinput.distribute.door import Door, Visitor
from tests.patience import wait_until

SECONDS = 0.5


@contextlib.contextmanager
def opened(most: int = 8, seconds: float = SECONDS) -> Iterator[tuple[str, int]]:
    """A door behind which every member hears what it says; the word is "sesame"."""

    def serve(visitor: Visitor) -> None:
        with contextlib.suppress(OSError):
            said = b""
            while len(said) < 6:
                more = visitor.connection.recv(6 - len(said))
                if not more:
                    return
                said += more
            if said == b"sesame":
                visitor.welcome()
                visitor.connection.sendall(b"welcome")
                while heard := visitor.connection.recv(100):
                    visitor.connection.sendall(heard)

    server = socket.create_server(("127.0.0.1", 0), backlog=128)
    door = Door(server, serve, "distinput-door", seconds=seconds, most=most)
    try:
        yield server.getsockname()
    finally:
        door.close()


def member(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address, timeout=60)
    connection.sendall(b"sesame")
    assert connection.recv(7, socket.MSG_WAITALL) == b"welcome"
    return connection


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def threads() -> int:
    return sum(thread.name == "distinput-door" for thread in threading.enumerate())


def test_those_who_say_nothing_are_sent_away() -> None:
    with opened() as address, member(address) as inside:
        held = [socket.create_connection(address, timeout=60) for _ in range(100)]
        wait_until(lambda: threads() <= 2 + 8)
        with member(address) as another:
            another.sendall(b"here")
            assert another.recv(100) == b"here"
        assert ended(held[0])
        assert ended(held[-1])  # after its time
        inside.sendall(b"still")
        assert inside.recv(100) == b"still"  # for as long as it likes
        for each in held:
            each.close()
    wait_until(lambda: not threads())


def test_those_who_say_a_little_again_and_again_are_sent_away() -> None:
    with (
        opened() as address,
        socket.create_connection(address, timeout=60) as slow,
        contextlib.suppress(ConnectionError),
    ):
        for _ in range(5):
            slow.sendall(b"s")
            time.sleep(SECONDS / 3)
        assert ended(slow)


def test_without_descriptors_a_stranger_makes_room() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with opened(seconds=60) as address:
        held = [socket.create_connection(address, timeout=60) for _ in range(4)]
        wait_until(lambda: threads() == 5)
        files = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        try:
            caller = socket.socket()
            with contextlib.suppress(OSError):
                while True:
                    files.append(FileIO("/dev/null"))
            caller.settimeout(60)
            caller.connect(address)
            caller.sendall(b"sesame")
            assert caller.recv(7, socket.MSG_WAITALL) == b"welcome"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for each in [*held, *files, caller]:
                each.close()


def test_a_closed_door_ends_all_connections() -> None:
    with opened(seconds=60) as address:
        inside, stranger = member(address), socket.create_connection(address, timeout=60)
        wait_until(lambda: threads() == 3)
    with inside, stranger:
        assert ended(inside)
        assert ended(stranger)
    wait_until(lambda: not threads())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=60)
