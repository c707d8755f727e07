# SPDX-License-Identifier: Apache-2.0
"""Digests tell values apart, and are the same for the same values however they lie in memory."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns import state
from distinput.columns.column import Dense, Strings
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import column_of
from distinput.columns.state import Digest, common_folder, evenly, texts_of, word_of

DIFFERENT: list[list[Any]] = [
    [b"a", b"b"],
    [b"ab", b""],
    [b"b", b"a"],
    [b"a", b"b", b""],
    [np.int32(1), np.int32(2)],
    [np.int64(1), np.int64(2)],
    [np.int32(2), np.int32(1)],
    [np.array([1, 2]), np.array([3])],
    [np.array([1]), np.array([2, 3])],
    [np.array([[1, 2]]), np.array([[3, 4]])],
    [np.array([[1], [2]]), np.array([[3], [4]])],
    [np.array([b"a", b"b"], object), np.array([b"c"], object)],
    [np.array([b"a"], object), np.array([b"b", b"c"], object)],
    [np.ones((1, 2)), np.ones((2, 1))],
    [np.ones((2, 1)), np.ones((1, 2))],
]


def test_columns_that_differ_have_other_words() -> None:
    words = [word_of(column_of(list(rows))) for rows in DIFFERENT]
    assert len(set(words)) == len(DIFFERENT)
    assert words == [word_of(column_of(list(rows))) for rows in DIFFERENT]
    assert {len(word) for word in words} == {16}


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=6), st.data())
def test_a_view_has_the_word_of_its_copy(texts: list[bytes], data: st.DataObject) -> None:
    rows = np.array(data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=6)), np.int64)
    assert word_of(Strings.of(texts).take(rows)) == word_of(Strings.of([texts[i] for i in rows]))
    numbers = np.arange(len(texts), dtype=np.int16)
    assert word_of(Dense(numbers).take(rows)) == word_of(Dense(numbers[rows].copy()))
    assert word_of(Dense(numbers[::-1])) == word_of(Dense(numbers[::-1].copy()))


def test_spans_have_the_word_of_the_rows_they_lead_to() -> None:
    flat = Dense(np.arange(6))
    scattered = Ragged(flat, np.array([4, 0]), np.array([2, 3]))
    joined = Ragged(Dense(np.array([4, 5, 0, 1, 2])), np.array([0, 2]), np.array([2, 3]))
    assert word_of(scattered) == word_of(joined)


def test_large_arrays_are_hashed_in_pieces_with_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_BYTES", 2048)
    array = np.zeros(10_000, np.uint8)
    word = Digest().array(array).word
    for place in (0, 9_999):
        changed = array.copy()
        changed[place] = 1
        assert Digest().array(changed).word != word
    assert Digest().array(np.zeros(20_000, np.uint8)[::2]).word == word
    assert Digest().array(array.reshape(100, 100)).word != word


@given(st.integers(0, 300), st.integers(2, 40))
def test_places_are_at_equal_distances(size: int, most: int) -> None:
    found = evenly(size, most).tolist()
    assert found == sorted(set(found))
    assert len(found) == min(size, most)
    if size:
        assert (found[0], found[-1]) == (0, size - 1)
        steps = np.diff(found)
        assert not len(steps) or steps.max() - steps.min() <= 1


def test_of_very_long_texts_the_first_and_the_last_one_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert texts_of(Strings.of([b"b", b"", b"a"])) == [b"b", b"", b"a"]
    monkeypatch.setattr(state, "MOST_BYTES", 1024)
    many = [str(i).encode() * 10 for i in range(100)]
    found = texts_of(Strings.of(many))
    assert len(found) < 100
    assert (found[0], found[-1]) == (many[0], many[-1])


@pytest.mark.parametrize(
    "names, folder",
    [
        ([], b""),
        ([b"/a/b"], b"/a/"),
        ([b"/a/b", b"/a/b"], b"/a/"),
        ([b"/a/b", b"/a/b/c"], b"/a/"),
        ([b"/a/x/1", b"/a/xy/1"], b"/a/"),
        ([b"/a/1", b"b/1"], b""),
        ([b"s3://b/x/1", b"s3://b/y/2", b"s3://b/x/3"], b"s3://b/"),
    ],
)
def test_the_folder_that_all_names_share(names: list[bytes], folder: bytes) -> None:
    assert common_folder(names) == folder
    assert common_folder(names[::-1]) == folder


def test_text_that_is_no_utf_8_can_be_hashed() -> None:
    assert Digest().add("\udcff").word != Digest().add("\udcfe").word


def test_words_have_two_letters_for_each_byte() -> None:
    assert [len(Digest(size).add(1).word) for size in (2, 3, 8)] == [4, 6, 16]
