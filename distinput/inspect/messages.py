# SPDX-License-Identifier: Apache-2.0
"""What records of bytes are: `tf.train.Example` messages, `tf.train.SequenceExample` messages, or anything else."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from distinput.errors import InvalidArgumentError
from distinput.formats.decoded_example import decode_example
from distinput.formats.decoded_sequence_example import decode_sequence_example
from distinput.formats.example_encoding import fields_of
from distinput.kernels.protobuf import MalformedError

__all__ = ["KINDS", "decoder", "kind_of"]

KINDS = ("example", "sequence_example", "bytes")
"""What records of bytes may be."""

LOOKED_AT = 100
"""Records that are decoded to see what all are."""


def kind_of(records: Iterable[bytes]) -> str:
    """What the first records are, one of `KINDS`: messages with features, all of them, or else bytes.

    >>> import distinput as di
    >>> kind_of([di.io.encode_example({"x": 1})]), kind_of([b"a text"])
    ('example', 'bytes')
    """
    looked = list(islice(records, LOOKED_AT))
    if not looked or all(map(_is_list_of_examples, looked)):
        return "bytes"
    try:
        found = [decode_sequence_example(record) for record in looked]
    except InvalidArgumentError:
        return "bytes"
    if not all(context or lists for context, lists in found):
        return "bytes"
    return "sequence_example" if any(lists for _, lists in found) else "example"


def _is_list_of_examples(record: bytes) -> bool:
    """Whether a message is an ExampleListWithContext: Examples where a SequenceExample has features."""
    try:
        parts = [content for number, form, content in fields_of(record) if number in (1, 2) and form == 2]
        decoded = [decode_example(part) for part in parts]  # all of them
    except (InvalidArgumentError, MalformedError):
        return False
    return any(value is not None for features in decoded for value in features.values())


def decoder(kind: str) -> Callable[[bytes], Any]:
    """What turns a record of a kind into values: features by key, those of the steps of a sequence as lists."""
    if kind == "example":
        return decode_example
    return _sequence if kind == "sequence_example" else bytes


def _sequence(record: bytes) -> dict[str, Any]:
    context, lists = decode_sequence_example(record)
    return {"context": context, "feature_lists": lists}
