# SPDX-License-Identifier: Apache-2.0
"""Records of bytes are told apart by what the first ones hold."""

import pytest

import distinput as di
from distinput.inspect.records import decoder, kind_of

EXAMPLE = di.io.encode_example({"x": 1})
SEQUENCE = di.io.encode_sequence_example({"x": 1}, {"y": [[1]]})


@pytest.mark.parametrize(
    "records, kind",
    [
        ([], "bytes"),
        ([b""], "bytes"),
        ([b"some text"], "bytes"),
        ([EXAMPLE], "example"),
        ([EXAMPLE, b""], "bytes"),
        ([EXAMPLE, SEQUENCE], "sequence_example"),
        ([EXAMPLE, b"\xff"], "bytes"),
    ],
)
def test_what_records_are(records: list[bytes], kind: str) -> None:
    assert kind_of(records) == kind


def test_a_few_records_are_looked_at() -> None:
    def endless() -> object:
        while True:
            yield EXAMPLE

    assert kind_of(endless()) == "example"  # type: ignore[arg-type]


def test_decoders() -> None:
    assert decoder("example")(EXAMPLE)["x"].tolist() == [1]
    assert decoder("sequence_example")(SEQUENCE)["feature_lists"]["y"][0].tolist() == [1]
    assert decoder("bytes")(b"a") == b"a"


def in_field(number: int, part: bytes) -> bytes:
    return bytes([number << 3 | 2, len(part)]) + part


def test_lists_of_examples_with_a_context_are_no_sequences() -> None:
    context = di.io.encode_example({"query": "what", "length": 4})
    several = in_field(1, EXAMPLE) + in_field(1, di.io.encode_example({"score": [0.5]})) + in_field(2, context)
    assert kind_of([several]) == "bytes"
    assert kind_of([in_field(1, EXAMPLE)]) == "bytes"
    assert kind_of([in_field(2, context), several]) == "bytes"
    for key in ("", "x", "\n\x00", "\n"):
        assert kind_of([di.io.encode_example({key: [1, 2]})]) == "example", key
        assert kind_of([di.io.encode_sequence_example({"id": 1}, {"y": [[1]]})]) == "sequence_example", key
