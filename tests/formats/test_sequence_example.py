# SPDX-License-Identifier: Apache-2.0
"""SequenceExamples: messages that TensorFlow 2.21 wrote, and what it reads of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.formats import sequence_example
from distinput.formats.example_encoding import encode_example, encode_sequence_example
from distinput.formats.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
)
from distinput.formats.sequence_example import (
    SequenceExampleParser,
    parse_sequence_example,
    parse_single_sequence_example,
)
from distinput.kernels.sequence_messages import locate_steps
from distinput.values.ragged_tensor import RaggedTensor
from tests.depth import cases
from tests.formats.reading import cut_short, flipped

A = bytes.fromhex(
    "0a190a0b0a02696412051a030a01070a0a0a016e12050a030a016112310a180a017712130a050a030a01700a080a060a01710a01720a000a15"
    "0a017812100a061a040a0201020a061a040a020304"
)
B = bytes.fromhex("0a0d0a0b0a02696412051a030a010812160a050a017712000a0d0a017812080a061a040a020506")
C = encode_sequence_example({"id": 9}, {"w": [[b"z"]]})

CONTEXT: dict[str, Feature] = {"id": FixedLenFeature([], "int64"), "n": FixedLenFeature([], "string", "none")}
STEPS: dict[str, Feature] = {"x": FixedLenSequenceFeature([2], "int64"), "w": VarLenFeature("string")}
OPTIONAL: dict[str, Feature] = {**STEPS, "x": FixedLenSequenceFeature([2], "int64", allow_missing=True)}
RAGGED: dict[str, Feature] = {"x": RaggedFeature("int64"), "words": RaggedFeature("string", value_key="w")}


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, RaggedTensor):
        return value.to_list()
    return value.tolist() if hasattr(value, "tolist") else value


def test_the_messages_are_written_as_tensorflow_writes_them() -> None:
    lists = {"x": [[1, 2], [3, 4]], "w": [[b"p"], [b"q", b"r"], []]}
    assert encode_sequence_example({"id": 7, "n": b"a"}, lists) == A
    assert encode_sequence_example({"id": 8}, {"x": [[5, 6]], "w": []}) == B
    assert encode_sequence_example({}, {}) == b""


@pytest.mark.parametrize(
    "message, features, expected",
    [
        (A, STEPS, ({"id": 7, "n": b"a"}, {"w": [[b"p"], [b"q", b"r"], []], "x": [[1, 2], [3, 4]]})),
        (B, STEPS, ({"id": 8, "n": b"none"}, {"w": [], "x": [[5, 6]]})),
        (C, OPTIONAL, ({"id": 9, "n": b"none"}, {"w": [[b"z"]], "x": []})),
        (A, RAGGED, ({"id": 7, "n": b"a"}, {"words": [[b"p"], [b"q", b"r"], []], "x": [[1, 2], [3, 4]]})),
        (C, RAGGED, ({"id": 9, "n": b"none"}, {"words": [[b"z"]], "x": []})),
        (A, None, ({"id": 7, "n": b"a"}, {})),
    ],
)
def test_one_message_is_parsed_as_by_tensorflow(message: bytes, features: Any, expected: Any) -> None:
    assert plain(parse_single_sequence_example(message, CONTEXT, features)) == expected


def test_a_batch_is_parsed_as_by_tensorflow() -> None:
    context, sequences, lengths = parse_sequence_example([A, B, C], CONTEXT, OPTIONAL)
    assert plain(context) == {"id": [7, 8, 9], "n": [b"a", b"none", b"none"]}
    assert plain(lengths) == {"x": [2, 1, 0]}
    assert sequences["x"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]], [[0, 0], [0, 0]]]
    assert sequences["w"].to_list() == [[[b"p"], [b"q", b"r"], []], [], [[b"z"]]]
    _, ragged, none = parse_sequence_example([A, B, C], None, RAGGED)
    assert ragged["x"].to_list() == [[[1, 2], [3, 4]], [[5, 6]], []]
    assert none == {}
    _, empty, no_lengths = parse_sequence_example([], None, STEPS)
    assert empty["x"].shape == (0, 0, 2)
    assert no_lengths["x"].tolist() == []


def test_steps_without_values() -> None:
    message = encode_sequence_example({}, {"y": [[1], None, [2]]})
    assert plain(parse_single_sequence_example(message, None, {"y": VarLenFeature("int64")})) == (
        {},
        {"y": [[1], [], [2]]},
    )
    with pytest.raises(
        InvalidArgumentError, match=r"Feature list: y, Index: 0, step 1.*values size: 0 but output shape: \[\]"
    ):
        parse_single_sequence_example(message, None, {"y": FixedLenSequenceFeature([], "int64")})


def test_the_last_list_of_a_repeated_key_counts_and_pieces_follow_one_another() -> None:
    first, second = (encode_sequence_example({}, {"x": steps}) for steps in ([[1, 2]], [[3, 4], [5, 6]]))
    features = {"x": STEPS["x"]}
    assert plain(parse_single_sequence_example(first + second, None, features))[1] == {"x": [[3, 4], [5, 6]]}
    scattered = encode_example({"id": 1}) + second + encode_example({"n": "b"}) + b"\x1a\x03abc"
    context, steps = plain(parse_single_sequence_example(scattered, CONTEXT, features))
    assert (context, steps) == ({"id": 1, "n": b"b"}, {"x": [[3, 4], [5, 6]]})


@pytest.mark.parametrize(
    "messages, features, says",
    [
        ([A, C], STEPS, "Feature list 'x' is required but could not be found. Index: 1; with allow_missing=True"),
        (
            [A],
            {"x": FixedLenSequenceFeature([2], "string")},
            "Feature list: x, Index: 0, step 0.  Data types don't match. E",
        ),
        (
            [B, A],
            {"x": VarLenFeature("float32")},
            "Index: 0, step 0.  Data types don't match. Expected type: f",
        ),
        ([B, A], {"x": FixedLenSequenceFeature([3], "int64")}, "Index: 0, step 0.  Number of int64 values != expected"),
        ([A, A[:-1]], STEPS, "Could not parse sequence example input, value: .* .Index: 1."),
    ],
)
def test_a_message_that_does_not_fit_is_named(messages: list[bytes], features: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        parse_sequence_example(messages, None, features)


@pytest.mark.parametrize(
    "context, steps, says",
    [
        (None, None, "both context_features and sequence_features are empty"),
        (
            {"a": STEPS["x"]},
            None,
            "feature 'a' of context_features must be a FixedLenFeature, VarLenFeature or R.*got a Fixed",
        ),
        (None, {"a": CONTEXT["id"]}, "feature 'a' of sequence_features must be a FixedLenSequenceFeature, VarLen"),
        (
            None,
            {"a": FixedLenSequenceFeature([], "int64", True, 3)},
            "feature 'a' of sequence_features must have no default_value",
        ),
    ],
)
def test_features_are_checked(context: Any, steps: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"parse_sequence_example: {says}"):
        SequenceExampleParser(context, steps)


def test_one_message_is_bytes() -> None:
    with pytest.raises(InvalidArgumentError, match="serialized must be one message as bytes, got"):
        parse_single_sequence_example([A, B], CONTEXT, STEPS)  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(-5, 2**40), max_size=3), max_size=4), st.integers(0, 10**9))
def test_what_is_written_is_read(steps: list[list[int]], number: int) -> None:
    message = encode_sequence_example({"id": number}, {"x": steps})
    context, found = parse_single_sequence_example(message, {"id": CONTEXT["id"]}, {"x": VarLenFeature("int64")})
    assert context["id"] == number
    assert found["x"].to_list() == steps


def test_damage_is_an_error_or_other_values() -> None:
    tried = [*cut_short(A), *flipped(A)]
    parser = SequenceExampleParser(CONTEXT, OPTIONAL)
    for damaged in tried:
        try:
            context, steps = parser(Strings.of([damaged]))
        except InvalidArgumentError:
            continue
        assert isinstance(context["id"].row(0), np.int64)
        assert steps["x"].row(0).shape[1:] == (2,)
    assert len(tried) > 500


def parsed(parser: SequenceExampleParser, contents: list[bytes], locate: Any) -> Any:
    """The columns as plain values, or the error, where `locate` finds the steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_example, "locate_steps", locate)
        try:
            columns = parser(Strings.of(contents))
        except InvalidArgumentError as error:
            return str(error)
    return [
        {key: [plain(column.row(i)) for i in range(len(contents))] for key, column in each.items()} for each in columns
    ]


