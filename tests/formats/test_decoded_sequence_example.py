# SPDX-License-Identifier: Apache-2.0
"""What is found in a SequenceExample is what was put into it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import decode_sequence_example

numbers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3)
words = st.lists(st.binary(max_size=4), min_size=1, max_size=3)
contexts = st.dictionaries(st.text(max_size=3), numbers | words, max_size=3)
lists = st.dictionaries(st.text(max_size=3), st.lists(numbers, max_size=3) | st.lists(words, max_size=3), max_size=3)


@given(contexts, lists)
def test_it_is_what_was_encoded(context: dict[str, Any], steps: dict[str, Any]) -> None:
    found = decode_sequence_example(di.io.encode_sequence_example(context, steps))
    assert {key: value.tolist() for key, value in found[0].items()} == context
    assert {key: [value.tolist() for value in values] for key, values in found[1].items()} == steps


@given(st.binary(max_size=40))
def test_other_bytes_are_empty_or_an_error(message: bytes) -> None:
    try:
        found = decode_sequence_example(message)
    except InvalidArgumentError as error:
        found = str(error)  # type: ignore[assignment]
    assert len(found) == 2 or "must be a tf.train.SequenceExample message" in found


def test_text_is_none() -> None:
    with pytest.raises(InvalidArgumentError):
        decode_sequence_example(b"some text")
