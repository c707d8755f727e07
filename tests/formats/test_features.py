# SPDX-License-Identifier: Apache-2.0
"""Declarations of features say what a record looks like, and refuse what could not be parsed."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    as_feature_array,
    checked_features,
    features_spec,
    message_key,
)


def test_the_spec_of_a_record_is_that_of_its_features() -> None:
    spec = features_spec(
        {
            "a": FixedLenFeature([2, 3], "float32"),
            "b": FixedLenFeature((), str),
            "c": FixedLenSequenceFeature([2], np.int64, allow_missing=True),
            "d": VarLenFeature("string"),
            "e": RaggedFeature(np.int64, "other"),
            "f": FixedLenFeature(4, np.int64),
        }
    )
    assert spec.nest == {
        "a": di.TensorSpec((2, 3), "float32"),
        "b": di.TensorSpec((), "string"),
        "c": di.TensorSpec((None, 2), "int64"),
        "d": di.TensorSpec((None,), "string"),
        "e": di.TensorSpec((None,), "int64"),
        "f": di.TensorSpec((4,), "int64"),
    }


@pytest.mark.parametrize(
    "shape, default, wanted",
    [
        ([2, 2], 7, [[7, 7], [7, 7]]),
        ([2, 2], [1, 2, 3, 4], [[1, 2], [3, 4]]),
        ([2, 2], [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ([2], [5], [5, 5]),
        ([], 3, 3),
        ([], [3], 3),
        ([0], [], []),
        ([2], None, None),
    ],
)
def test_defaults_take_the_shape_of_the_feature(shape: list[int], default: Any, wanted: Any) -> None:
    feature = FixedLenFeature(shape, np.int64, default)
    made = feature.default()
    if wanted is None:
        assert made is None
    else:
        assert made is not None
        assert (made.dtype, made.shape, made.tolist()) == (np.int64, tuple(shape), wanted)
    assert feature.size == int(np.prod(shape))


@pytest.mark.parametrize(
    "dtype, default",
    [
        ("int64", 1.5),
        ("int64", "x"),
        ("int64", True),
        ("string", 3),
        ("string", [1.5]),
        ("float32", b"x"),
        ("float32", 1j),
    ],
)
def test_a_default_of_another_type_is_refused(dtype: str, default: Any) -> None:
    # 1.5 became 1, and a feature of strings had the number 3 among its values.
    with pytest.raises(InvalidArgumentError, match=f"default_value must be .* for a feature of {dtype}, got"):
        FixedLenFeature([], dtype, default)
    message = [di.io.encode_example({})]
    with pytest.raises(InvalidArgumentError, match=f"for a feature of {dtype}, got"):
        di.io.parse_example(message, {"a": FixedLenSequenceFeature([], dtype, True, default)})


@pytest.mark.parametrize("default", [1, np.uint8(1), np.array([1.0]), np.float64(1)])
def test_a_default_of_floats_may_be_any_number(default: Any) -> None:
    assert FixedLenFeature([], "float32", default).default() == np.float32(1)


@pytest.mark.parametrize("default", ["é", "é".encode(), np.array("é")])
def test_defaults_of_texts_are_bytes(default: Any) -> None:
    made = FixedLenFeature([2], "string", default).default()
    assert made is not None
    assert made.tolist() == ["é".encode()] * 2
    assert as_feature_array(["a", b"b"], np.dtype(object)).tolist() == [b"a", b"b"]


@pytest.mark.parametrize("default", [[1, 2, 3], [], [[1, 2], [3, 4]]])
def test_defaults_of_another_size_are_refused(default: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"default_value must be a scalar or of shape \[2\], got shape"):
        FixedLenFeature([2], np.int64, default)


@pytest.mark.parametrize("kind", [FixedLenFeature, lambda s, d: FixedLenSequenceFeature(s, d, allow_missing=True)])
@pytest.mark.parametrize("shape", [None, [None], [2, -1], -3, di.TensorShape(None), "ab"])
def test_unknown_dimensions_are_refused(kind: Any, shape: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="all dimensions of the shape must be known, got"):
        kind(shape, np.int64)


@pytest.mark.parametrize("dtype", [np.int32, "float64", bool])
def test_other_dtypes_are_refused(dtype: Any) -> None:
    for make in (VarLenFeature, RaggedFeature, lambda d: FixedLenFeature([], d)):
        with pytest.raises(InvalidArgumentError, match="a feature is int64, float32 or string, got"):
            make(dtype)


def test_a_sequence_that_must_be_there_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="allow_missing must be True to parse an Example, got False for 'a'"):
        checked_features({"a": FixedLenSequenceFeature([], np.int64)})


@pytest.mark.parametrize(
    "features, message",
    [
        ({}, "features was empty"),
        ({"a": 3}, "Invalid feature 'a': expected .*, got a int"),
        ({"a": VarLenFeature}, "got a type"),
    ],
)
def test_what_is_no_feature_is_refused(features: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        checked_features(features)


def test_a_ragged_feature_may_have_another_key_in_messages() -> None:
    assert message_key("é", VarLenFeature(np.int64)) == "é".encode()
    assert message_key("a", RaggedFeature(np.int64, "b")) == b"b"
    assert message_key("a", RaggedFeature(np.int64)) == b"a"


@pytest.mark.parametrize("dtype, value", [("int64", 2**63), ("float32", 1e39)])
def test_a_default_that_does_not_fit_is_refused(dtype: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"default_value (must fit into int64|is too large)"):
        di.io.FixedLenFeature([], dtype, value)
    assert np.isinf(di.io.FixedLenFeature([], "float32", np.inf).default())


@pytest.mark.parametrize("value", [[1, 2], []])
def test_what_fills_up_sequences_is_one_value(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="default_value must be a scalar"):
        _ = di.io.FixedLenSequenceFeature([], "int64", True, value).padding
