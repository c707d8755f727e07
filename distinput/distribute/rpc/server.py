# SPDX-License-Identifier: Apache-2.0
"""The side that has the functions."""

import contextlib
import socket
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Self

from distinput.distribute.door import Door, Visitor
from distinput.distribute.rpc.encoding import OK, code_of, decoded, encoded
from distinput.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

__all__ = ["LAYERS", "METHODS", "Server", "address_of", "key_of"]

LAYERS = ("grpc",)
METHODS = ""
"""The name under which a server tells its methods."""
_WAITING = 128
_NO_KEY = b"distinput"  # both ends always greet each other, so that a key on one side alone is noticed


def address_of(rpc_layer: str, address: str) -> tuple[str, int]:
    """Host and port.

    Raises:
      ValueError: an unknown layer, or no address.
    """
    if rpc_layer not in LAYERS:
        raise ValueError(f"rpc: the layer must be 'grpc', TensorFlow's name for the only one, got {rpc_layer!r}")
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"rpc: the address must be 'host:port', such as 'localhost:8470', got {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def key_of(key: str | bytes | None) -> bytes:
    """The secret that both ends prove to know; one that everybody knows if none is given."""
    return (key.encode() if isinstance(key, str) else key) or _NO_KEY


class Server:
    """Answers calls of the functions that are registered, and of no others; `create` makes one.

    Arguments and results are nests of arrays, numbers and text. They travel as such, and nothing that is received is
    executed. A function is called on a thread of its caller's connection, so it may be called several times at once.

    >>> import distinput as di
    >>> rpc = di.distribute.experimental.rpc
    >>> with rpc.Server.create("grpc", "localhost:0") as server:
    ...     server.register("multiply", lambda a, b: a * b)
    ...     server.start()
    ...     with rpc.Client.create("grpc", server.address) as client:
    ...         print(client.call("multiply", [2, 3]).get_value(), client.multiply_blocking(4, 5))
    6 20

    Source: `tf.distribute.experimental.rpc.Server`. The name "grpc" is TensorFlow's: both ends are distinput.
    """

    def __init__(self, address: tuple[str, int], key: bytes) -> None:
        self._wanted, self._port, self._key = address, address[1], key
        self._methods: dict[str, Callable[..., Any]] = {}
        self._door: Door | None = None
        self._closed = False

    @staticmethod
    def create(rpc_layer: str, address: str, *, key: str | bytes | None = None) -> "Server":
        """A server that is not started yet.

        Args:
          rpc_layer: "grpc".
          address: "host:port"; port 0 takes a free one, see `address`.
          key: a secret that clients must know too; None lets everybody call who reaches the port.

        Raises:
          ValueError: another layer, or an address of another form.

        Source: `tf.distribute.experimental.rpc.Server.create`.
        """
        return Server(address_of(rpc_layer, address), key_of(key))

    @property
    def address(self) -> str:
        """Where the server is, "host:port"; known once it is started."""
        if self._door is None:
            raise FailedPreconditionError("rpc.Server: the address is known once the server is started; call start()")
        return f"{self._wanted[0]}:{self._port}"

    def register(self, method_name: str, func: Callable[..., Any]) -> None:
        """Let clients call a function by a name.

        Args:
          method_name: the name, not empty.
          func: any function; one with an `input_signature` checks its arguments.

        Raises:
          ValueError: the name is empty.
          InvalidArgumentError: the name is taken.
          TypeError: `func` is not a function.

        Source: `tf.distribute.experimental.rpc.Server.register`.
        """
        if not isinstance(method_name, str) or not method_name:
            raise ValueError(f"rpc.Server: a method must have a name, got {method_name!r}")
        if not callable(func):
            raise TypeError(f"rpc.Server: method {method_name!r} must be a function, got {func!r}")
        if method_name in self._methods:
            raise InvalidArgumentError(
                f"rpc.Server: method {method_name!r} is already registered; give this one another name"
            )
        self._methods[method_name] = func

    def start(self) -> None:
        """Begin to answer calls, in the background.

        Raises:
          FailedPreconditionError: it was started before.
          OSError: the address is taken.

        Source: `tf.distribute.experimental.rpc.Server.start`.
        """
        if self._door is not None or self._closed:
            raise FailedPreconditionError("rpc.Server: it was started before; make another one")
        server = socket.create_server(self._wanted, family=_family(self._wanted[0]), backlog=_WAITING)
        self._port = server.getsockname()[1]
        self._door = Door(server, self._serve, "distinput-rpc-client")

    def close(self) -> None:
        """Stop answering; calls that run are cut off."""
        self._closed = True
        if self._door is not None:
            self._door.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _serve(self, visitor: Visitor) -> None:
        visitor.connection = connection = Connection(visitor.connection.detach())
        with contextlib.suppress(AssertionError, AuthenticationError, EOFError, OSError):
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            visitor.welcome()
            while not self._closed:
                connection.send_bytes(self._answer(connection.recv_bytes()))

    def _answer(self, request: bytes) -> bytes:
        """The answer to one request; never raises for what the client sent or the function did."""
        try:
            note, args = decoded(request)
            name = note.get("call")
            if name == METHODS:
                return encoded({"code": OK, "methods": sorted(self._methods)}, None)
            if name not in self._methods:
                known = ", ".join(sorted(self._methods)) or "none"
                raise NotFoundError(f"rpc: the server has no method {name!r}; registered are {known}")
            if not isinstance(args, tuple):
                raise InvalidArgumentError(f"rpc: the arguments of {name!r} must be a tuple, got {type(args).__name__}")
            return encoded({"code": OK}, self._methods[name](*args))
        except BaseException as error:  # noqa: BLE001 - it is the client's, also where it would end a program
            return encoded({"code": code_of(error), "message": f"{type(error).__name__}: {error}"}, None)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
