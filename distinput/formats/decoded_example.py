# SPDX-License-Identifier: Apache-2.0
"""Looking into `tf.train.Example` messages without knowing their features, and reading those that are written as JSON."""

import base64
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import encode_example, fields_of, list_of, lists_of
from distinput.kernels.example_values import BYTES, FLOAT, read_values
from distinput.kernels.protobuf import MalformedError
from distinput.values.json_values import MalformedJson, items_of, json_value, of_kind
from distinput.values.leaves import STRING

__all__ = ["decode_example", "decode_json_example", "decode_sequence_example", "message_of", "values_of"]


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
        if not isinstance(text, str | bytes | bytearray):
            raise MalformedJson(f"a {type(text).__name__} is no text")
        features = _object(of_kind(json_value(text), "it", dict).get("features"), "'features'")
        values = _object(features.get("feature"), "'feature'")
        return encode_example({key: _feature(key, value) for key, value in values.items()})
    except MalformedJson as error:
        raise InvalidArgumentError(
            f"decode_json_example: each item must be an Example in JSON, got {text!r:.60}: {error}"
        ) from error


def _object(value: Any, what: str) -> dict[str, Any]:
    """An object of JSON; without members where there is none."""
    made: dict[str, Any] = of_kind(value or {}, what, dict)
    return made


def _feature(key: str, value: Any) -> Any:
    """The values of a feature.

    Raises:
      MalformedJson: it has no kind that is known, or a value that is none of its kind.
    """
    if not _object(value, repr(key)):
        return None
    kinds = list(value)
    if len(kinds) > 1 or kinds[0] not in _LISTS:
        raise MalformedJson(f"{', '.join(map(repr, kinds))} is no kind of feature")
    items = items_of(_object(value[kinds[0]], repr(kinds[0])).get("value") or [], "'value'")
    match _LISTS[kinds[0]]:
        case "bytes":
            found = np.empty(len(items), object)
            found[:] = [_bytes(item) for item in items]
            return found
        case "float":
            return np.array([_float(item) for item in items], np.float32)
        case _:
            return np.array([_integer(item) for item in items], np.int64)


def _bytes(item: Any) -> bytes:
    coded: str = of_kind(item, "an item of bytes", str)
    try:
        return base64.b64decode(coded.replace("-", "+").replace("_", "/") + "==")
    except ValueError as error:  # of binascii
        raise MalformedJson(f"{item!r:.60} is no base64: {error}") from error


def _float(item: Any) -> float:
    try:
        return float(of_kind(item, "an item", int, float, str, bool))
    except (ValueError, OverflowError) as error:  # what the text says
        raise MalformedJson(f"{item!r:.60} is no number: {error}") from error


def _integer(item: Any) -> int:
    of_kind(item, "an item", int, float, str, bool)
    try:
        number = int(item)
    except (ValueError, OverflowError) as error:  # what the text says
        raise MalformedJson(f"{item!r:.60} is no integer: {error}") from error
    if (isinstance(item, float) and item != number) or not -(1 << 63) <= number < 1 << 63:
        raise MalformedJson(f"{item!r:.60} is no integer of 64 bits")
    return number


# ----------------------------------------------------------------------------
# Looking into `tf.train.SequenceExample` messages without knowing their features.
# ----------------------------------------------------------------------------


def decode_sequence_example(serialized: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """All features of one SequenceExample, as they are: for a look into an unknown file.

    Args:
      serialized: the message.

    Returns:
      The features of the whole, as `decode_example` has them, and by key a list with an array for each step.

    Raises:
      InvalidArgumentError: it is no such message.

    >>> import distinput as di
    >>> decode_sequence_example(di.io.encode_sequence_example({"id": 7}, {"words": [["a", "b"], ["c"]]}))
    ({'id': array([7])}, {'words': [array([b'a', b'b'], dtype=object), array([b'c'], dtype=object)]})
    """
    try:
        content = message_of(serialized)
        context, lists = lists_of(content), _feature_lists(content)
        return (
            {key.decode(errors="replace"): values_of(*context[key]) for key in sorted(context)},
            {key.decode(errors="replace"): [values_of(*each) for each in lists[key]] for key in sorted(lists)},
        )
    except MalformedError as error:
        raise InvalidArgumentError(
            f"decode_sequence_example: serialized must be a tf.train.SequenceExample message, got {serialized!r:.60}"
        ) from error


def _feature_lists(message: bytes) -> dict[bytes, list[tuple[int, bytes]]]:
    """The kind and the list of each step, by key; the last entry of a key wins."""
    by_name: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, form, lists in fields_of(message):
        for number2, form2, entry in fields_of(lists) if (number, form) == (2, 2) else ():
            if (number2, form2) != (1, 2):
                continue
            key, steps = b"", list[bytes]()
            for number3, form3, content in fields_of(entry):
                if (number3, form3) == (1, 2):
                    key = content
                elif (number3, form3) == (2, 2):
                    steps += [step for number4, form4, step in fields_of(content) if (number4, form4) == (1, 2)]
            by_name[key] = [list_of(step) for step in steps]
    return by_name
