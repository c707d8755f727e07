# SPDX-License-Identifier: Apache-2.0
"""Values in states: through JSON and back they are what they were, and damaged ones are refused."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distinput.errors import StateError
from distinput.ops.scan import decode_value, encode_value
from distinput.values.leaves import as_leaf


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bytes):
        return type(other) is bytes and one == other
    a, b = np.asarray(one), np.asarray(other)
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist())


NUMBERS = [np.int8, np.uint64, np.bool_, ">i4"]
SHAPES = hnp.array_shapes(min_dims=0, min_side=0, max_side=3)
LEAVES = st.one_of(
    st.binary(max_size=4),
    hnp.arrays(st.sampled_from(NUMBERS), SHAPES).map(as_leaf),
    st.floats(allow_nan=False, width=32).map(np.float32),
    st.lists(st.binary(max_size=3), max_size=4).map(lambda items: np.array(items, object)),
)


@given(LEAVES, LEAVES)
def test_values_come_back_as_they_were(one: Any, other: Any) -> None:
    value = {"a": one, "b": (other,)}
    found = decode_value(json.loads(json.dumps(encode_value(value))), value)
    assert same(one, found["a"])
    assert same(other, found["b"][0])


def test_a_decoded_array_can_be_written_to() -> None:
    array = decode_value(encode_value(np.zeros(3)), np.zeros(3))
    array[0] = 1
    assert array.tolist() == [1, 0, 0]


def test_shapes_may_differ_from_those_of_the_first_value() -> None:
    assert decode_value(encode_value(np.arange(5)), np.arange(2)).tolist() == [0, 1, 2, 3, 4]


GOOD = encode_value(np.arange(3, dtype=np.int32))[0]


@pytest.mark.parametrize(
    "coded",
    [
        [],
        [GOOD, GOOD],
        [{}],
        [None],
        [{**GOOD, "dtype": "<i8"}],
        [{**GOOD, "dtype": "<f4"}],
        [{**GOOD, "dtype": "nothing"}],
        [{**GOOD, "shape": [4]}],
        [{**GOOD, "data": "x"}],
        [{**GOOD, "data": 7}],
        [{"bytes": "YQ=="}],
        [{"strings": ["YQ=="], "shape": [1]}],
        [{"strings": ["YQ=="], "shape": [2]}],
    ],
)
def test_damaged_values_are_refused(coded: list[Any]) -> None:
    with pytest.raises(StateError, match="scan: the carried value in the state is damaged"):
        decode_value(coded, np.zeros(2, np.int32))
