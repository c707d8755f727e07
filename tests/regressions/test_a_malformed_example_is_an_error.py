# SPDX-License-Identifier: Apache-2.0
"""A message that ends in something else is an error, also where a list in several pieces has it written anew."""

import pytest

import distinput as di

PIECES = b"\n\x0f\n\r\n\x01n\x12\x08\x1a\x02\x08\x01\x1a\x02\x08\x02"  # an int64 feature "n" of 1 and 2, in two lists
FEATURES = {"n": di.io.VarLenFeature("int64")}


def test_lists_in_pieces_are_joined() -> None:
    assert di.io.parse_single_example(PIECES, FEATURES)["n"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "end", [b"\x02\x01", b"\x08" + b"\xff" * 10 + b"\x01", b"\x0b", b"\x08", b"\xff" * 9 + b"\x01\x01"]
)
def test_what_follows_must_be_a_field(end: bytes) -> None:
    for message in (PIECES + end, PIECES[:-2] + end):
        with pytest.raises(
            di.errors.InvalidArgumentError, match=r"Could not parse example input|the list of values is damaged"
        ):
            di.io.parse_single_example(message, FEATURES)
