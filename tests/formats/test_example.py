# SPDX-License-Identifier: Apache-2.0
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import Block
from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.formats.example import ExampleParser, parse_example, parse_examples, parse_single_example
from distinput.formats.example_encoding import encode_example, encode_examples
from distinput.formats.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    features_spec,
)
from distinput.formats.sequence_example import parse_sequence_example
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import TensorSpec
from tests.formats.reading import cut_short, flipped, plain
from tests.traced_memory import peak_memory

# Messages by hand, as the wire format says: tag, length, content.


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def part(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def message(*entries: bytes) -> bytes:
    return part(1, b"".join([part(1, entry) for entry in entries]))


def entry(key: bytes, feature: bytes) -> bytes:
    return part(1, key) + part(2, feature)


def ints(*values: int) -> bytes:
    return part(3, part(1, b"".join(map(varint, values))))


def floats(*values: float) -> bytes:
    return part(2, part(1, struct.pack(f"<{len(values)}f", *values)))


def texts(*values: bytes) -> bytes:
    return part(1, b"".join([part(1, value) for value in values]))


INTS = {"a": VarLenFeature("int64")}


def parsed(serialized: bytes, features: Any = INTS) -> Any:
    return plain(parse_single_example(serialized, features))


def test_encoding_is_protobufs() -> None:
    want = message(entry(b"f", floats(0.5)), entry(b"i", ints(1, 300, 2**64 - 1)), entry(b"s", texts(b"x", b"")))
    assert encode_example({"s": [b"x", ""], "i": [1, 300, -1], "f": 0.5}) == want
    assert encode_example({}) == part(1, b"")


def test_kinds_of_values() -> None:
    values: dict[str, Any] = {
        "a": True,
        "b": np.int8(-3),
        "c": np.ones((2, 2), "f8"),
        "d": "text",
        "e": np.array([b"x\0"], object),
        "f": [],
    }
    want = {
        "a": VarLenFeature("int64"),
        "b": VarLenFeature("int64"),
        "c": FixedLenFeature([2, 2], "float32"),
        "d": FixedLenFeature([], "string"),
        "e": VarLenFeature("string"),
        "f": VarLenFeature("float32"),
    }
    assert parsed(encode_example(values), want) == {
        "a": [1], "b": [-3], "c": [[1, 1], [1, 1]], "d": b"text", "e": [b"x\0"], "f": []
    }  # fmt: skip
    for wrong in (1j, np.uint64(2**63), [b"a", 1], {"x": 1}):
        with pytest.raises(InvalidArgumentError, match="'a'"):
            encode_example({"a": wrong})


def test_one_message_is_parsed_on_its_own() -> None:
    # TensorFlow takes a scalar, too; here it was "object of type 'int' has no len()".
    message = encode_example({"a": [1, 2]})
    for one in (message, np.array(message, object), np.bytes_(message)):
        assert plain(parse_example(one, {"a": FixedLenFeature([2], "int64")})) == {"a": [1, 2]}
        assert plain(parse_example(one, INTS)) == {"a": [1, 2]}
    for wrong in ("text", [["a"]], np.array([[message]], object), 3, None):
        with pytest.raises(InvalidArgumentError, match="parse_example: serialized must be messages as bytes, got"):
            parse_example(wrong, INTS)


def test_messages_of_any_iterable_are_parsed_and_stay_where_they_are() -> None:
    """An array of bytes of one length takes as much memory as the longest one, for each."""
    messages = [encode_example({"a": n}) for n in range(1000)] + [encode_example({"a": 1000, "b": b"x" * 1_000_000})]
    features = {"a": FixedLenFeature([], "int64")}
    for several in (messages, iter(messages), dict.fromkeys(messages).keys()):
        made: dict[str, Any] = {}
        assert (
            peak_memory(lambda several=several, made=made: made.update(parse_example(several, features))) < 100_000_000
        )
        assert made["a"].tolist() == list(range(1001))
    for wrong in (b"", {messages[0]: 1}):
        with pytest.raises(InvalidArgumentError, match="parse_sequence_example: serialized must be messages as bytes"):
            parse_sequence_example(wrong, {"a": features["a"]})


lists = st.tuples(
    st.lists(st.integers(-(2**63), 2**63 - 1)), st.lists(st.binary()), st.lists(st.floats(width=32, allow_nan=False))
)


@given(st.lists(st.tuples(lists, st.integers(0, 9), st.binary())))
def test_round_trip(rows: list[tuple[tuple[list[int], list[bytes], list[float]], int, bytes]]) -> None:
    batch = [
        encode_example(
            {"i": np.array(i, np.int64), "s": np.array(s, object), "f": np.array(f, np.float32), "n": n, "t": t}
        )
        for (i, s, f), n, t in rows
    ]
    features: dict[str, Feature] = {
        "i": VarLenFeature("int64"),
        "s": VarLenFeature("string"),
        "f": RaggedFeature("float32"),
        "n": FixedLenFeature([1], "int64"),
        "t": FixedLenFeature((), "string"),
        "no": FixedLenFeature((), "int64", 5),
    }
    columns = parse_examples(Strings.of(batch), features)
    assert {key: [plain(value) for value in column.values()] for key, column in columns.items()} == {
        "i": [row[0][0] for row in rows],
        "s": [row[0][1] for row in rows],
        "f": [row[0][2] for row in rows],
        "n": [[row[1]] for row in rows],
        "t": [row[2] for row in rows],
        "no": [5] * len(rows),
    }
    for column, leaf in zip(columns.values(), features_spec(features).nest.values(), strict=True):
        assert column.dtype == leaf.dtype


class _Afterwards(ExampleParser):
    """Finds all features before it decodes any."""

    def _decoded(self, messages: Any) -> None:
        return None


@given(st.data())
def test_decoding_on_the_way_is_decoding_afterwards(data: st.DataObject) -> None:
    kinds = {
        "int64": st.integers(-(2**63), 2**63 - 1),
        "float32": st.floats(width=32, allow_nan=False),
        "string": st.binary(),
    }
    features: dict[str, Feature] = {}
    written: dict[str, st.SearchStrategy[Any]] = {}
    for key in data.draw(st.lists(st.text(max_size=20), min_size=1, max_size=4, unique=True)):
        dtype, size = data.draw(st.sampled_from(sorted(kinds))), data.draw(st.integers(0, 3))
        default = data.draw(st.sampled_from([None, b"-" if dtype == "string" else 7]))
        features[key] = FixedLenFeature([size], dtype, default) if size else VarLenFeature(dtype)
        lists = st.lists(kinds[dtype], min_size=size, max_size=size or 3)
        other = st.sampled_from([[], [b"x"], [1], [0.5, 0.5]])
        written[key] = lists if data.draw(st.integers(0, 5)) else lists | other
    rows = data.draw(st.lists(st.fixed_dictionaries({}, optional=written), max_size=6))
    batch = Strings.of([encode_example(row) for row in rows])

    def outcome(parser: ExampleParser) -> Any:
        try:
            return {key: [plain(value) for value in column.values()] for key, column in parser(batch).items()}
        except InvalidArgumentError as error:
            return str(error)

    assert outcome(ExampleParser(features)) == outcome(_Afterwards(features))


@pytest.mark.parametrize("longest", [20, 40, 150, 400, 3000])
def test_strings_and_lists_of_any_length(longest: int) -> None:
    """Those that do not fit in the room for them are found all the same, and so are the next ones."""
    random = np.random.default_rng(longest)
    features: dict[str, Feature] = {
        "letters": VarLenFeature("string"),
        "name": FixedLenFeature([], "string"),
        "pair": FixedLenFeature([2], "string", "-"),
        "words": VarLenFeature("string"),
        "tags": VarLenFeature("int64"),
        "weights": RaggedFeature("float32"),
    }
    parser, afterwards = ExampleParser(features), _Afterwards(features)
    for count in (0, 1, 3, 200, 200, 7):
        batch = []
        for size in random.integers(0, longest, count).tolist():
            written: dict[str, Any] = {"name": bytes(size), "weights": random.random(size // 4).astype(np.float32)}
            if size % 3:
                written |= {"pair": [b"a" * (size % 40), b""], "tags": random.integers(-5, 5000, size // 8)}
                written |= {"letters": [b"x"] * (size % 4), "words": [b"word"] * (size % 5)}
            batch.append(encode_example(written))
        found, known = parser(Strings.of(batch)), afterwards(Strings.of(batch))
        for key in features:
            assert [plain(value) for value in found[key].values()] == [plain(value) for value in known[key].values()]
        assert [column.dtype for column in found.values()] == [column.dtype for column in known.values()]


def test_short_strings_lie_side_by_side_and_do_not_hold_the_messages() -> None:
    messages = Strings.of([encode_example({"a": b"%d" % i, "b": bytes(500)}) for i in range(1000)])
    features: dict[str, Feature] = {key: FixedLenFeature([], "string") for key in "ab"}
    short, long = parse_examples(messages, features).values()
    assert isinstance(short, Strings)
    assert isinstance(long, Strings)
    assert not np.shares_memory(short.data, messages.data)
    assert bytes(short.data[: int(short.sizes.sum())]) == b"".join([b"%d" % i for i in range(1000)])
    assert np.shares_memory(long.data, messages.data)  # a copy of those would cost more than it saves


def test_strided_messages() -> None:
    batch = Strings.of([encode_example({"a": [i]}) for i in range(10)]).rows(1, 10, 3)
    assert [plain(value) for value in parse_examples(batch, INTS)["a"].values()] == [[1], [4], [7]]


def test_numbers_that_are_not_packed() -> None:
    unpacked = part(3, b"\x08\x01\x08\xac\x02")
    assert parsed(message(entry(b"a", unpacked))) == {"a": [1, 300]}
    unpacked = part(2, b"\x0d" + struct.pack("<f", 0.5))
    assert parsed(message(entry(b"a", unpacked)), {"a": VarLenFeature("float32")}) == {"a": [0.5]}


def test_unknown_fields_are_passed_over() -> None:
    known = entry(b"a", part(7, b"zz") + ints(1) + b"\x48\x05")
    assert parsed(part(9, b"q") + message(known + part(3, b"y")) + b"\x51" + b"8" * 8) == {"a": [1]}


def test_order_does_not_matter() -> None:
    assert parsed(message(part(2, ints(4)) + part(1, b"a"))) == {"a": [4]}


def test_of_a_key_written_twice_the_last_counts() -> None:
    assert parsed(message(entry(b"a", ints(1, 2)), entry(b"a", ints(3)))) == {"a": [3]}
    assert parsed(message(entry(b"a", ints(1))) + message(entry(b"a", ints(2)))) == {"a": [2]}


def test_of_several_kinds_the_last_counts() -> None:
    assert parsed(message(entry(b"a", floats(1) + ints(2)))) == {"a": [2]}


def test_lists_in_pieces_are_joined() -> None:
    pieces = message(entry(b"a", ints(1) + ints(2, 3)), entry(b"b", ints(9)))
    assert parsed(pieces) == {"a": [1, 2, 3]}
    assert parsed(message(part(1, b"a") + part(2, ints(1)) + part(2, ints(2)))) == {"a": [1, 2]}
    assert parsed(message(part(1, b"a") + part(2, ints(1) + floats(1)) + part(2, ints(2)))) == {"a": [2]}
    batch = Strings.of([message(entry(b"a", ints(7))), pieces, message(entry(b"a", ints(8))), pieces])
    assert [plain(value) for value in parse_examples(batch, INTS)["a"].values()] == [[7], [1, 2, 3], [8], [1, 2, 3]]


def test_a_feature_without_a_kind_is_missing() -> None:
    assert parsed(message(entry(b"a", b"")), {"a": FixedLenFeature([], "int64", 3)}) == {"a": 3}
    assert parsed(message(entry(b"a", b""))) == {"a": []}


def test_missing_features_have_their_defaults() -> None:
    features: dict[str, Feature] = {
        "i": FixedLenFeature([2], "int64", [7, 8]),
        "f": FixedLenFeature([2, 1], "float32", 0.5),
        "s": FixedLenFeature([2], "string", ["x", b"yz"]),
        "e": FixedLenFeature([], "string", ""),
    }
    full = encode_example({"i": [1, 2], "f": [1.0, 2.0], "s": [b"a", b"b"], "e": b"c"})
    columns = parse_examples(Strings.of([full, b"", full]), features)
    assert [plain(columns["i"].row(k)) for k in (1, 2)] == [[7, 8], [1, 2]]
    assert [plain(columns["f"].row(k)) for k in (1, 2)] == [[[0.5], [0.5]], [[1], [2]]]
    assert [plain(columns["s"].row(k)) for k in (1, 2)] == [[b"x", b"yz"], [b"a", b"b"]]
    assert list(columns["e"].values()) == [b"c", b"", b"c"]
    with pytest.raises(InvalidArgumentError, match=r"scalar or of shape \[2\], got shape \[3\]"):
        FixedLenFeature([2], "int64", [1, 2, 3])


def test_messages_are_parsed_in_batches() -> None:
    batch = [
        encode_example({"a": [1, 2], "b": 1.5, "c": [b"x"]}),
        encode_example({"a": [], "b": 2.5, "c": [b"y", b"z"]}),
    ]
    features: dict[str, Feature] = {
        "a": VarLenFeature("int64"),
        "b": FixedLenFeature([], "float32"),
        "c": FixedLenSequenceFeature([], "string", allow_missing=True, default_value="-"),
        "again": RaggedFeature("int64", value_key="a"),
    }
    found = parse_example(np.array(batch, object), features)
    assert isinstance(found["a"], RaggedTensor)
    assert found["a"].to_list() == found["again"].to_list() == [[1, 2], []]
    assert found["a"].indices.tolist() == [[0, 0], [0, 1]]
    assert found["a"].dense_shape.tolist() == [2, 2]
    assert found["b"].tolist() == [1.5, 2.5]
    assert found["c"].tolist() == [[b"x", b"-"], [b"y", b"z"]]
    assert parse_example([], features)["b"].shape == (0,)


def test_sequences_of_items_with_a_shape() -> None:
    feature = FixedLenSequenceFeature([2], "int64", allow_missing=True)
    assert feature.spec == TensorSpec((None, 2), np.int64)
    assert parsed(encode_example({"a": [1, 2, 3, 4]}), {"a": feature}) == {"a": [[1, 2], [3, 4]]}
    assert parse_single_example(b"", {"a": feature})["a"].shape == (0, 2)
    with pytest.raises(InvalidArgumentError, match=r"Key: a, Index: 0.*Values size: 3 but output shape: \[-1, 2\]"):
        parsed(encode_example({"a": [1, 2, 3]}), {"a": feature})
    with pytest.raises(InvalidArgumentError, match="allow_missing must be True to parse an Example"):
        parsed(b"", {"a": FixedLenSequenceFeature([2], "int64")})


@pytest.mark.parametrize(
    "value, feature, errors",
    [
        (
            {},
            FixedLenFeature([], "int64"),
            ["Feature: a (data type: int64) is required but could not be found. Index: 1"],
        ),
        (
            {"a": 1.0},
            FixedLenFeature([], "int64"),
            ["Key: a, Index: 1.  Data types don't match. Data type: float but expected type: int64"],
        ),
        (
            {"a": 1.0},
            VarLenFeature("string"),
            ["Key: a, Index: 1.  Data types don't match. Data type: float but expected type: string"],
        ),
        (
            {"a": [1, 2]},
            FixedLenFeature([3], "int64"),
            ["Key: a, Index: 1.  Can't parse serialized Example", "number of int64", "size: 2 but output shape: [3]"],
        ),
        (
            {"a": b"x"},
            FixedLenFeature([2], "string"),
            ["Key: a, Index: 1.  Can't parse serialized Example", "number of string", "size: 1 but output shape: [2]"],
        ),
    ],
)
def test_errors_are_those_of_tensorflow(value: Any, feature: Any, errors: list[str]) -> None:
    good: Any = b"" if feature.dtype == object else 1
    if isinstance(feature, FixedLenFeature) and feature.shape:
        good = [good] * feature.shape[0]
    with pytest.raises(InvalidArgumentError) as caught:
        parse_examples(Strings.of([encode_example({"a": good}), encode_example(value)]), {"a": feature})
    assert all(error in str(caught.value) for error in errors)


def test_what_is_no_message() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Could not parse example input, value: b'\\xff.*Index: 1"):
        parse_examples(Strings.of([b"", b"\xff"]), INTS)
    with pytest.raises(InvalidArgumentError, match="features was empty"):
        parse_examples(Strings.of([b""]), {})
    with pytest.raises(InvalidArgumentError, match="Invalid feature 'a'"):
        parse_examples(Strings.of([b""]), {"a": TensorSpec([], "int64")})  # type: ignore[dict-item]
    for wrong in ("float64", "int32", "bool"):
        with pytest.raises(InvalidArgumentError, match="a feature is int64, float32 or string"):
            VarLenFeature(wrong)
    with pytest.raises(InvalidArgumentError, match="all dimensions of the shape must be known"):
        FixedLenFeature([None], "int64")  # type: ignore[list-item]


def test_damage_is_an_error_or_other_values() -> None:
    features: dict[str, Feature] = {
        "i": VarLenFeature("int64"),
        "f": VarLenFeature("float32"),
        "s": FixedLenFeature([2], "string", ""),
    }
    whole = encode_example({"i": [1, 300, -1], "f": [0.5, 1.5], "s": [b"ab", b"c"]})
    for damaged in (*cut_short(whole), *flipped(whole)):
        with suppress(InvalidArgumentError):
            assert parse_single_example(damaged, features)["s"].shape == (2,)


def test_a_length_beyond_the_message() -> None:
    huge = b"\x0a" + varint(2**60)
    for damaged in (
        huge,
        part(1, huge),
        message(b"\x0a" + varint(2**60) + b"a"),
        message(entry(b"a", b"\x1a" + varint(2**63))),
    ):
        with pytest.raises(InvalidArgumentError, match="Could not parse example input"):
            parsed(damaged)


def test_blocks_are_encoded() -> None:
    elements = [{"x": np.arange(i + 1), "y": b"%d" % i} for i in range(3)]
    block = Block.of_elements(structure_of(elements[0]), elements)
    columns = parse_examples(encode_examples(block), {"x": VarLenFeature("int64"), "y": FixedLenFeature([], "string")})
    assert [plain(value) for value in columns["x"].values()] == [[0], [0, 1], [0, 1, 2]]
    assert list(columns["y"].values()) == [b"0", b"1", b"2"]


def test_a_feature_without_values() -> None:
    features: dict[str, Feature] = {"a": FixedLenFeature([0, 2], "float32"), "b": FixedLenFeature([], "int64")}
    batch = [encode_example({"a": np.empty((0, 2), np.float32), "b": i}) for i in range(3)]
    columns = parse_examples(Strings.of(batch), features)
    assert [np.shape(value) for value in columns["a"].values()] == [(0, 2)] * 3
    assert [plain(value) for value in columns["b"].values()] == [0, 1, 2]
    assert len(parse_examples(Strings.of([]), features)["a"]) == 0


@pytest.mark.parametrize(
    "value, says",
    [
        (1e300, r"feature 'a': 1e\+300 is too large for float32, the only floats of an Example"),
        ([np.inf, -1e39], "feature 'a': -1e.39 is too large for float32"),
        ([1, "x"], "an Example holds bytes, floating-point numbers and integers, got"),
        ([["x"], [1.5]], "an Example holds bytes, floating-point numbers and integers, got"),
    ],
)
def test_values_that_an_example_would_change_are_refused(value: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        encode_example({"a": value})


def test_infinite_numbers_and_texts_in_arrays_are_kept() -> None:
    message = encode_example({"f": [np.inf, 1.0], "t": [np.array(["a"]), np.array(["b"])]})
    made = parse_single_example(message, {"f": FixedLenFeature([2], "float32"), "t": FixedLenFeature([2], "string")})
    assert [made["f"].tolist(), list(made["t"])] == [[np.inf, 1.0], [b"a", b"b"]]


@pytest.mark.parametrize("serialized", ["text", None, 5, [b""]])
def test_what_is_no_message_is_refused(serialized: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="parse_single_example: serialized must be one message as bytes"):
        parse_single_example(serialized, {"x": VarLenFeature("int64")})
