# SPDX-License-Identifier: Apache-2.0
"""Records of bytes are told apart by what the first ones hold."""

import pytest

import distinput as di
from distinput.inspect.messages import decoder, kind_of

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
