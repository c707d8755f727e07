# SPDX-License-Identifier: Apache-2.0
"""Looking into `tf.train.Example` messages without knowing their features, and reading those that are written as JSON."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from distinput.core.leaves import STRING
from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import encode_example, lists_of
from distinput.kernels.example_values import BYTES, FLOAT, read_values
from distinput.kernels.protobuf import MalformedError

__all__ = ["decode_example", "decode_json_example", "message_of", "values_of"]


def decode_example(serialized: bytes) -> dict[str, Any]:
    """All features of one Example, as they are: for a look into an unknown file.

    To read many records, declare their features and use `parse_example`, which is compiled.

    Args:
      serialized: the message.

    Returns:
      By key, in ascending order, an array [n] of int64, float32 or byte strings; None for a feature without a kind, which
      counts as missing. `encode_example` of it is the same message again, unless that was written in an unusual way.

    Raises:
      InvalidArgumentError: it is no such message.

    >>> import distinput as di
    >>> decode_example(di.io.encode_example({"id": 7, "names": ["a", "b"]}))
    {'id': array([7]), 'names': array([b'a', b'b'], dtype=object)}
    """
    try:
        found = lists_of(message_of(serialized))
        return {key.decode(errors="replace"): values_of(*found[key]) for key in sorted(found)}
    except MalformedError as error:
        raise InvalidArgumentError(
            f"decode_example: serialized must be a tf.train.Example message, got {serialized!r:.60}"
        ) from error


def message_of(serialized: Any) -> bytes:
    """The bytes of a message.

    Raises:
      MalformedError: it is something else, such as text.
    """
    try:
        return bytes(memoryview(serialized)) if not isinstance(serialized, bytes) else serialized
    except TypeError as error:
        raise MalformedError(str(error)) from error


def values_of(kind: int, content: bytes) -> Any:
    """The values of one feature."""
    if not kind:
        return None
    values = read_values(content, kind)
    if kind == BYTES:
        made = np.empty(len(values), STRING)
        made[:] = [content[start:stop] for start, stop in values]  # type: ignore[misc]
        return made
    return np.array(values, np.float32 if kind == FLOAT else np.int64)


_LISTS = {
    "bytesList": "bytes",
    "bytes_list": "bytes",
    "floatList": "float",
    "float_list": "float",
    "int64List": "int64",
    "int64_list": "int64",
}


def decode_json_example(json_examples: Any, name: str | None = None) -> Any:
    r"""Examples that are written as JSON, as the messages that `parse_example` takes.

    Args:
      json_examples: text or bytes, or an array or list of them.
      name: ignored.

    Returns:
      A message, or an array of messages.

    Raises:
      InvalidArgumentError: one is no JSON, or not that of an Example.

    >>> text = '{"features": {"feature": {"x": {"int64List": {"value": ["1", "2"]}}}}}'
    >>> decode_example(decode_json_example(text))
    {'x': array([1, 2])}

    Source: `tf.io.decode_json_example`; JSON as protobuf's documentation describes it.
    """
    del name
    if isinstance(json_examples, str | bytes):
        return _of_json(json_examples)
    array = np.asarray(json_examples, object)
    made = np.empty(array.shape, object)
    made.reshape(-1)[:] = [_of_json(text) for text in array.reshape(-1).tolist()]
    return made


def _of_json(text: Any) -> bytes:
    try:
        read = json.loads(text)
        features = read.get("features") or {}
        return encode_example({key: _feature(value) for key, value in (features.get("feature") or {}).items()})
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError, binascii.Error) as error:
        raise InvalidArgumentError(
            f"decode_json_example: each item must be an Example in JSON, got {text!r:.60}: {error}"
        ) from error


def _feature(value: Mapping[str, Any]) -> Any:
    """The values of a feature.

    Raises:
      ValueError: it has no kind that is known.
    """
    if not value:
        return None
    ((kind, held),) = value.items()
    if kind not in _LISTS:
        raise ValueError(f"{kind!r} is no kind of feature")
    items = held.get("value") or []
    match _LISTS[kind]:
        case "bytes":
            found = np.empty(len(items), object)
            found[:] = [base64.b64decode(item.replace("-", "+").replace("_", "/") + "==") for item in items]
            return found
        case "float":
            return np.array([float(item) for item in items], np.float32)
        case _:
            return np.array([_integer(item) for item in items], np.int64)


def _integer(item: Any) -> int:
    number = int(item)
    if isinstance(item, float) and item != number:
        raise ValueError(f"{item} is no integer")
    return number
