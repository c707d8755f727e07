# SPDX-License-Identifier: Apache-2.0
"""Specs go through JSON and come back the same, and nothing that is read is executed."""

import json
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.values.spec import DatasetSpec, RaggedTensorSpec, Spec, TensorSpec
from distinput.values.spec_json import dtype_json, dtype_of_json, spec_json, spec_of_json

T = TensorSpec


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Record:
    a: Any


SPECS = [
    T([], "int64"),
    T(None, bytes, name="t"),
    T([2, None, 0], "complex64"),
    RaggedTensorSpec([None, None, 3], "float32", 1),
    RaggedTensorSpec([None], "float32", 0),
    (),
    (T([], ">i4"), None, [T([], bool)]),
    {"b": T([], "M8[10s]"), "a": {}, 3: T([], "f2"), (1, b"x", None): T([], "u1")},
    OrderedDict(b=T([], "i8"), a=T([], "i8")),
    Point(T([], "i4"), {"z": T([], "f4")}),
]


def through_json(spec: Spec, given: Spec | None = None) -> Spec:
    return spec_of_json(json.loads(json.dumps(spec_json(spec, "save"))), given)


@pytest.mark.parametrize("nest", SPECS, ids=str)
def test_a_spec_comes_back(nest: Any) -> None:
    spec = Spec.of(nest)
    back = through_json(spec)
    assert back == spec
    assert str(back.nest) == str(spec.nest)
    assert through_json(spec, spec) == spec


@pytest.mark.parametrize("name", ["bool", "<i2", ">f8", "<c16", "<M8[ns]", ">m8[3h]", "|V3", "string"])
def test_a_dtype_comes_back(name: str) -> None:
    dtype = np.dtype(object if name == "string" else name)
    assert dtype_of_json(dtype_json(dtype)) == dtype
    fields = np.dtype([("a", dtype if name != "string" else "i1"), ("b", "<f4", (2, 3))])
    assert dtype_of_json(json.loads(json.dumps(dtype_json(fields)))) == fields


@pytest.mark.parametrize("value", ["O", "|O", [["a", "|O"]], "nonsense!", 3, [["a"]], None])
def test_what_is_no_dtype_of_values_is_refused(value: Any) -> None:
    with pytest.raises(DataLossError, match="is not a dtype"):
        dtype_of_json(value)


def test_a_dtype_that_nobody_has_imported_is_named() -> None:
    with pytest.raises(NotFoundError, match="NumPy knows no dtype 'bfloat99'; import the package that defines it"):
        dtype_of_json("bfloat99")


def test_a_namedtuple_that_is_not_imported_is_made_once() -> None:
    kept = json.loads(json.dumps(spec_json(Spec.of(Point(T([], "i4"), T([], "f4"))), "save")))
    for module in ("nowhere", "tests.core.test_spec_json"):
        kept["module"] = module
        kept["class"] = "Elsewhere"
        first, second = spec_of_json(kept), spec_of_json(kept)
        assert first == second
        assert type(first.nest).__name__ == "Elsewhere"
        assert first.nest._fields == ("x", "y")
    kept.update({"module": "subprocess", "class": "Popen"})
    assert type(spec_of_json(kept).nest)._fields == ("x", "y")  # type: ignore[attr-defined]  # not subprocess.Popen


def test_a_dataclass_is_made_for_those_who_ask_for_it() -> None:
    spec = Spec.of(Record(T([], "i4")))
    kept = spec_json(spec, "save")
    with pytest.raises(
        InvalidArgumentError, match=r"of the dataclass tests\.core\.test_spec_json\.Record; give element_spec"
    ):
        spec_of_json(kept)
    assert spec_of_json(kept, spec) == spec


def test_what_is_expected_may_leave_sizes_open() -> None:
    spec = Spec.of((T([3], "i4"), {"b": T([], "f4"), "a": T([2], "i1")}))
    wider = Spec.of((T([None], "i4"), {"a": T(None, "i1"), "b": T([], "f4")}))
    assert through_json(spec, wider) is wider
    for other in [
        T([3], "i4"),
        (T([3], "i8"), spec.nest[1]),
        (T([4], "i4"), spec.nest[1]),
        (T([3], "i4"), {"a": T([2], "i1")}),
    ]:
        with pytest.raises(InvalidArgumentError, match=r"the elements look like .* and element_spec says"):
            through_json(spec, Spec.of(other))
    other_namedtuple = namedtuple("Point", "x y")  # noqa: PYI024 - another class of the same form
    kept = Spec.of(Point(T([], "i4"), T([], "f4")))
    given = Spec.of(other_namedtuple(T([], "i4"), T([], "f4")))
    assert type(through_json(kept, given).nest) is other_namedtuple


def test_what_has_no_json_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"save: component \['x'\] is a dataset; flat_map or zip it first"):
        spec_json(Spec.of({"x": DatasetSpec(T([], "i4"))}), "save")
    with pytest.raises(InvalidArgumentError, match="save: keys of dicts must be text, bytes, numbers or tuples"):
        spec_json(Spec.of({frozenset(): T([], "i4")}), "save")


@pytest.mark.parametrize(
    "value",
    [
        3, [], {}, {"dtype": "<i8"}, {"dtype": "<i8", "shape": [-1]}, {"dtype": "<i8", "shape": ["a"]}, {"tuple": 3},
        {"dict": [["a"]]}, {"namedtuple": [["a b", None]], "class": "A", "module": "m"},
        {"namedtuple": [["a", None]], "class": "import os", "module": "m"},
    ],
    ids=str,
)  # fmt: skip
def test_damage_is_named(value: Any) -> None:
    with pytest.raises(DataLossError, match="the spec of the elements is damaged"):
        spec_of_json(value)


def test_elements_of_a_window_are_datasets() -> None:
    with pytest.raises(InvalidArgumentError, match="the element is a dataset"):
        spec_json(di.data.Dataset.range(4).window(2).node.spec, "save")
