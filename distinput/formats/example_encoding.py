# SPDX-License-Identifier: Apache-2.0
"""`tf.train.Example` messages, without the protobuf library: encoded, made normal, and looked into without a declaration."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.formats.raw_bytes import for_each
from distinput.kernels.example_values import BYTES, FLOAT, INT64, MISSING, read_values
from distinput.kernels.protobuf import FIRST, SECOND, MalformedError, read_entries, read_fields, varint_bytes
from distinput.values.leaves import STRING, first_of, lost, members_of
from distinput.values.spec_json import MalformedJson, items_of, json_value, of_kind

# ----------------------------------------------------------------------------
# Encoding `tf.train.Example` messages, and normalizing unusual ones, without the protobuf library.
# ----------------------------------------------------------------------------


def encode_example(features: Mapping[str, Any]) -> bytes:
    r"""Encode a `tf.train.Example` message, with keys sorted so that the same features give the same bytes.

    Args:
      features: values by key: bytes and str become a list of bytes, integers and booleans a list of int64,
        floating-point numbers a list of float32, and lists and arrays a list of their values in row-major order.
        None and `[]` become a feature without a kind, which counts as missing.

    Raises:
      InvalidArgumentError: no kind of feature can hold a value.

    >>> encode_example({"x": [1, 300]})
    b'\n\x0e\n\x0c\n\x01x\x12\x07\x1a\x05\n\x03\x01\xac\x02'
    """
    return field(1, _map((_key(key), _encode_feature(key, features[key])) for key in sorted(features, key=_key)))


def encode_sequence_example(context: Mapping[str, Any], feature_lists: Mapping[str, Sequence[Any]]) -> bytes:
    r"""Encode a `tf.train.SequenceExample` message, with keys sorted.

    Args:
      context: values of the whole by key, as for `encode_example`.
      feature_lists: by key, the values of each step, as for `encode_example`.

    Raises:
      InvalidArgumentError: no kind of feature can hold a value.

    >>> encode_sequence_example({}, {"x": [1, [2, 3]]})
    b'\x12\x16\n\x14\n\x01x\x12\x0f\n\x05\x1a\x03\n\x01\x01\n\x06\x1a\x04\n\x02\x02\x03'
    """
    lists = _map(
        (_key(key), b"".join([field(1, _encode_feature(key, step)) for step in feature_lists[key]]))
        for key in sorted(feature_lists, key=_key)
    )
    return (encode_example(context) if context else b"") + (field(2, lists) if lists else b"")


def encode_examples(block: Block) -> Strings:
    """Encode each element of a block of dicts."""
    return Strings.of([encode_example(element) for element in block.kept.elements()])


# The protobuf wire format: fields of tag and content, where the tag gives the field number and the wire type.


def field(number: int, content: bytes) -> bytes:
    """A field of bytes or of a message."""
    return bytes((number << 3 | 2,)) + varint_bytes(len(content)) + content


def _map(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The entries of a map: each a message of a key and a value."""
    return b"".join([field(1, field(1, key) + field(2, value)) for key, value in entries])


def _encode_feature(key: str, value: Any) -> bytes:
    if value is None or (isinstance(value, list | tuple) and not len(value)):
        return b""
    if isinstance(value, bytes | bytearray | memoryview | str):
        return field(BYTES, field(1, _text(value)))
    holds_text = isinstance(first_of(value), bytes | str)  # from which NumPy would strip trailing zeros
    try:
        array = np.array(value, object) if holds_text else np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"feature {key!r}: the lists in it must agree in length: {error}; give their values as one list, and their lengths "
            "as another feature"
        ) from None
    match array.dtype.kind:
        case "f":
            if (large := _large_integer(value, array)) is not None:
                raise InvalidArgumentError(
                    f"feature {key!r}: {large} does not fit into int64, the only integers of an Example"
                )
            with np.errstate(over="ignore"):
                made = array.astype("<f4")
            if (infinite := lost(array, made)).any():
                wrong = array[infinite].reshape(-1)[0]
                raise InvalidArgumentError(
                    f"feature {key!r}: {wrong} is too large for float32, the only floats of an Example; scale it, or write the "
                    "bytes of the number"
                )
            numbers = made.tobytes()
            return field(FLOAT, field(1, numbers) if numbers else b"")
        case "i" | "u" | "b":
            if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
                raise InvalidArgumentError(
                    f"feature {key!r}: {array.max()} does not fit into int64, the only integers of an Example"
                )
            packed = b"".join([varint_bytes(item & (1 << 64) - 1) for item in array.reshape(-1).tolist()])
            return field(INT64, field(1, packed) if packed else b"")
        case "S" | "U" | "O":  # NumPy makes text of numbers beside text
            listed = isinstance(value, list | tuple)
            items = (np.array(value, object) if listed else array).reshape(-1).tolist()
            if all(isinstance(item, bytes | bytearray | memoryview | str) for item in items):
                return field(BYTES, b"".join([field(1, _text(item)) for item in items]))
    raise InvalidArgumentError(
        f"feature {key!r}: an Example holds bytes, floating-point numbers and integers, got {value!r:.80}"
    )


