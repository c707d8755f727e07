# SPDX-License-Identifier: Apache-2.0
"""Byte strings over a buffer."""

from threading import Event, Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput.columns.column as module
from distinput.columns.column import Strings
from distinput.columns.regroup import concat_columns


def test_slices_and_orders_of_texts_move_no_data() -> None:
    texts = Strings.of([b"a", b"bb", b"ccc"])
    assert texts.rows(1, 3).take(np.array([1, 0])).data is texts.data


@pytest.mark.parametrize("many", [1, 512])
def test_objects_are_the_same_whoever_makes_them(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(module, "_MANY", many)
    texts = [b"", b"a\0", b"\0b", "\u00e9".encode()]
    column = Strings.of(texts).rows(0, 4, 1)
    assert column.objects().tolist() == texts
    assert column.take(np.array([3, 0, 3])).objects().tolist() == [texts[3], texts[0], texts[3]]
    assert column.reshape((2, 2)).objects().tolist() == [texts[:2], texts[2:]]


@given(st.lists(st.integers(0, 3) | st.integers(2000, 3000), max_size=6), st.integers(1, 2), st.booleans())
def test_long_texts_are_copied_the_same_beside_other_threads(sizes: list[int], many: int, apart: bool) -> None:
    data = np.random.default_rng(len(sizes)).integers(0, 256, 40_000, np.uint8)
    starts = np.cumsum([7 * apart, *sizes])[:-1].astype(np.int64)
    column = Strings(data, starts, np.array(sizes, np.int64))
    want = [data[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True)]
    done = Event()
    other = Thread(target=done.wait)
    other.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_LONG", 1000)
            patch.setattr(module, "_MANY", many)
            assert column.objects().tolist() == want
            assert column.rows(0, len(sizes), 2).objects().tolist() == want[::2]
    finally:
        done.set()
        other.join()


def test_texts_that_came_as_an_array_are_handed_out_as_views_of_it() -> None:
    array = np.array([[b"a", b"b"], [b"c", b"d"]], object)
    column = Strings.of_array(array)
    assert np.shares_memory(column.row(1), array)
    assert column.rows(1, 2).row(0).tolist() == [b"c", b"d"]


def test_texts_that_use_little_of_their_buffer_leave_it() -> None:
    data = np.zeros(100_000, np.uint8)
    far = Strings(data, np.array([0, 99_990]), np.array([5, 5]))
    assert len(far.used().data) == 10
    near = Strings(data, np.array([10, 20]), np.array([10, 10]))
    assert np.shares_memory(near.used().data, data)
    assert len(near.used().data) == 20
    assert list(near.used().values()) == list(near.values())
    assert len(near.rows(0, 0).used().data) == 0


SPANS = st.lists(st.tuples(st.integers(0, 3900), st.integers(0, 100)), max_size=6)


@given(st.lists(st.tuples(SPANS, st.booleans()), min_size=1, max_size=6))
def test_texts_of_many_columns_are_joined_as_one_after_the_other(
    several: list[tuple[list[tuple[int, int]], bool]],
) -> None:
    columns = []
    for number, (spans, pairs) in enumerate(several):
        data = np.random.default_rng(number).integers(0, 256, 4000, np.uint8)
        starts, sizes = np.array([*spans, *spans], np.int64).reshape(-1, 2).T
        columns.append(Strings(data, starts, sizes).reshape((len(spans), 2)).rows(0, len(spans), 1 + pairs))
    joined = concat_columns(columns)
    assert isinstance(joined, Strings)
    assert [row.tolist() for row in joined.values()] == [row.tolist() for each in columns for row in each.values()]
    holding = [each for each in columns if len(each)]
    if len(holding) > 1:  # no more of a buffer is copied than each of them uses
        assert len(joined.data) == sum(len(each.used().data) for each in holding)


@given(st.lists(st.tuples(st.integers(0, 3000), SPANS), min_size=2, max_size=5))
def test_texts_of_parts_of_one_buffer_are_joined_where_they_are_unless_most_of_it_is_not_theirs(
    parts: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    whole = np.random.default_rng(1).integers(0, 256, 7000, np.uint8)
    columns = [Strings(whole[at : at + 4000], *np.array(spans, np.int64).reshape(-1, 2).T) for at, spans in parts]
    joined = concat_columns(columns)
    assert isinstance(joined, Strings)
    assert list(joined.values()) == [text for column in columns for text in column.values()]
    spans = [(at + start, at + start + size) for at, inside in parts for start, size in inside]
    if sum(1 for _, inside in parts if inside) > 1:
        width = max(stop for _, stop in spans) - min(start for start, _ in spans)
        used = sum(stop - start for start, stop in spans)
        near = width <= 2 * used + 1024 and len(whole) <= 4 * used + 1024
        assert np.shares_memory(joined.data, whole) == (near and width > 0)


@pytest.mark.parametrize("used", [100, 3000])
def test_few_texts_do_not_hold_a_large_buffer(used: int) -> None:
    whole = np.arange(10_000).astype(np.uint8)
    columns = [Strings(whole[at : at + used], np.zeros(1, int), np.array([used])) for at in (0, used)]
    joined = concat_columns(columns)
    assert isinstance(joined, Strings)
    assert list(joined.values()) == [whole[:used].tobytes(), whole[used : 2 * used].tobytes()]
    assert np.shares_memory(joined.data, whole) == (used == 3000)
