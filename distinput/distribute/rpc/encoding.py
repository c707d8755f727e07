# SPDX-License-Identifier: Apache-2.0
"""Messages between client and server as bytes: a JSON text, then the contents of arrays as they lie in memory.

Nothing that is received is executed, and no more memory is asked for than bytes were received.
"""

import json
import math
from concurrent.futures import Future
from typing import Any

import numpy as np

from distinput import errors
from distinput.distribute.collectives.channel import as_array, describe, from_bytes, parse, to_bytes
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import as_leaf
from distinput.values.spec_json import MalformedJson, items_of, json_value, member, of_kind

__all__ = ["OK", "StatusOrResult", "code_of", "decoded", "encoded", "error_of"]

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
        code, message, value = self._outcome.result()
        if code != OK:
            raise error_of(code, message)
        return value


# ---- Messages between client and server as bytes: a JSON text, then the contents of arrays as they lie in memory

Array = np.ndarray[Any, Any]
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
            f"rpc: this is no message of a distinput client or server: {error}; both ends must be distinput, of versions that "
            "go together"
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
