# SPDX-License-Identifier: Apache-2.0
"""A client waits for its server, for answers as long as it may, and for nothing else."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import distinput as tf
from distinput.distribute.rpc import Client, Server
from distinput.testing.ports import free_ports


@pytest.fixture
def slow() -> Iterator[tuple[Server, threading.Event]]:
    """A server whose method `wait` returns once the event is set."""
    event = threading.Event()
    with Server.create("grpc", "localhost:0") as server:
        server.register("wait", lambda: bool(event.wait(60)))
        server.register("echo", lambda x: x)
        server.start()
        yield server, event
        event.set()


def test_a_call_returns_at_once(slow: tuple[Server, threading.Event]) -> None:
    server, event = slow
    with Client.create("grpc", server.address) as client:
        outcome = client.call("wait")
        event.set()
        assert outcome.get_value()
        assert outcome.is_ok()


def test_a_call_may_take_its_time_and_no_longer(slow: tuple[Server, threading.Event]) -> None:
    server, event = slow
    with Client.create("grpc", server.address, timeout_in_ms=20000) as client:
        outcome = client.call("wait", timeout_in_ms=100)
        assert outcome.get_error() == (
            4,
            f"Client({server.address}): no answer within 0.1 s; give a longer timeout_in_ms if the function may take that long",
        )
        with pytest.raises(tf.errors.DeadlineExceededError):
            client.wait_blocking(timeout_in_ms=50)
        event.set()
        assert client.echo_blocking(5) == 5  # and not the answer that came too late


def test_many_calls_share_a_client(slow: tuple[Server, threading.Event]) -> None:
    server, _ = slow
    with Client.create("grpc", server.address) as client:
        outcomes = [client.echo(i) for i in range(50)]
        assert [int(outcome.get_value()) for outcome in outcomes] == list(range(50))


def test_a_client_waits_for_its_server() -> None:
    server = Server.create("grpc", f"localhost:{free_ports(1)[0]}")
    server.register("one", lambda: 1)
    threading.Timer(0.3, server.start).start()
    host, port = server._wanted
    with Client.create("grpc", f"{host}:{port}") as client, server:
        assert client.one_blocking() == 1


def test_nobody_there() -> None:
    begun = time.monotonic()
    with pytest.raises(
        tf.errors.UnavailableError, match=r"Client\(me of localhost:\d+\): nobody listens there .*start the"
    ):
        Client.create("grpc", f"localhost:{free_ports(1)[0]}", "me", 200)
    assert time.monotonic() - begun < 30


def test_somebody_who_says_nothing() -> None:
    with socket.create_server(("localhost", 0)) as other:
        address = f"localhost:{other.getsockname()[1]}"
        with pytest.raises(tf.errors.DeadlineExceededError, match="says nothing; is it a server of distinput"):
            Client.create("grpc", address, timeout_in_ms=200)


def test_what_cannot_be_sent_is_refused_at_once(slow: tuple[Server, threading.Event]) -> None:
    with (
        Client.create("grpc", slow[0].address) as client,
        pytest.raises(TypeError, match="cannot make an array of a object"),
    ):
        client.call("echo", [object()])


def test_a_closed_client_calls_no_more(slow: tuple[Server, threading.Event]) -> None:
    client = Client.create("grpc", slow[0].address)
    client.close()
    assert client.call("echo", [1]).get_error()[0] == 9
    with pytest.raises(tf.errors.FailedPreconditionError, match="the client was closed; make another one"):
        client.echo_blocking(1)


def test_a_result_has_the_structure_of_the_output_specs(slow: tuple[Server, threading.Event]) -> None:
    server, _ = slow
    server.register("two", lambda: {"a": np.int32(1), "b": (np.float32(2), "x")})
    number = tf.TensorSpec([], tf.int64)
    specs = [tf.TensorSpec([], tf.int32), tf.TensorSpec(None, tf.float32), tf.TensorSpec([], tf.string)]
    with Client.create("grpc", server.address) as client:

        def called(method: str, output_specs: Any, *args: Any) -> Any:
            return client.call(method, args, output_specs=output_specs).get_value()

        assert called("echo", [number], np.int64(10)) == [10]
        assert called("echo", (number,), np.int64(10)) == (10,)
        assert called("echo", {"k": number}, np.int64(10)) == {"k": 10}
        assert called("echo", number, np.int64(10)) == called("echo", None, np.int64(10)) == 10
        assert called("two", specs) == [1, 2, b"x"]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="the result of 'two' has 3 leaves, but output_specs has 1"
        ):
            called("two", [number])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"must fit TensorSpec.*, got float32\[\]; change"):
            called("echo", [number], np.float32(1))


def test_a_server_that_goes_during_the_greeting(slow: tuple[Server, threading.Event]) -> None:
    server, _ = slow
    with Client.create("grpc", server.address) as client, socket.create_server(("localhost", 0)) as other:
        client._drop(client._idle.pop())
        client._address = other.getsockname()

        def hang_up() -> None:
            for _ in range(2):
                visitor, _ = other.accept()
                visitor.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )  # as a process that is killed
                visitor.sendall(b"\0\0\0\x40")
                time.sleep(0.05)
                visitor.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        assert client.call("echo", [1])._outcome.result(60)[0] == 14
        with pytest.raises(tf.errors.UnavailableError, match="the server is gone"):
            client.echo_blocking(1)
        thread.join(60)


def test_whatever_happens_there_is_an_outcome(
    slow: tuple[Server, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a defect")

    server, _ = slow
    with Client.create("grpc", server.address) as client:
        monkeypatch.setattr(client, "_outcome", fail)
        assert client.call("echo", [1])._outcome.result(60) == (2, "RuntimeError: a defect", None)
