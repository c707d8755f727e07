# SPDX-License-Identifier: Apache-2.0
"""The side that calls."""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Self

import numpy as np

from distinput.distribute.rpc.encoding import OK, StatusOrResult, code_of, decoded, encoded, error_of
from distinput.distribute.rpc.server import METHODS, address_of, key_of
from distinput.errors import (
    DeadlineExceededError,
    DistinputError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)
from distinput.values.leaves import STRING, as_leaf, dtype_name
from distinput.values.nest import structure_of
from distinput.values.spec import TensorSpec

__all__ = ["Client"]

_INVALID = code_of(InvalidArgumentError(""))

_PATIENCE = 10.0
"""Seconds that a new client waits for its server where it was given no time."""
_RETRY = 0.05

Reply = tuple[int, str, Any]


class Client:
    """Calls the functions that a `Server` has registered; `create` makes one.

    For each of them there is a method of its name, which returns a `StatusOrResult` at once, and one with `_blocking`
    behind the name, which returns the value. Both take `timeout_in_ms=`.

    Source: `tf.distribute.experimental.rpc.Client`.
    """

    def __init__(self, address: tuple[str, int], name: str, timeout: float | None, key: bytes) -> None:
        self._address, self._name, self._timeout, self._key = address, name, timeout, key
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @staticmethod
    def create(
        rpc_layer: str, address: str, name: str = "", timeout_in_ms: int = 0, *, key: str | bytes | None = None
    ) -> "Client":
        """A client of a server that has been started, or will be within the time: 10 seconds if none is given.

        Args:
          rpc_layer: "grpc".
          address: of the server, "host:port".
          name: for messages.
          timeout_in_ms: how long calls may take by default; 0 for ever.
          key: the secret of the server, if it has one.

        Raises:
          ValueError: another layer, or an address of another form.
          DeadlineExceededError: the server did not answer within the time.
          UnavailableError: nobody listens at the address, or the server has another key.

        Source: `tf.distribute.experimental.rpc.Client.create`.
        """
        seconds = timeout_in_ms / 1000 if timeout_in_ms else None
        made = Client(address_of(rpc_layer, address), name, seconds, key_of(key))
        for method in made._methods(_PATIENCE if seconds is None else seconds):
            if method.isidentifier() and not hasattr(made, method):
                setattr(made, method, made._method(method))
                setattr(made, f"{method}_blocking", made._blocking_method(method))
        return made

    def call(
        self, method_name: str, args: Sequence[Any] | None = None, output_specs: Any = None, timeout_in_ms: int = 0
    ) -> StatusOrResult:
        """Call a registered function, and return at once.

        Args:
          method_name: the name under which it is registered.
          args: its arguments, nests of arrays, numbers and text.
          output_specs: a nest of `TensorSpec` with a leaf for each of the result; the result gets its structure. None keeps the
            structure that the function gave it.
          timeout_in_ms: how long it may take; 0 for the time of the client.

        Raises:
          TypeError: an argument cannot be sent.

        A result that does not fit `output_specs` is an InvalidArgumentError of the outcome.

        Source: `tf.distribute.experimental.rpc.Client.call`.
        """
        request = encoded({"call": method_name}, tuple(args or ()))
        outcome: Future[Reply] = Future()

        def run() -> None:
            found = self._outcome(request, timeout_in_ms)
            outcome.set_result(found if output_specs is None else _arranged(method_name, found, output_specs))

        threading.Thread(target=run, name="distinput-rpc-call", daemon=True).start()
        return StatusOrResult(outcome)

    def close(self) -> None:
        """Close the connections; calls that run are still answered."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        host, port = self._address
        return f"Client({self._name + ' of ' if self._name else ''}{host}:{port})"

    def _method(self, name: str) -> Callable[..., StatusOrResult]:
        def method(*args: Any, timeout_in_ms: int = 0) -> StatusOrResult:
            return self.call(name, args, timeout_in_ms=timeout_in_ms)

        method.__name__, method.__doc__ = name, f"Call {name!r} of the server, and return at once."
        return method

    def _blocking_method(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, timeout_in_ms: int = 0) -> Any:
            code, message, value = self._outcome(encoded({"call": name}, args), timeout_in_ms)
            if code != OK:
                raise error_of(code, message)
            return value

        method.__name__, method.__doc__ = f"{name}_blocking", f"Call {name!r} of the server, and return its value."
        return method

    def _methods(self, seconds: float) -> list[str]:
        """What the server has registered; waits until there is a server."""
        request, end = encoded({"call": METHODS}, None), time.monotonic() + seconds
        while True:
            try:
                methods: list[str] = self._exchange(request, max(end - time.monotonic(), 0.0))[0]["methods"]
            except UnavailableError as error:
                # Another key is no matter of waiting.
                if isinstance(error.__cause__, AuthenticationError) or time.monotonic() + _RETRY > end:
                    raise
                time.sleep(_RETRY)
            else:
                return methods

    def _outcome(self, request: bytes, timeout_in_ms: int) -> Reply:
        seconds = timeout_in_ms / 1000 if timeout_in_ms else self._timeout
        try:
            note, value = self._exchange(request, seconds)
        except DistinputError as error:
            return code_of(error), str(error), None
        return int(note.get("code", 2)), str(note.get("message", "")), value

    def _exchange(self, request: bytes, seconds: float | None) -> tuple[dict[str, Any], Any]:
        """The answer to a request, over a connection that no other call uses."""
        connection = self._connection(seconds)
        try:
            connection.send_bytes(request)
            if not connection.poll(seconds):
                raise DeadlineExceededError(
                    f"{self!r}: no answer within {seconds:g} s; give a longer timeout_in_ms if the function may take that long"
                )
            answer = decoded(connection.recv_bytes())
        except (EOFError, OSError) as error:
            self._drop(connection)
            if isinstance(error, DistinputError):
                raise
            raise UnavailableError(f"{self!r}: the server is gone ({type(error).__name__})") from error
        except BaseException:
            self._drop(connection)  # an answer that comes later must not be taken for that of the next call
            raise
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return answer
        self._drop(connection)
        return answer

    def _connection(self, seconds: float | None) -> Connection:
        with self._lock:
            if self._closed:
                raise FailedPreconditionError(f"{self!r}: the client was closed; make another one")
            if self._idle:
                return self._idle.pop()
        try:
            with socket.create_connection(self._address, timeout=seconds) as end:
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = Connection(end.detach())
        except OSError as error:
            raise UnavailableError(f"{self!r}: nobody listens there ({error}); start the server first") from error
        try:
            if not connection.poll(seconds):
                raise DeadlineExceededError(f"{self!r}: what listens there says nothing; is it a server of distinput?")
            answer_challenge(connection, self._key)
            deliver_challenge(connection, self._key)
        except (AuthenticationError, EOFError, AssertionError) as error:
            self._drop(connection)
            raise UnavailableError(f"{self!r}: the server has another key; give both the same") from error
        except BaseException:
            self._drop(connection)
            raise
        return connection

    @staticmethod
    def _drop(connection: Connection) -> None:
        with suppress(OSError):
            connection.close()


def _arranged(method: str, outcome: Reply, specs: Any) -> Reply:
    """The outcome with its value in the structure of the specs, or with an error if it does not fit."""
    code, _, value = outcome
    if code != OK:
        return outcome
    specified, found = structure_of(specs, lists=True), structure_of(value, lists=True)
    leaves, each = found.flatten(value), specified.flatten(specs)
    what = f"call: the result of {method!r}"
    if len(leaves) != len(each):
        return (
            _INVALID,
            f"{what} has {len(leaves)} leaves, but output_specs has {len(each)}; give a spec for each",
            None,
        )
    for leaf, spec in zip(leaves, each, strict=True):
        array = np.asarray(as_leaf(leaf))
        dtype = STRING if array.dtype.kind in "SUO" else array.dtype
        if isinstance(spec, TensorSpec) and not spec.fits(array.shape, dtype):
            given = f"{dtype_name(dtype)}{list(array.shape)}"
            return _INVALID, f"{what} must fit {spec}, got {given}; change output_specs", None
    return code, "", specified.build(leaves)
