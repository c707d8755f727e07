# SPDX-License-Identifier: Apache-2.0
"""A server answers calls of registered functions, and of nothing else."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import distinput as tf
from distinput.distribute.rpc import Client, Server
from tests.patience import threads_since


@pytest.fixture
def server() -> Iterator[Server]:
    with Server.create("grpc", "localhost:0") as made:
        yield made


def test_the_example_of_the_page(server: Server) -> None:
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)])
    def remote_fn(a, b):
        return tf.constant(a + b)

    server.register("addition", remote_fn)
    server.start()
    client = tf.distribute.experimental.rpc.Client.create("grpc", address=server.address, name="test_client")
    a = tf.constant(2, dtype=tf.int32)
    b = tf.constant(3, dtype=tf.int32)
    result = client.call(args=[a, b], method_name="addition", output_specs=tf.TensorSpec((), tf.int32))
    assert result.is_ok()
    assert result.get_value() == 5
    result = client.addition(a, b)
    assert result.is_ok()
    assert result.get_value().dtype == np.int32
    assert client.addition_blocking(a, b) == 5


def test_an_error_of_the_function_is_the_callers(server: Server) -> None:
    def fail(kind):
        raise {b"value": ValueError, b"key": KeyError, b"lost": tf.errors.DataLossError}[kind]("why")

    server.register("fail", fail)
    server.start()
    with Client.create("grpc", server.address) as client:
        assert client.call("fail", ["value"]).get_error() == (3, "ValueError: why")
        assert client.call("fail", ["key"]).get_error() == (2, "KeyError: 'why'")
        with pytest.raises(tf.errors.DataLossError, match="DataLossError: why"):
            client.fail_blocking("lost")
        with pytest.raises(tf.errors.InvalidArgumentError, match="missing 1 required positional argument"):
            client.fail_blocking()
        assert client.call("fail", ["value"]).get_error()[0] == 3  # the connection still works


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_would_end_a_program_is_an_error_of_the_call(server: Server, kind: type[BaseException]) -> None:
    def end():
        raise kind("now")

    server.register("end", end)
    server.register("one", lambda: 1)
    server.start()
    with Client.create("grpc", server.address) as client:
        assert client.call("end").get_error() == (2, f"{kind.__name__}: now")
        with pytest.raises(RuntimeError, match=f"{kind.__name__}: now"):
            client.end_blocking()
        assert client.one_blocking() == 1


def test_members_get_in_beside_strangers(server: Server) -> None:
    server.register("one", lambda: 1)
    threads = threading.enumerate()
    server.start()
    host, _, port = server.address.rpartition(":")
    with Client.create("grpc", server.address) as before:
        held = [socket.create_connection((host, int(port)), timeout=60) for _ in range(200)]
        try:
            with Client.create("grpc", server.address) as client:
                assert client.one_blocking() == 1
            assert before.one_blocking() == 1
            assert len(threads_since(threads, "distinput-rpc-client")) < 100
        finally:
            for each in held:
                each.close()


def test_only_what_is_registered_can_be_called(server: Server) -> None:
    server.register("one", lambda: 1)
    server.register("another", lambda: 2)
    server.start()
    with Client.create("grpc", server.address) as client:
        assert client.call("__init__").get_error() == (
            5,
            "NotFoundError: rpc: the server has no method '__init__'; registered are another, one",
        )
        server.register("later", lambda: 3)
        assert client.call("later").get_value() == 3
        assert not hasattr(client, "later")  # the methods are those of the time when the client was made


def test_calls_of_several_clients_run_at_the_same_time(server: Server) -> None:
    both = threading.Barrier(2, timeout=60)
    server.register("meet", lambda: both.wait() * 0)
    server.start()
    with Client.create("grpc", server.address) as one, Client.create("grpc", server.address) as other:
        assert [call.get_value() for call in (one.meet(), other.meet())] == [0, 0]
        assert [call.get_value() for call in (one.meet(), one.meet())] == [0, 0]


def test_bytes_that_are_no_message_end_one_connection_alone(server: Server) -> None:
    server.register("one", lambda: 1)
    server.start()
    host, port = server.address.split(":")
    for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\xff" * 100):
        with socket.create_connection((host, int(port))) as end:
            end.sendall(noise)
    silent = socket.create_connection((host, int(port)))
    with Client.create("grpc", server.address) as client, silent:
        assert client.one_blocking() == 1


def test_a_key_is_needed_where_there_is_one() -> None:
    with Server.create("grpc", "localhost:0", key="secret") as server:
        server.register("one", lambda: 1)
        server.start()
        with Client.create("grpc", server.address, key=b"secret") as client:
            assert client.one_blocking() == 1
        for wrong in (None, "other"):
            with pytest.raises(tf.errors.UnavailableError, match="the server has another key; give both the same"):
                Client.create("grpc", server.address, timeout_in_ms=20_000, key=wrong)


PROGRAM = """
import sys, distinput as tf
server = tf.distribute.experimental.rpc.Server.create("grpc", "localhost:0")
server.register("total", lambda x, scale: {"sum": x["a"].sum() * scale, "text": x["b"]})
server.start()
print(server.address, flush=True)
sys.stdin.read()
"""


def test_another_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        client = Client.create("grpc", address)
        made = client.total_blocking({"a": np.arange(1000.0), "b": "x"}, 2)
        assert made == {"sum": np.float64(999000.0), "text": b"x"}
        process.kill()
        process.wait()
        with pytest.raises(tf.errors.UnavailableError, match=r"the server is gone|nobody listens there"):
            client.total_blocking({"a": np.arange(3), "b": "x"}, 2)


def test_a_server_starts_once_and_ends(server: Server) -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"known once the server is started; call start\(\)"):
        _ = server.address
    server.start()
    with pytest.raises(tf.errors.FailedPreconditionError, match="it was started before"):
        server.start()
    client = Client.create("grpc", server.address)
    server.close()
    assert client.call("one").get_error()[0] == 14
    server.close()


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":80", "localhost:70000", "localhost:x", ""])
def test_an_address_is_host_and_port(address: str) -> None:
    for made in (Server, Client):
        with pytest.raises(ValueError, match="the address must be 'host:port', such as 'localhost:8470', got"):
            made.create("grpc", address)


def test_wrong_arguments_are_refused(server: Server) -> None:
    with pytest.raises(ValueError, match="the layer must be 'grpc', TensorFlow's name for the only one, got 'http'"):
        Server.create("http", "localhost:0")
    with pytest.raises(ValueError, match="a method must have a name"):
        server.register("", len)
    with pytest.raises(TypeError, match="method 'x' must be a function, got 3"):
        server.register("x", 3)
    server.register("x", len)
    with pytest.raises(tf.errors.InvalidArgumentError, match="method 'x' is already registered"):
        server.register("x", len)
