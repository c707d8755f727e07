# SPDX-License-Identifier: Apache-2.0
"""Calls of registered functions in another process: the side that calls, and the side that has the functions."""

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

import numpy as np

from distinput import errors
from distinput.distribute.collectives.channel import as_array, describe, from_bytes, parse, to_bytes
from distinput.distribute.door import Door, Visitor
from distinput.distribute.engines.background import listening
from distinput.errors import (
    DeadlineExceededError,
    DistinputError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from distinput.kernels.kernel import HelperThread
from distinput.run.threads import Closing
from distinput.values.leaves import STRING, Array, as_leaf, dtype_name
from distinput.values.nest import structure_of
from distinput.values.spec import TensorSpec
from distinput.values.spec_json import MalformedJson, items_of, json_value, member, of_kind

# ----------------------------------------------------------------------------
# Messages between client and server as bytes: a JSON text, then the contents of arrays as they lie in memory.
# ----------------------------------------------------------------------------


# ---- How a call ended: with a value, or with an error that has one of TensorFlow's codes

OK = 0
_UNKNOWN = 2
_CODES: dict[int, type[Exception]] = {
    1: errors.CancelledError,
    3: errors.InvalidArgumentError,
    4: errors.DeadlineExceededError,
    5: errors.NotFoundError,
    9: errors.FailedPreconditionError,
    10: errors.AbortedError,
    11: errors.OutOfRangeError,
    12: errors.UnimplementedError,
    14: errors.UnavailableError,
    15: errors.DataLossError,
}
_ALIKE: dict[type[Exception], int] = {TypeError: 3, ValueError: 3, NotImplementedError: 12}
"""Errors of Python that functions raise for what TensorFlow has codes for."""


def code_of(error: BaseException) -> int:
    """The code of an error; 2 for one that has none.

    >>> code_of(ValueError()), code_of(errors.UnavailableError()), code_of(RuntimeError())
    (3, 14, 2)
    """
    for code, kind in _CODES.items():
        if isinstance(error, kind):
            return code
    return next((code for kind, code in _ALIKE.items() if isinstance(error, kind)), _UNKNOWN)


def error_of(code: int, message: str) -> Exception:
    """The error with a code; a RuntimeError for code 2."""
    return _CODES.get(code, RuntimeError)(message)


class StatusOrResult:
    """The outcome of a call, which need not be there yet: every method waits for it.

    Args:
      outcome: (code, message, value), with code 0 for success.

    Source: what `tf.distribute.experimental.rpc.Client.call` returns.
    """

    def __init__(self, outcome: "Future[tuple[int, str, Any]]") -> None:
        self._outcome = outcome

    def is_ok(self) -> bool:
        """Whether the call succeeded."""
        return self._outcome.result()[0] == OK

    def get_error(self) -> tuple[int, str]:
        """TensorFlow's code of the error and its message; (0, "") if there was none."""
        code, message, _ = self._outcome.result()
        return code, message

    def get_value(self) -> Any:
        """What the function returned.

        Raises:
          Exception: the error of the call, of the class that its code says.
        """
        return _value_of(self._outcome.result())


def _value_of(reply: "Reply") -> Any:
    code, message, value = reply
    if code != OK:
        raise error_of(code, message)
    return value


# ---- Messages as bytes

_MOST_AXES = 32
"""Of an array of NumPy's."""


def encoded(note: dict[str, Any], value: Any) -> bytes:
    """A JSON object and a nest of arrays, numbers, text and None as bytes.

    Tuples, dicts with text for keys, and lists of arrays or nests keep their structure; other lists become arrays.
    Python's numbers get TensorFlow's dtypes, and text becomes bytes.

    Raises:
      TypeError: a leaf cannot be an array, or a key is not text.

    >>> decoded(encoded({"call": "add"}, (1, {"x": [0.5, 1.0]}, None)))
    ({'call': 'add'}, (np.int32(1), {'x': array([0.5, 1. ], dtype=float32)}, None))
    """
    arrays: list[Array] = []
    structure = _structure(value, arrays)
    contents = [to_bytes(array) for array in arrays]
    heads = [[describe(array), len(data)] for array, data in zip(arrays, contents, strict=True)]
    head = json.dumps({"note": note, "value": structure, "arrays": heads}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *[data.tobytes() for data in contents]])


