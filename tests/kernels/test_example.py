# SPDX-License-Identifier: Apache-2.0
"""Examples: what is told of each odd way to write one."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.kernels import example_messages, example_values, machine, protobuf


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def entry(key: bytes, feature: bytes) -> bytes:
    return field(1, field(1, key) + field(2, feature))


def message(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def numbers(*values: int) -> bytes:
    return field(3, field(1, bytes(values)))


def parse(contents: list[bytes], key: bytes, kind: int) -> Any:
    """The values of one feature of each message; what went wrong, if it did."""
    data = np.frombuffer(b"".join(contents), np.uint8)
    lengths = np.array([len(each) for each in contents])
    starts = np.cumsum(lengths) - lengths
    n = len(contents)
    kinds, list_starts, list_lengths = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(n, np.int64)
    keys, key_offsets = np.frombuffer(key, np.uint8), np.array([0, len(key)])
    only_locate, nowhere = np.array([0, -1, 0, 0]), np.empty(0, np.uint8)
    found = example_messages.locate_features.compiled()(
        data, starts, lengths, keys, key_offsets, only_locate, kinds, list_starts, list_lengths, nowhere
    )
    if found[0] != example_values.OK:
        return found
    counts = np.empty(n, np.int64)
    counted = example_values.count_values.compiled()(data, kind, kinds, list_starts, list_lengths, counts)
    if counted != (example_values.OK, -1):
        return counted
    offsets = np.concatenate(([0], np.cumsum(counts)))
    size = int(offsets[-1])
    if kind == example_values.BYTES:
        outs = [np.empty(size, np.int64), np.empty(size, np.int64)]
        status = example_values.fill_bytes_spans.compiled()(data, kinds, list_starts, list_lengths, offsets, *outs)
        values = [data[a : a + n].tobytes() for a, n in zip(*outs, strict=True)]
    elif kind == example_values.FLOAT:
        floats = np.empty(size, np.float32)
        status = example_values.fill_floats.compiled()(data, kinds, list_starts, list_lengths, offsets, floats)
        values = floats.tolist()
    else:
        integers = np.empty(size, np.int64)
        status = example_values.fill_int64s.compiled()(data, kinds, list_starts, list_lengths, offsets, integers)
        values = integers.tolist()
    if status != (example_values.OK, -1):
        return status
    made = [values[a:b] for a, b in pairwise(offsets)]
    if kind != example_values.BYTES:
        assert on_the_way(data, starts, lengths, keys, key_offsets, kind) == made
    return made


def on_the_way(data: Any, starts: Any, lengths: Any, keys: Any, key_offsets: Any, kind: int) -> list[list[Any]]:
    """The same values, decoded as soon as they are found."""
    n, dtype = len(starts), np.float32 if kind == example_values.FLOAT else np.int64
    out = np.empty(16 * n + 8000, np.uint8)
    kinds, list_starts, list_lengths = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(n, np.int64)
    columns = np.array([kind, example_values.ANY, 0, 8000])
    status, missing = example_messages.locate_features.compiled()(
        data, starts, lengths, keys, key_offsets, columns, kinds, list_starts, list_lengths, out
    )
    assert (status, missing) == (example_values.OK, np.count_nonzero(kinds == example_values.MISSING))
    begins, counts = out[: 16 * n].view(np.int64).reshape(2, n)
    return [out[16 * n :].view(dtype)[a : a + size].tolist() for a, size in zip(begins, counts, strict=True)]


# Written by protobuf 7 from {"age": [29, 300, -1], "name": [b"Ada", b""], "score": [0.5, -2.0]}.
WRITTEN = bytes.fromhex(
    "0a440a180a0361676512111a0f0a0d1dac02ffffffffffffffffff010a110a046e616d6512090a070a034164610a000a150a0573636f7265120c120a0a080000003f000000c0"
)


def test_a_message_of_protobuf() -> None:
    assert parse([WRITTEN], b"age", example_values.INT64) == [[29, 300, -1]]
    assert parse([WRITTEN], b"name", example_values.BYTES) == [[b"Ada", b""]]
    assert parse([WRITTEN, b"", WRITTEN], b"score", example_values.FLOAT) == [[0.5, -2.0], [], [0.5, -2.0]]
    assert parse([WRITTEN], b"ag", example_values.INT64) == [[]]


@pytest.mark.parametrize(
    "content, expected",
    [
        (message(), []),
        (message(entry(b"k", b"")), []),  # a feature with no kind
        (message(entry(b"k", field(3, b""))), []),  # an empty list
        (message(entry(b"k", numbers(1)), entry(b"j", numbers(5)), entry(b"k", numbers(2, 3))), [2, 3]),
        (message(entry(b"k", numbers(1)), entry(b"k", b"")), []),
        (message(entry(b"k", numbers(1))) + message(entry(b"k", numbers(2))), [2]),
        (message(entry(b"k", field(1, field(1, b"x")) + numbers(4))), [4]),  # the last kind counts
        (message(entry(b"k", field(3, b"\x08\x01" + field(1, b"\x02\x03") + b"\x08\x04"))), [1, 2, 3, 4]),
        (message(field(1, field(2, numbers(9)) + field(1, b"k"))), [9]),  # the value before the key
        (message(field(1, field(1, b"j") + field(2, numbers(9)) + field(1, b"k"))), [9]),  # the last key counts
        (field(9, b"?") + b"\x18\x01" + message(b"\x35ABCD" + entry(b"k", b"\x39ABCDEFGH" + numbers(7))), [7]),
        (message(entry(b"k", field(3, field(1, b"\xff" * 9 + b"\x01")))), [-1]),
    ],
)
def test_odd_messages_that_are_right(content: bytes, expected: list[int]) -> None:
    assert parse([content], b"k", example_values.INT64) == [expected]


@pytest.mark.parametrize(
    "content",
    [
        b"\x0a",
        b"\x0a\x05\x0a",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of 2**64 - 1
        b"\x00\x01",  # field number 0
        b"\x0b\x0c",  # a group
        b"\x80" * 11 + b"\x01",
        message(entry(b"k", field(3, field(1, b"\x80")))),
        message(entry(b"k", field(3, field(1, b"\x80" * 10 + b"\x01")))),
        message(entry(b"k", b"\x1a\x05")),
        message(b"\x0a\x7f"),
        b"\x19ABCDEFG",
        b"\x1dABC",
    ],
)
def test_malformed_messages_are_told(content: bytes) -> None:
    good = message(entry(b"k", numbers(1)))
    assert parse([good, content, good], b"k", example_values.INT64) == (example_values.MALFORMED, 1)


def test_lists_in_pieces_and_other_kinds_are_told() -> None:
    good = message(entry(b"k", numbers(1)))
    pieces = message(entry(b"k", numbers(1) + numbers(2)))
    assert parse([good, pieces], b"k", example_values.INT64) == (example_values.SPLIT, 1)
    twice = message(field(1, field(1, b"k") + field(2, numbers(1)) + field(2, numbers(2))))
    assert parse([twice], b"k", example_values.INT64) == (example_values.SPLIT, 0)
    assert parse([pieces, twice], b"other", example_values.INT64) == [[], []]
    assert parse([good, message(entry(b"k", field(2, b"")))], b"k", example_values.INT64) == (
        example_values.WRONG_KIND,
        1,
    )
    three_bytes = message(entry(b"k", field(2, field(1, b"abc"))))
    assert parse([three_bytes], b"k", example_values.FLOAT) == (example_values.MALFORMED, 0)


def test_a_missing_feature_leaves_its_default() -> None:
    contents = [message(entry(b"k", numbers(1, 2))), message()]
    data, lengths = np.frombuffer(b"".join(contents), np.uint8), np.array([len(each) for each in contents])
    kinds, list_starts, list_lengths = np.empty(2, np.uint8), np.empty(2, np.int64), np.empty(2, np.int64)
    example_messages.locate_features.compiled()(
        data,
        np.cumsum(lengths) - lengths,
        lengths,
        np.frombuffer(b"k", np.uint8),
        np.array([0, 1]),
        np.array([0, -1, 0, 0]),
        kinds,
        list_starts,
        list_lengths,
        np.empty(0, np.uint8),
    )
    assert kinds.tolist() == [3, 0]
    out = np.full(4, 7)
    fill = example_values.fill_int64s.compiled()
    assert fill(data, kinds, list_starts, list_lengths, np.array([0, 2, 4]), out) == (example_values.OK, -1)
    assert out.tolist() == [1, 2, 7, 7]
    assert fill(data, kinds, list_starts, list_lengths, np.array([0, 3, 4]), out) == (example_values.WRONG_COUNT, 0)


def test_hundreds_of_keys_that_look_alike() -> None:
    keys = [b"f" * (i % 40) + bytes([65 + i % 26, 65 + i // 26]) for i in range(600)]
    content = b"".join(entry(key, numbers(i % 100)) for i, key in enumerate(keys))
    size = len(content)
    content = b"\x0a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + content
    data = np.frombuffer(content, np.uint8)
    wanted = keys[::-2]
    key_offsets = np.concatenate(([0], np.cumsum([len(key) for key in wanted])))
    kinds, starts, lengths = np.empty(300, np.uint8), np.empty(300, np.int64), np.empty(300, np.int64)
    one = np.array([0]), np.array([data.size])
    joined = np.frombuffer(b"".join(wanted), np.uint8)
    only_locate = np.array([(0, -1, row, 0) for row in range(300)]).reshape(-1)
    more = only_locate, kinds, starts, lengths, np.empty(0, np.uint8)
    assert example_messages.locate_features.compiled()(data, *one, joined, key_offsets, *more)[0] == example_values.OK
    assert np.all(kinds == example_values.INT64)
    assert [int(data[start + 2]) for start in starts] == [i % 100 for i in range(599, -1, -2)]


KEYS = [b"", b"k", b"no", b"key", b"more keys", b"a key of more than sixteen bytes"]


def outcome(locate: Any, contents: list[bytes], data: bytes, wanted: list[bytes]) -> Any:
    """What `locate_features` finds, or what it says is wrong; the contents lie at the beginning of `data`."""
    lengths = np.array([len(each) for each in contents])
    n, k = len(contents), len(wanted)
    columns = np.array([(0, -1, row, 0) for row in range(k)]).reshape(-1)
    kinds, lists = np.empty(k * n, np.uint8), np.empty((2, k * n), np.int64)
    status = locate(
        np.frombuffer(data, np.uint8),
        np.cumsum(lengths) - lengths,
        lengths,
        np.frombuffer(b"".join(wanted), np.uint8),
        np.cumsum([0, *map(len, wanted)]),
        columns,
        kinds,
        *lists,
        np.empty(0, np.uint8),
    )
    return status, kinds.tolist(), lists.tolist() if status[0] == example_values.OK else status


def same_outcome(contents: list[bytes], behind: bytes = b"") -> Any:
    """That of the compiled kernel, which must be that of the reference."""
    return same_outcome_of(example_messages.locate_features.compiled(), contents, behind)


def same_outcome_of(locate: Any, contents: list[bytes], behind: bytes) -> Any:
    """That of `locate`, which must be that of the reference."""
    data = b"".join(contents) + behind
    wanted = KEYS[::2]
    found = outcome(locate, contents, data, wanted)
    expected = outcome(example_messages.locate_features.reference, contents, data, wanted)
    assert (found if found[0][0] == example_values.OK else found[0]) == (
        expected if expected[0][0] == example_values.OK else expected[0]
    )
    return found


def long_field(number: int, content: bytes) -> bytes:
    """A field with a length of two bytes, whether it needs them or not."""
    return bytes([number << 3 | 2, len(content) & 127 | 128, len(content) >> 7]) + content


def message_of(entries: bytes) -> bytes:
    """Entries of up to 16383 bytes."""
    return long_field(1, entries)


@pytest.mark.parametrize("key", KEYS)
def test_entries_that_change_size(key: bytes) -> None:
    sizes = [3, 3, 0, 1, 60, 2, 90, 3, 100, 130, 4, 300, 300, 5, 301, 0, 0, 125, 126, 127, 128, 7]
    contents = []
    for size in sizes:
        value = b"\x08\x01" * (size // 2)
        if size < 128 - 10 - len(key):
            contents.append(message_of(field(1, field(1, key) + field(2, field(3, value)))))
        else:
            contents.append(message_of(long_field(1, field(1, key) + long_field(2, long_field(3, value)))))
    status, _, (_, lengths) = same_outcome(contents)
    place = KEYS[::2].index(key) * len(sizes) if key in KEYS[::2] else None
    assert status == (example_values.OK, (3 if place is None else 2) * len(sizes))
    if place is not None:
        assert lengths[place : place + len(sizes)] == [size // 2 * 2 for size in sizes]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("longer", [-2, 0, 3])
def test_entries_that_look_the_same_but_for_a_byte(key: bytes, longer: int) -> None:
    good = message_of(entry(key, numbers(1, 2, 3)) + entry(b"k", numbers(9)))
    other = message_of(entry(key, numbers(*range(3 + longer))) + entry(b"k", numbers(9)))
    told = set()
    for place in range(len(other)):
        for more in (1, 2, 3, 4, 5, 64, 127, 128, 253, 254, 255):
            odd = other[:place] + bytes([(other[place] + more) & 255]) + other[place + 1 :]
            told.add(same_outcome([good, good, odd, good])[0][0])
    assert {example_values.OK, example_values.MALFORMED} <= told


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [3, 200])
def test_entries_cut_short_behind_what_looks_the_same(key: bytes, size: int) -> None:
    good = message_of(long_field(1, field(1, key) + long_field(2, long_field(3, long_field(1, bytes(size))))))
    if size < 100:
        good = message_of(entry(key, numbers(*range(size))))
    for stop in range(3, len(good)):
        # The message is as long as it says, and what its entry lacks lies behind it.
        cut = good[:1] + bytes([stop - 3 & 127 | 128, stop - 3 >> 7]) + good[3:stop]
        status = same_outcome([good, good, cut], good[stop:])[0]
        assert status[0] == (example_values.MALFORMED if stop > 3 else example_values.OK)
        with np.errstate(over="ignore"):  # as plain Python each access is checked
            same_outcome_of(example_messages.locate_features.source, [good, good, cut], b"")


def test_lengths_with_more_bytes_than_they_need() -> None:
    for widths in range(8):
        fields = [long_field if widths >> bit & 1 else field for bit in range(3)]
        for size in range(1, 6):
            entries = [
                fields[0](1, field(1, b"no") + fields[1](2, fields[2](3, b"\x08\x01" * n))) for n in (2, 2, size, 2)
            ]
            contents = [message_of(each) for each in entries]
            assert same_outcome(contents)[0][0] == example_values.OK
            # What stands before the first list, but for the length of the entry and two more bytes, or one.
            alike = bytearray(contents[0][: len(contents[0]) - 4] + contents[2][len(contents[2]) - 2 * size :])
            alike[1] = len(alike) - 3 | 128
            alike[4] += 2 * size - 4
            for place, other in combinations_with_replacement(range(5, len(alike) - 2 * size), 2):
                odd = bytearray(alike)
                for each in {place, other}:
                    odd[each] = (odd[each] + 2 * size - 4) & 255
                same_outcome([contents[0], contents[1], bytes(odd)], bytes(300))


@given(st.integers(0, 2**64 - 1))
def test_the_bits_of_a_number_are_joined_with_an_instruction_and_without(word: int) -> None:
    number = np.uint64(word)
    assert machine.extract_bits(number, ~protobuf.HIGHS) == protobuf.joined(number)


@pytest.mark.parametrize(
    "content", [b"\xff" * 10 + b"\x01", b"\x05" + b"\x80" * 30 + b"\x00", b"\x05\x80", b"\x80", b""]
)
def test_packed_integers_are_counted_alike_however_long_they_are(content: bytes) -> None:
    """Those that are too long are counted, and told when they are read."""
    data = np.frombuffer(field(1, content), np.uint8)
    counted = []
    for count in (example_values.count_values.reference, example_values.count_values.compiled()):
        counts = np.zeros(1, np.int64)
        kinds, starts = np.array([example_values.INT64], np.uint8), np.zeros(1, np.int64)
        status = count(data, example_values.INT64, kinds, starts, np.array([data.size]), counts)
        counted.append((status, counts.tolist() if status[0] == example_values.OK else []))
    assert counted[0] == counted[1]
