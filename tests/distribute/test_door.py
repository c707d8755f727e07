# SPDX-License-Identifier: Apache-2.0
"""Strangers at a door are few and have little time; members get in, and stay."""

import contextlib
import resource
import socket
import threading
from collections.abc import Iterator
from io import FileIO

import pytest

from distinput.distribute import door
from distinput.distribute.door import Door, Visitor
from tests.exhausted import ThreadStarts
from tests.patience import Clock, threads_since, wait_until

SECONDS = 10.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(door, "time", made)
    return made


@contextlib.contextmanager
def opened(most: int = 8) -> Iterator[tuple[str, int]]:
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
    made = Door(server, serve, "distinput-door", seconds=SECONDS, most=most)
    try:
        yield server.getsockname()
    finally:
        made.close()


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


@pytest.fixture
def before() -> list[threading.Thread]:
    """What runs before the door is there."""
    return threading.enumerate()


def test_those_who_say_nothing_are_sent_away(clock: Clock, before: list[threading.Thread]) -> None:
    with opened() as address, member(address) as inside:
        held = [socket.create_connection(address, timeout=60) for _ in range(100)]
        assert ended(held[-9])  # the eight that came after it take its place
        wait_until(lambda: len(threads_since(before, "distinput-door")) <= 2 + 8)
        clock.now += SECONDS - 0.1
        with member(address) as another:
            another.sendall(b"here")
            assert another.recv(100) == b"here"
        assert ended(held[0])
        clock.now += 1
        assert ended(held[-1])  # after its time
        inside.sendall(b"still")
        assert inside.recv(100) == b"still"  # for as long as it likes
        for each in held:
            each.close()
    wait_until(lambda: not threads_since(before, "distinput-door"))


def test_those_who_say_a_little_again_and_again_are_sent_away(clock: Clock) -> None:
    with (
        opened() as address,
        socket.create_connection(address, timeout=60) as slow,
        contextlib.suppress(ConnectionError),
    ):
        for _ in range(5):
            slow.sendall(b"s")
            clock.now += SECONDS / 3
            with member(address):
                pass
        assert ended(slow)


def test_without_descriptors_a_stranger_makes_room(before: list[threading.Thread]) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with opened() as address:
        held = [socket.create_connection(address, timeout=60) for _ in range(4)]
        wait_until(lambda: len(threads_since(before, "distinput-door")) == 5)
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


def test_a_closed_door_ends_all_connections(before: list[threading.Thread]) -> None:
    with opened() as address:
        inside, stranger = member(address), socket.create_connection(address, timeout=60)
        wait_until(lambda: len(threads_since(before, "distinput-door")) == 3)
    with inside, stranger:
        assert ended(inside)
        assert ended(stranger)
    wait_until(lambda: not threads_since(before, "distinput-door"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=60)


def test_a_door_without_a_thread_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    ThreadStarts(monkeypatch).fail(1)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Door(server, lambda visitor: None, "test-door")
    assert server.fileno() == -1