def decoded(data: bytes) -> tuple[dict[str, Any], Any]:
    """The JSON object and the nest that `encoded` was given, with NumPy arrays, scalars and bytes for leaves.

    Raises:
      InvalidArgumentError: this is no such message.
    """
    try:
        return _decoded(data)
    except (MalformedJson, RecursionError) as error:
        raise InvalidArgumentError(
            f"rpc: this is not a message of a distinput client or server: {error}; both ends must be distinput, in versions "
            "that fit together"
        ) from error


def _decoded(data: bytes) -> tuple[dict[str, Any], Any]:
    raw = np.frombuffer(data, np.uint8)
    at = 8 + int.from_bytes(data[:8], "little")
    if not 8 <= at <= len(data):
        raise MalformedJson(f"a head of {at - 8} bytes in {len(data)}")
    head = json_value(data[8:at])
    arrays = []
    for entry in member(head, "arrays", list):
        text, nbytes = items_of(entry, "an array", 2)
        dtype, shape = _parsed(text)
        _check(dtype, shape, nbytes, len(data) - at)
        arrays.append(_array(raw[at : at + nbytes], dtype, shape))
        at += nbytes
    return member(head, "note", dict), _nest(member(head, "value"), arrays)


def _parsed(text: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    code, _, shape = of_kind(text, "an array", str).partition(" ")
    if not all(size.isascii() and size.isdigit() and len(size) < 20 for size in shape.split(",") if size):
        raise MalformedJson(f"{text!r:.60} is no array")
    try:
        np.dtype(code)
    except (TypeError, ValueError, SyntaxError) as error:  # of NumPy
        raise MalformedJson(f"the dtype {code!r:.60} is not known here; import ml_dtypes") from error
    return parse(text)


def _array(data: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    try:
        return from_bytes(data, dtype, shape)
    except UnicodeDecodeError as error:
        raise MalformedJson(f"a text that is no UTF-8: {error}") from error


def _check(dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: Any, left: int) -> None:
    """Refuse an array that cannot be made of the bytes that are there.

    Raises:
      MalformedJson: it cannot.
    """
    if type(nbytes) is not int or not 0 <= nbytes <= left or len(shape) > _MOST_AXES or math.prod(shape) >= 1 << 62:
        raise MalformedJson(f"an array {list(shape)} of {nbytes} bytes, and {left} are left")
    count = math.prod(shape)
    least = 8 * count if dtype.kind == "O" else dtype.itemsize * count
    if dtype.names is not None or not dtype.itemsize or nbytes < least or (dtype.kind != "O" and nbytes != least):
        raise MalformedJson(f"{nbytes} bytes for an array {list(shape)} of {dtype}")


def _structure(value: Any, arrays: list[Array]) -> Any:
    """What JSON says of a nest; its leaves are appended to `arrays`."""
    if value is None:
        return None
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"rpc: keys of dicts must be text, got {list(value)}")
        return {"dict": [[key, _structure(part, arrays)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_structure(part, arrays) for part in value]}
    if isinstance(value, list) and not _is_plain(value):
        return {"list": [_structure(part, arrays) for part in value]}
    leaf = as_leaf(value)
    if isinstance(leaf, bytes):
        made = np.empty((), object)
        made[()] = leaf
        arrays.append(made)
    else:
        arrays.append(as_array(leaf, "rpc"))
    return len(arrays) - 1


def _is_plain(value: list[Any]) -> bool:
    """Whether a list holds Python's numbers and text alone, and lists of them."""
    return bool(value) and all(
        _is_plain(part) if isinstance(part, list) else isinstance(part, int | float | complex | str | bytes)
        for part in value
    )


def _nest(structure: Any, arrays: list[Array]) -> Any:
    if structure is None:
        return None
    if type(structure) is int:
        if not 0 <= structure < len(arrays):
            raise MalformedJson(f"array {structure} of {len(arrays)}")
        return arrays[structure][()]
    if len(of_kind(structure, "a part", dict)) != 1 or not structure.keys() <= {"dict", "list", "tuple"}:
        raise MalformedJson(f"a part is none of dict, list and tuple: {structure!r:.60}")
    ((kind, parts),) = structure.items()
    items_of(parts, repr(kind))
    if kind == "dict":
        pairs = [items_of(pair, "a part of 'dict'", 2) for pair in parts]
        return {of_kind(key, "a key", str): _nest(part, arrays) for key, part in pairs}
    made = [_nest(part, arrays) for part in parts]
    return made if kind == "list" else tuple(made)


# ----------------------------------------------------------------------------
# The side that has the functions.
# ----------------------------------------------------------------------------


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


class Server(Closing):
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
        server = listening(*self._wanted, _WAITING)
        self._port = server.getsockname()[1]
        self._door = Door(server, self._serve, "distinput-rpc-client")

    def close(self) -> None:
        """Stop answering; calls that run are cut off."""
        self._closed = True
        if self._door is not None:
            self._door.close()

    def _serve(self, visitor: Visitor) -> None:
        visitor.connection = connection = Connection(visitor.connection.detach())
        with suppress(AssertionError, AuthenticationError, EOFError, OSError):
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


# ----------------------------------------------------------------------------
# The side that calls.
# ----------------------------------------------------------------------------


_INVALID = code_of(InvalidArgumentError(""))

_PATIENCE = 10.0
"""Seconds that a new client waits for its server where it was given no time."""
_RETRY = 0.05

Reply = tuple[int, str, Any]


class Client(Closing):
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
          timeout_in_ms: how long calls may take by default; 0: as long as they take.
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

        A result that does not fit `output_specs` is an InvalidArgumentError of the outcome.

        Args:
          method_name: the name under which it is registered.
          args: its arguments, nests of arrays, numbers and text.
          output_specs: a nest of `TensorSpec` with a leaf for each of the result; the result gets its structure. None keeps the
            structure that the function gave it.
          timeout_in_ms: how long it may take; 0 for the time of the client.

        Raises:
          TypeError: an argument cannot be sent.

        Source: `tf.distribute.experimental.rpc.Client.call`.
        """
        request = encoded({"call": method_name}, tuple(args or ()))
        outcome: Future[Reply] = Future()

        def run() -> None:
            try:
                found = self._outcome(request, timeout_in_ms)
                found = found if output_specs is None else _arranged(method_name, found, output_specs)
            except BaseException as error:  # noqa: BLE001 - whoever waits for the outcome must get one
                found = code_of(error), f"{type(error).__name__}: {error}", None
            outcome.set_result(found)

        HelperThread(target=run, name="distinput-rpc-call").start()
        return StatusOrResult(outcome)

    def close(self) -> None:
        """Close the connections; calls that run are still answered."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for connection in idle:
            connection.close()

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
            return _value_of(self._outcome(encoded({"call": name}, args), timeout_in_ms))

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
        with self._dropped_on_error(connection):
            connection.send_bytes(request)
            if not connection.poll(seconds):
                raise DeadlineExceededError(
                    f"{self!r}: no answer within {seconds:g} s; give a longer timeout_in_ms if the function may take that long"
                )
            answer = decoded(connection.recv_bytes())
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
        with self._dropped_on_error(connection):
            if not connection.poll(seconds):
                raise DeadlineExceededError(f"{self!r}: what listens there says nothing; is it a server of distinput?")
            try:
                answer_challenge(connection, self._key)
                deliver_challenge(connection, self._key)
            except (AuthenticationError, EOFError, AssertionError) as error:
                raise UnavailableError(f"{self!r}: the server has another key; give both the same") from error
        return connection

    @contextmanager
    def _dropped_on_error(self, connection: Connection) -> Iterator[None]:
        """Drop a connection that fails: an answer that comes later must not be taken for that of the next call."""
        try:
            yield
        except BaseException as error:
            self._drop(connection)
            if isinstance(error, EOFError | OSError) and not isinstance(error, DistinputError):
                raise UnavailableError(f"{self!r}: the server is gone ({type(error).__name__})") from error
            raise

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
        said = f"{what} has {len(leaves)} leaves, but output_specs has {len(each)}; give a spec for each"
        return _INVALID, said, None
    for leaf, spec in zip(leaves, each, strict=True):
        array = np.asarray(as_leaf(leaf))
        dtype = STRING if array.dtype.kind in "SUO" else array.dtype
        if isinstance(spec, TensorSpec) and not spec.fits(array.shape, dtype):
            given = f"{dtype_name(dtype)}{list(array.shape)}"
            return _INVALID, f"{what} must fit {spec}, got {given}; change output_specs", None
    return code, "", specified.build(leaves)
