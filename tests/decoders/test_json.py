# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.decoders.json import decode_json
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.testing.elements import matches


def test_values_have_the_types_that_they_have() -> None:
    found = decode_json(
        b'{"a": 1, "b": 1.5, "c": true, "d": "x", "e": {"f": [1, 2.5]}, "g": ["x", "yz"], "h": [[1, 2], [3, 4]]}'
    )
    assert matches(
        found,
        {
            "a": np.int64(1),
            "b": np.float64(1.5),
            "c": np.True_,
            "d": b"x",
            "e": {"f": np.array([1, 2.5])},
            "g": np.array([b"x", b"yz"], object),
            "h": np.array([[1, 2], [3, 4]]),
        },
    )


@pytest.mark.parametrize(
    "text, error, says",
    [
        ('{"a": null}', InvalidArgumentError, r"\$\.a is None, which has no type"),
        ('{"a": 18446744073709551616}', InvalidArgumentError, "has no type"),
        ('{"a": []}', InvalidArgumentError, r"\$\.a is empty"),
        ('{"a": [1, "x"]}', InvalidArgumentError, "not a rectangle"),
        ('{"a": [[1], [2, 3]]}', InvalidArgumentError, "not a rectangle"),
        ('{"a": [{}]}', InvalidArgumentError, "not a rectangle"),
        ('{"a": [["x"], ["y", "z"]]}', InvalidArgumentError, "not a rectangle"),
        ('{"a": ["x", ["y"]]}', InvalidArgumentError, "not a rectangle"),
        ('{"a": ' + "[" * 70 + '"x"' + "]" * 70 + "}", InvalidArgumentError, "not a rectangle"),
        ("{", DataLossError, "it is no JSON"),
        ("[" * 100_000, DataLossError, "it is no JSON"),
        ("\xff", DataLossError, "it is no JSON"),
    ],
)
def test_what_has_no_type_is_refused(text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        decode_json(text.encode("latin-1"))


def test_a_spec_names_keys_and_types() -> None:
    spec = {
        "a": di.TensorSpec([], "float32"),
        "b": di.TensorSpec([None], "int32"),
        "c": {"d": di.TensorSpec([], "string")},
    }
    found = decode_json(b'{"a": 1, "b": [], "c": {"d": "x", "e": null}, "f": [null]}', spec)
    assert matches(found, {"a": np.float32(1), "b": np.array([], np.int32), "c": {"d": b"x"}})


@pytest.mark.parametrize(
    "value, spec, says",
    [
        ({}, {"a": di.TensorSpec([], "int64")}, r"\$ has no key 'a'"),
        ([], {"a": di.TensorSpec([], "int64")}, r"\$ must be an object"),
        ({"a": 1.5}, {"a": di.TensorSpec([], "int64")}, r"\$\.a must be int64, got 1\.5"),
        ({"a": True}, {"a": di.TensorSpec([], "int64")}, "must be int64, got True"),
        ({"a": 300}, {"a": di.TensorSpec([], "uint8")}, "must be uint8"),
        ({"a": 3}, {"a": di.TensorSpec([], "string")}, "must be text, got 3"),
        ({"a": [["x"], ["y", "z"]]}, {"a": di.TensorSpec([None], "string")}, "got lists of several lengths"),
        ({"a": 1e300}, {"a": di.TensorSpec([], "float32")}, "must be float32: overflow"),
        ({"a": [1.0, 70000]}, {"a": di.TensorSpec([None], "float16")}, "must be float16: overflow"),
        ({"a": [1, 2]}, {"a": di.TensorSpec([3], "int64")}, r"must be TensorSpec\(shape=\(3,\)"),
        ({"a": [[1], [2, 3]]}, {"a": di.TensorSpec([None, None], "int64")}, "must be int64"),
        ({"a": 1}, {"a": 3}, "a spec must be a dict or a TensorSpec, got 3"),
    ],
)
def test_what_is_not_as_the_spec_says_is_refused(value: Any, spec: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        decode_json(json.dumps(value).encode(), spec)


@pytest.mark.parametrize(
    "text", ["[9007199254740993, 1.5]", "[9223372036854775809, -1]", "[[0.5, 9007199254740993], [1, 2]]"]
)
def test_no_integer_is_rounded_for_its_neighbours(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not a rectangle of values of one type; state its type"):
        decode_json(b'{"x": ' + text.encode() + b"}")
    assert decode_json(b'{"x": [9007199254740992, 0.5]}')["x"].tolist() == [9007199254740992.0, 0.5]