ANY_STEPS: dict[str, Feature] = {**OPTIONAL, "again": RaggedFeature("int64", value_key="x")}
HOSTILE = [*cut_short(A), *flipped(A)]


@settings(max_examples=cases(25, 1000), deadline=None)
@given(
    st.lists(st.sampled_from([A, B, C, A + B, A[:26]]) | st.sampled_from(HOSTILE) | st.binary(max_size=60), max_size=4)
)
def test_the_compiled_search_finds_what_the_readable_one_finds(contents: list[bytes]) -> None:
    parser = SequenceExampleParser(None, ANY_STEPS)
    found = [parsed(parser, contents, locate) for locate in (locate_steps.reference, locate_steps.compiled())]
    assert found[0] == found[1]


def test_every_hostile_message_is_judged_alike() -> None:
    parser = SequenceExampleParser(None, ANY_STEPS)
    for content in HOSTILE:
        assert parsed(parser, [A, content], locate_steps.reference) == parsed(
            parser, [A, content], locate_steps.compiled()
        )


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_the_room_grows_to_what_is_found(lengths: list[int]) -> None:
    parser = SequenceExampleParser(None, {"x": VarLenFeature("int64"), "y": VarLenFeature("int64")})
    for length in lengths:
        message = encode_sequence_example({}, {"x": [[each] for each in range(length)], "y": [[]] * (60 - length)})
        _, found = parser(Strings.of([message, message]))
        for i in range(2):
            assert found["x"].row(i).to_list() == [[each] for each in range(length)]
            assert len(found["y"].row(i)) == 60 - length


def test_long_steps_are_read() -> None:
    words = [b"x" * 200, b"y"]
    message = encode_sequence_example({}, {"w": [words, [b"z"] * 90]})
    assert plain(parse_single_sequence_example(message, None, {"w": STEPS["w"]}))[1] == {"w": [words, [b"z"] * 90]}


@pytest.mark.parametrize("serialized", [b"abc", 5, [1, 2], ["a"], np.array(b"abc", object)])
def test_what_is_no_batch_of_messages_is_refused(serialized: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="parse_sequence_example: serialized must be messages as bytes"):
        parse_sequence_example(serialized, {"x": VarLenFeature("int64")})
