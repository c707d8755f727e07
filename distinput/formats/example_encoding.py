# SPDX-License-Identifier: Apache-2.0
"""Encoding `tf.train.Example` messages, and normalizing unusual ones, without the protobuf library."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from distinput.columns.block import Block
from distinput.columns.strings import Strings
from distinput.errors import InvalidArgumentError
from distinput.kernels.example_values import BYTES, FLOAT, INT64, MISSING
from distinput.kernels.protobuf import read_fields

__all__ = [
    "encode_example",
    "encode_examples",
    "encode_sequence_example",
    "field",
    "lists_of",
    "varint",
    "with_joined_lists",
]


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
    entries = []
    for key in sorted(features, key=_text):
        entry = field(1, _text(key)) + field(2, _encode_feature(key, features[key]))
        entries.append(field(1, entry))
    return field(1, b"".join(entries))


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
    entries = []
    for key in sorted(feature_lists, key=_text):
        steps = b"".join([field(1, _encode_feature(key, step)) for step in feature_lists[key]])
        entries.append(field(1, field(1, _text(key)) + field(2, steps)))
    lists = field(2, b"".join(entries)) if entries else b""
    return (encode_example(context) if context else b"") + lists


def encode_examples(block: Block) -> Strings:
    """Encode each element of a block of dicts."""
    return Strings.of([encode_example(element) for element in block.elements()])


# The protobuf wire format: fields of tag and content, where the tag gives the field number and the wire type.


def varint(value: int) -> bytes:
    """A number from 0 on as protobuf writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes or of a message."""
    return bytes((number << 3 | 2,)) + varint(len(content)) + content


def _encode_feature(key: str, value: Any) -> bytes:
    if value is None or (isinstance(value, list | tuple) and not len(value)):
        return b""
    if isinstance(value, bytes | bytearray | memoryview | str):
        return field(BYTES, field(1, _text(value)))
    array = np.asarray(value) if not _holds_text(value) else np.array(value, object)
    match array.dtype.kind:
        case "f":
            numbers = array.astype("<f4").tobytes()
            return field(FLOAT, field(1, numbers) if numbers else b"")
        case "i" | "u" | "b":
            if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
                raise InvalidArgumentError(
                    f"feature {key!r}: {array.max()} is no int64, the only integers of an Example"
                )
            packed = b"".join([varint(item & (1 << 64) - 1) for item in array.reshape(-1).tolist()])
            return field(INT64, field(1, packed) if packed else b"")
        case "S" | "U" | "O":
            items = array.reshape(-1).tolist()
            if all(isinstance(item, bytes | bytearray | memoryview | str) for item in items):
                return field(BYTES, b"".join([field(1, _text(item)) for item in items]))
    raise InvalidArgumentError(
        f"feature {key!r}: an Example holds bytes, floating-point numbers and integers, got {value!r:.80}"
    )


def _holds_text(value: Any) -> bool:
    """True for a list of bytes or str, from which NumPy would strip trailing zeros."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, bytes | str)


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
    entries = []
    for key, (kind, values) in lists_of(message).items():
        entry = field(1, key) + field(2, field(kind, values) if kind else b"")
        entries.append(field(1, entry))
    return field(1, b"".join(entries))


def lists_of(message: bytes) -> dict[bytes, tuple[int, bytes]]:
    """The kind and the list of each key of a message; kind `MISSING` if it has none.

    Repeated pieces of a message are equivalent to their concatenation; the last map entry for a key wins, and so does
    the last member of a oneof.

    Raises:
      MalformedError: the message is malformed.
    """
    messages: dict[bytes, bytes] = {}
    for number, form, features in fields_of(message):
        for number2, form2, entry in fields_of(features) if (number, form) == (1, 2) else ():
            if (number2, form2) != (1, 2):
                continue
            key, feature = b"", b""
            for number3, form3, content in fields_of(entry):
                if (number3, form3) == (1, 2):
                    key = content
                elif (number3, form3) == (2, 2):
                    feature += content
            messages[key] = feature
    return {key: list_of(feature) for key, feature in messages.items()}


def list_of(feature: bytes) -> tuple[int, bytes]:
    kind, values = MISSING, b""
    for number, form, content in fields_of(feature):
        if form == 2 and number in (BYTES, FLOAT, INT64):
            kind, values = number, values + content if number == kind else content
    return kind, values
