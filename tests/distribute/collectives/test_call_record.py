# SPDX-License-Identifier: Apache-2.0
"""The record that workers exchange before a call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.collectives.channel import (
    ABOUT,
    INLINE,
    RECORD,
    CallRecord,
    decode_text,
    encode_text,
    list_by_rank,
)


@given(
    st.integers(0, 2**60),
    st.text(max_size=200),
    st.text(max_size=ABOUT // 4),
    st.binary(max_size=INLINE),
    st.booleans(),
)
def test_a_record_comes_back(number: int, same: str, about: str, data: bytes, refused: bool) -> None:
    call = CallRecord(number, same, about, len(data), refused, data)
    record = call.encode()
    assert len(record) == RECORD
    back = CallRecord.decode(record)
    assert (back.number, back.about, back.nbytes, back.refused, back.inline) == (
        number,
        about,
        len(data),
        refused,
        data,
    )
    if len(same.encode()) <= 128:
        assert back.same == same


def test_long_calls_that_differ_at_the_end_stay_different() -> None:
    one, other = (CallRecord.decode(CallRecord(0, "all_gather " + "1," * 100 + end).encode()) for end in "23")
    assert one.same != other.same


def test_a_record_of_another_version() -> None:
    record = CallRecord(0, "barrier").encode()
    record[2] += 1
    with pytest.raises(ValueError, match="the same version of distinput"):
        CallRecord.decode(record)


def test_a_text_comes_back_up_to_its_limit() -> None:
    assert decode_text(encode_text("rank 1: Größe")) == "rank 1: Größe"
    assert decode_text(encode_text("é" * 600)) == "é" * 512
    assert len(encode_text("")) == len(encode_text("a" * 5000)) == 1024


def test_equal_neighbours_share_a_line() -> None:
    assert list_by_rank(["a"]) == "  rank 0: a"
    assert list_by_rank(["a", "b", "b", "a"]) == "  rank 0: a\n  ranks 1-2: b\n  rank 3: a"
