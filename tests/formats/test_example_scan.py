# SPDX-License-Identifier: Apache-2.0
"""Features that are found in all messages at once are those that decoding each of them finds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import field
from distinput.inspect.examples import ExampleScan, FeatureValues, decoded_features
from tests.depth import cases

lists = (
    st.none()
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4)
    | st.lists(st.floats(width=32), max_size=4)
    | st.lists(st.binary(max_size=5), max_size=3)
)
keys = st.sampled_from(["", "a", "b", "a key of more than sixteen bytes", "\u00e9"])
messages = st.dictionaries(keys, lists, max_size=4).map(di.io.encode_example)
unusual = st.sampled_from(
    [
        b"",
        field(
            1, field(1, field(1, b"a") + field(2, field(3, field(1, b"\x01"))) + field(2, field(3, field(1, b"\x02"))))
        ),
        field(1, field(1, field(1, b"\xff") + field(2, field(3, field(1, b"\x01"))))),
        field(1, field(1, field(2, field(1, field(1, b"x"))))) + b"\x18\x01",
    ]
)


def plain(found: dict[str, FeatureValues]) -> dict[str, Any]:
    """What is comparable; a feature without a kind in all messages is only there."""
    return {
        key: (each.kinds.tolist(), each.counts.tolist(), {kind: array.tobytes() for kind, array in each.values.items()})
        for key, each in found.items()
        if each.kinds.any()
    }


@settings(max_examples=cases(40, 1000))
@given(st.lists(st.lists(messages | messages | messages | unusual, max_size=6), max_size=3))
def test_all_at_once_is_one_after_the_other(blocks: list[list[bytes]]) -> None:
    scan = ExampleScan()
    seen = set[str]()
    for block in blocks:
        expected, found = decoded_features(Strings.of(block)), scan(Strings.of(block))
        seen |= set(expected)
        assert plain(found) == plain(expected)
        assert set(expected) <= set(found) <= seen


@pytest.mark.parametrize(
    "broken", [b"\x0a", b"text", field(1, field(1, field(1, b"n") + field(2, field(3, field(1, b"\x80")))))]
)
def test_the_message_that_is_none_is_named(broken: bytes) -> None:
    good = di.io.encode_example({"n": 1})
    for scan in (ExampleScan(), decoded_features):
        with pytest.raises(InvalidArgumentError) as raised:
            scan(Strings.of([good, good, broken]))
        assert raised.value.row == 2  # type: ignore[attr-defined]


def test_many_keys_are_looked_up_one_by_one() -> None:
    serialized = Strings.of([di.io.encode_example({f"key {number}": number}) for number in range(1200)])
    found = ExampleScan()(serialized)
    assert len(found) == 1200
    assert np.flatnonzero(found["key 1100"].counts).tolist() == [1100]
