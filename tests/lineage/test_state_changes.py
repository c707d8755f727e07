# SPDX-License-Identifier: Apache-2.0
"""What differs between states is enough to make the later one of the earlier one."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.kernels.protobuf import varint_bytes
from distinput.lineage.history import changed, joined, numbers_of, read_varint, taken_apart
from tests.depth import cases

numbers = st.integers(-(1 << 70), 1 << 70)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=cases(15, 1000))
@given(values)
def test_a_value_is_taken_apart_and_joined(value: Any) -> None:
    assert joined(*taken_apart(value)) == value


@given(st.lists(st.tuples(numbers, numbers), max_size=6))
def test_changes_make_the_later_numbers(pairs: list[tuple[int, int]]) -> None:
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    change = changed(before, after)
    assert numbers_of(before, change) == after
    assert (change == b"") == (before == after)


@given(st.integers(0, 1 << 80), st.binary(max_size=3))
def test_a_number_ends_where_the_next_one_begins(value: int, rest: bytes) -> None:
    data = varint_bytes(value)
    assert read_varint(data + rest, 0) == (value, len(data))
    assert all(read_varint(data[:cut], 0) is None for cut in range(len(data)))


def test_positions_that_grow_a_little_take_a_few_bytes() -> None:
    before = {"input": {"position": {"byte": 1 << 40, "row": 10_000}, "skip": 0}, "skip": 17}
    after = {"input": {"position": {"byte": (1 << 40) + 900, "row": 10_008}, "skip": 0}, "skip": 17}
    assert len(changed(taken_apart(before)[1], taken_apart(after)[1])) == 5
