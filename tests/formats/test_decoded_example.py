# SPDX-License-Identifier: Apache-2.0
"""Examples without a schema, and Examples in JSON."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import decode_example, decode_json_example, encode_example

VALUES = st.one_of(
    st.none(),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4).map(lambda x: np.array(x, np.int64)),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4).map(lambda x: np.array(x, np.float32)),
    st.lists(st.binary(max_size=9), min_size=1, max_size=4),
)


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=4))
def test_what_is_decoded_encodes_to_the_same_message(features: dict[str, Any]) -> None:
    message = encode_example(features)
    found = decode_example(message)
    assert encode_example(found) == message
    assert list(found) == sorted(features, key=str.encode)


def test_values_have_the_dtypes_of_their_kinds() -> None:
    found = decode_example(encode_example({"i": 7, "f": [0.5], "b": "x", "none": None}))
    assert found["i"].tolist() == [7]
    assert (found["i"].dtype, found["f"].dtype, found["b"].tolist()) == (np.int64, np.float32, [b"x"])
    assert found["none"] is None
    assert decode_example(b"") == {}


@pytest.mark.parametrize("message", [b"\xff", b"\x0a\x7f", "text", 3])
def test_what_is_no_example_is_refused(message: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"decode_example: serialized must be a tf\.train\.Example message, got"
    ):
        decode_example(message)


def test_json_is_read_as_by_tensorflow() -> None:
    text = (
        '{"features":{"feature":{"x":{"int64List":{"value":["1","2"]}},"y":{"floatList":{"value":[1.5]}},'
        '"z":{"bytesList":{"value":["YWI="]}}}}}'
    )
    message = decode_json_example(text)
    assert {key: value.tolist() for key, value in decode_example(message).items()} == {
        "x": [1, 2],
        "y": [1.5],
        "z": [b"ab"],
    }
    other = '{"features":{"feature":{"x":{"int64_list":{"value":[1]}}}}}'
    assert decode_json_example(other) == bytes.fromhex("0a0b0a090a017812041a020801") or decode_example(
        decode_json_example(other)
    )["x"].tolist() == [1]
    assert decode_json_example([text, b"{}"]).tolist() == [message, encode_example({})]
    special = '{"features":{"feature":{"x":{"floatList":{"value":["NaN","-Infinity"]}},"y":{}}}}'
    found = decode_example(decode_json_example(special))
    assert (str(found["x"].tolist()), found["y"]) == ("[nan, -inf]", None)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "3",
        '{"features": 3}',
        '{"features":{"feature":{"x":{"int64List":{"value":["a"]}}}}}',
        '{"features":{"feature":{"x":{"int64List":{"value":[1.5]}}}}}',
        '{"features":{"feature":{"x":{"int64List":{"value":[99999999999999999999]}}}}}',
        '{"features":{"feature":{"x":{"unknown":{}}}}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_example_in_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="decode_json_example: each item must be an Example in JSON, got"):
        decode_json_example(text)


@pytest.mark.parametrize("value", [[1, 2**63], [2**63, -1], [[2**63], [-1]], [2**63], np.uint64(2**63)])
def test_integers_that_fit_into_no_int64_are_no_floats(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="9223372036854775808 does not fit into int64"):
        encode_example({"x": value})
    assert decode_example(encode_example({"x": [1.0, 2**63]}))["x"].tolist() == [1.0, 2.0**63]


@pytest.mark.parametrize(
    "features, says",
    [
        ({"x": [[1, 2], [3]]}, "'x': the lists in it must agree in length"),
        ({5: 1}, "key of a feature must be text, got 5"),
    ],
)
def test_what_is_no_feature_is_refused(features: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        encode_example(features)


@pytest.mark.parametrize(
    "kind, value, says",
    [
        ("bytesList", '"a b!"', "is not base64"),
        ("bytesList", '"YWJjZ"', "is not base64"),
        ("floatList", "1e39", "too large for float32"),
    ],
)
def test_json_of_no_value_is_refused(kind: str, value: str, says: str) -> None:
    text = f'{{"features": {{"feature": {{"x": {{"{kind}": {{"value": [{value}]}}}}}}}}}}'
    with pytest.raises(InvalidArgumentError, match=says):
        decode_json_example(text)


@pytest.mark.parametrize("coded", ["YWI=", "YWI", "YW I=", "YWI=\\n", "-_-_"])
def test_base64_of_every_writing_is_read(coded: str) -> None:
    text = '{"features": {"feature": {"x": {"bytesList": {"value": ["' + coded + '"]}}}}}'
    assert decode_example(decode_json_example(text))["x"][0] in (b"ab", b"\xfb\xff\xbf")
