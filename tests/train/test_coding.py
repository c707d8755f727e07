# SPDX-License-Identifier: Apache-2.0
"""Values as JSON and arrays."""

import collections
import json
from typing import Any

import numpy as np
import pytest

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.train.coding import Aside, array_of, checked_entries, coded, decoded, is_value


def again(value: Any, *, inline: bool) -> Any:
    aside = Aside()
    code = json.loads(json.dumps(coded(value, aside, "x", inline=inline), allow_nan=False))
    return decoded(code, aside.arrays.__getitem__)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        {1: "a", (2, 3): [b"\0", 1 << 200, -0.0, float("-inf"), 2 - 1j], None: {True, 3}},
        collections.OrderedDict(b=frozenset([1]), a=collections.deque([1, 2])),
        np.float32(3), np.str_("ü"), np.datetime64("2020-01-01"), "\ud800", (), [],
    ],
)  # fmt: skip
def test_values_come_back(value: Any, inline: bool) -> None:
    found = again(value, inline=inline)
    assert found == value
    assert isinstance(value, np.str_) or type(found) is type(value)


@pytest.mark.parametrize("inline", [False, True])
def test_containers_inside_of_others_are_of_their_kinds(inline: bool) -> None:
    value = {
        "recent": collections.deque([1, 2, 3], 3),
        "seen": collections.Counter(a=2),
        "by": [collections.defaultdict(int)],
    }
    found = again(value, inline=inline)
    assert found == value
    found["recent"].append(4)
    found["by"][0]["b"] += 1
    assert list(found["recent"]) == [2, 3, 4]
    assert list(found["seen"].elements()) == ["a", "a"]


@pytest.mark.parametrize("inline", [False, True])
def test_arrays_of_every_kind_come_back(inline: bool) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    record = np.array([(1, b"x")], dtype=[("a", ">i4"), ("b", "S3")])
    for array in (
        np.arange(4).astype(ml_dtypes.bfloat16), np.ones(2, ml_dtypes.float8_e5m2), np.zeros((0, 3), "S0"), np.array(2.5),
        record, np.array(["a", b"b\0", None, ""], object), np.array(["ü", ""], np.dtypes.StringDType()), np.zeros((2, 0)),
        np.array(["ü", None], np.dtypes.StringDType(na_object=None)),
    ):  # fmt: skip
        found = again(array, inline=inline)
        assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())
        assert found.flags.writeable


def test_what_cannot_be_saved_is_named() -> None:
    for value, says in (
        ({"a": [object()]}, "x/a/0: holds a object"),
        ([collections.defaultdict(lambda: 3)], "x/0: holds a defaultdict whose default_factory cannot be saved"),
        (np.array([{}], object), "x: an array of objects holds a dict"),
        (np.ma.masked_array([1], [True]), "x: a masked array"),
    ):
        with pytest.raises(TypeError, match=says):
            coded(value, Aside(), "x")


@pytest.mark.parametrize(
    "forged",
    [
        [],
        {},
        {"unknown": 3},
        {"dict": [], "factory": []},
        {"dict": [], "factory": "eval"},
        {"deque": [], "maxlen": -1},
        {"deque": [], "maxlen": ""},
        {"deque": [], "maxlen": 1 << 63},
        {"list": [], "of": 5},
        {"set": [{"tuple": [{"list": []}]}]},
        {"dict": [[{"jax": {"dtype": "<i8", "shape": [0], "data": ""}}, 1]]},
        {"strings": {"lengths": 1}, "dtype": "object", "shape": [0]},
    ],
)
def test_what_is_no_code_is_damage(forged: Any) -> None:
    header = {"save_counter": 1, "run_calls": 1, "arrays": {}, "entries": {"a": {"kind": "plain", "value": forged}}}
    with pytest.raises(DataLossError, match="the checkpoint is damaged"):
        checked_entries(header, "ckpt")


@pytest.mark.parametrize(
    "header", [{"save_counter": 1 << 63}, {"run_calls": -1}, {"entries": {"a": {"kind": "x", "values": []}}}]
)
def test_a_header_that_nobody_saved_is_damage(header: Any) -> None:
    whole = {"save_counter": 1, "run_calls": 1, "arrays": {}, "entries": {}}
    assert checked_entries(whole, "ckpt") == {}
    with pytest.raises(DataLossError, match="the checkpoint is damaged"):
        checked_entries({**whole, **header}, "ckpt")


@pytest.mark.parametrize(
    "saved",
    [
        {"dtype": "object", "shape": [1], "data": "AAAAAAAAAAA="},
        {"dtype": "[('a', '<i4')]", "shape": [2], "data": "AAAA"},
        {"dtype": "[('a', '<i4')]", "shape": [2], "data": ""},
        {"dtype": "object", "shape": [1], "strings": {"lengths": [1], "kinds": [2], "data": [255]}},
    ],
)
def test_values_that_make_no_array_are_damage(saved: Any) -> None:
    if "strings" in saved:
        saved["strings"] = {
            name: {"dtype": "|u1", "shape": [1], "array": np.array(part, np.uint8)}
            for name, part in saved["strings"].items()
        }
    with pytest.raises(DataLossError, match=r"the checkpoint is damaged: .* is no array"):
        array_of(saved, lambda array: array)


@pytest.mark.parametrize("error", [TypeError, InvalidArgumentError])
def test_an_unknown_dtype_says_what_to_import(error: type[Exception]) -> None:
    with pytest.raises(error, match="dtype float3, which NumPy does not know here; import the package"):
        array_of({"dtype": "float3", "shape": [1], "array": "a"}, lambda name: np.zeros(1, "u1"))


def test_names_set_aside_are_never_the_same() -> None:
    aside = Aside()
    assert [aside.put("a", np.zeros(1)) for _ in range(3)] == ["a", "a~2", "a~3"]


def test_what_is_saved_whole() -> None:
    assert all(map(is_value, (None, 3, "a", [1, (2, {"a": {3}})], {})))
    assert not any(map(is_value, (np.zeros(1), [np.zeros(1)], object(), {"a": print})))