def _large_integer(value: Any, array: Any) -> int | None:
    """The largest of integers alone, of which NumPy makes floats where some fit into uint64 alone; None: there are others."""
    first = first_of(value)
    if first is value or not isinstance(first, int | np.integer) or not array.size or np.abs(array).max() < 1 << 63:
        return None
    numbers = members_of(value)
    if not all(isinstance(number, int | np.integer) for number in numbers):
        return None
    return max([int(number) for number in numbers], key=abs)


def _key(key: Any) -> bytes:
    if not isinstance(key, str | bytes):
        raise InvalidArgumentError(f"the key of a feature must be text, got {key!r:.60} ({type(key).__name__})")
    return _text(key)


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def fields_of(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, wire type and content of each field of a message."""
    for tag, start, stop in read_fields(message):
        yield tag >> 3, tag & 7, message[start:stop]


def with_joined_lists(message: bytes) -> bytes:
    """The same message with one list for each key.

    Raises:
      MalformedError: the message is malformed.
    """
    found = lists_of(message).items()
    return field(1, _map((key, field(kind, values) if kind else b"") for key, (kind, values) in found))


def lists_of(message: bytes) -> dict[bytes, tuple[int, bytes]]:
    """The kind and the list of each key of a message; kind `MISSING` if it has none.

    Repeated pieces of a message are equivalent to their concatenation; the last map entry for a key wins, and so does
    the last member of a oneof.

    Raises:
      MalformedError: the message is malformed.
    """
    features = {key: b"".join(pieces) for key, pieces in _entries(message, FIRST)}
    return {key: list_of(feature) for key, feature in features.items()}


def _entries(message: bytes, place: int) -> Iterator[tuple[bytes, list[bytes]]]:
    """The key and the pieces of the value of each entry of the map in a field of a message."""
    for key, pieces in read_entries(message, place):
        yield key, [message[start:stop] for start, stop in pieces]


def list_of(feature: bytes) -> tuple[int, bytes]:
    """The kind of the list in a feature, and its bytes."""
    kind, values = MISSING, b""
    for number, form, content in fields_of(feature):
        if form == 2 and number in (BYTES, FLOAT, INT64):
            kind, values = number, values + content if number == kind else content
    return kind, values


# ----------------------------------------------------------------------------
# Looking into `tf.train.Example` messages without knowing their features, and reading those that are written as JSON.
# ----------------------------------------------------------------------------


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
        return np.array([content[start:stop] for start, stop in values], STRING)  # type: ignore[misc]
    return np.array(values, np.float32 if kind == FLOAT else np.int64)


_LISTS = {f"{kind}{end}": kind for kind in ("bytes", "float", "int64") for end in ("List", "_list")}


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
    return for_each(json_examples, _of_json)


def _of_json(text: Any) -> bytes:
    try:
        if not isinstance(text, str | bytes | bytearray):
            raise MalformedJson(f"a {type(text).__name__} is not a text")
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
        raise MalformedJson(f"{', '.join(map(repr, kinds))} is not a kind of feature")
    items = items_of(_object(value[kinds[0]], repr(kinds[0])).get("value") or [], "'value'")
    match _LISTS[kinds[0]]:
        case "bytes":
            return np.array([_bytes(item) for item in items], object)
        case "float":
            # Those that are too large are refused where they are encoded.
            return np.array([_float(item) for item in items], np.float64)
        case _:
            return np.array([_integer(item) for item in items], np.int64)


def _bytes(item: Any) -> bytes:
    coded = "".join(of_kind(item, "an item of bytes", str).replace("-", "+").replace("_", "/").split()).rstrip("=")
    try:
        return base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True)
    except ValueError as error:  # of binascii
        raise MalformedJson(f"{item!r:.60} is not base64: {error}") from error


def _float(item: Any) -> float:
    try:
        return float(of_kind(item, "an item", int, float, str, bool))
    except (ValueError, OverflowError) as error:  # what the text says
        raise MalformedJson(f"{item!r:.60} is not a number: {error}") from error


def _integer(item: Any) -> int:
    of_kind(item, "an item", int, float, str, bool)
    try:
        number = int(item)
    except (ValueError, OverflowError) as error:  # what the text says
        raise MalformedJson(f"{item!r:.60} is not an integer: {error}") from error
    if (isinstance(item, float) and item != number) or not -(1 << 63) <= number < 1 << 63:
        raise MalformedJson(f"{item!r:.60} is not an integer of 64 bits")
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
    return {
        key: [list_of(piece[start:stop]) for piece in pieces for tag, start, stop in read_fields(piece) if tag == FIRST]
        for key, pieces in _entries(message, SECOND)
    }
