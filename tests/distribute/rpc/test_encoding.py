# SPDX-License-Identifier: Apache-2.0
"""What is sent arrives; what is not a message is refused, whatever it is."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from distinput.distribute.rpc.client import decoded, encoded
from distinput.errors import InvalidArgumentError

LEAVES = (
    arrays.arrays(
        st.sampled_from(["i4", "f8", "u1", "?", "c8", "M8[s]", "S3"]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0),
    )
    | st.binary(max_size=5)
    | st.none()
)
NESTS = st.recursive(
    LEAVES,
    lambda inner: st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and a.dtype.kind == "S":
        return same(a.astype(object), b) if a.ndim else a[()] == b
    if isinstance(a, np.ndarray) and a.dtype == object:
        return isinstance(b, np.ndarray) and b.dtype == object and a.shape == b.shape and a.tolist() == b.tolist()
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


@given(NESTS)
def test_a_nest_arrives(value: Any) -> None:
    note, made = decoded(encoded({"call": "x"}, value))
    assert note == {"call": "x"}
    assert same(value, made)


@pytest.mark.parametrize(
    "given, expected",
    [
        (1, np.int32(1)),
        (0.5, np.float32(0.5)),
        (True, np.bool_(True)),
        ("é", "é".encode()),
        ([1, 2], np.array([1, 2], "i4")),
        ([[1.0], [2.0]], np.array([[1], [2]], "f4")),
        ([np.arange(2), np.arange(3)], [np.arange(2), np.arange(3)]),
        ([], []),
        ((1, [(2,)]), (np.int32(1), [(np.int32(2),)])),
    ],
)
def test_numbers_and_lists(given: Any, expected: Any) -> None:
    assert same(expected, decoded(encoded({}, given))[1])


@pytest.mark.parametrize("given", [object(), {1: 2}, np.array([object()]), np.zeros(2, "i4,i4")])
def test_what_cannot_be_sent_is_refused(given: Any) -> None:
    with pytest.raises(TypeError):
        encoded({}, given)


@given(st.binary(max_size=80))
def test_other_bytes_are_no_message(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="this is not a message of a distinput client or server"):
        decoded(data)


@given(st.data())
def test_a_damaged_message_is_a_message_or_refused(data: st.DataObject) -> None:
    whole = bytearray(encoded({"call": "x"}, (np.arange(3), b"text", {"a": [np.float32(1), None]})))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    try:
        note, _ = decoded(bytes(whole[:cut]))
    except InvalidArgumentError:
        return
    assert isinstance(note, dict)


def forged(**changes: Any) -> bytes:
    head = json.dumps({"note": {}, "value": 0, "arrays": [["<i4 2", 8]]} | changes).encode()
    return len(head).to_bytes(8, "little") + head + bytes(8)


def test_a_forged_message_that_is_right_is_taken() -> None:
    assert decoded(forged())[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"arrays": [["<i4 1000000000000", 8]]},
        {"arrays": [["<i4 2", 9]]},
        {"arrays": [["<i4 -2", 8]]},
        {"arrays": [["<i4 2", -8]]},
        {"arrays": [["<i4 2", "8"]]},
        {"arrays": [["|O 1000000", 8]]},
        {"arrays": [["i4,i4 1", 8]]},
        {"arrays": [["nothing 1", 8]]},
        {"arrays": [["<i4 0,99999999999999999999", 0]]},
        {"arrays": [["|S0 1000000000", 0]]},
        {"arrays": 3},
        {"arrays": [[3, 8]]},
        {"note": []},
        {"value": 1},
        {"value": -1},
        {"value": {"set": [0]}},
        {"value": {"list": [0], "tuple": [0]}},
        {"value": {"dict": [["a"]]}},
        {"value": "text"},
        {"value": {"dict": [[[], 0]]}},
    ],
    ids=str,
)
def test_a_forged_message_is_refused_without_asking_for_memory(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="this is no message"):
        decoded(forged(**changes))
