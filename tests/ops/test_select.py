# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset

ROWS = di.data.Dataset.from_tensor_slices({"x": [1, 4], "n": {"b": ["p", "q"], "a": [7.0, 8.0]}, "y": [[1, 2], [3, 4]]})


def test_keys_are_in_the_order_that_was_asked_for() -> None:
    assert [list(row) for row in ROWS.select(["y", "x"])] == [["y", "x"]] * 2
    assert ROWS.select(["n"]).to_list() == [{"n": {"b": b"p", "a": 7.0}}, {"n": {"b": b"q", "a": 8.0}}]
    assert ROWS.select(["x"]).element_spec == {"x": ROWS.element_spec["x"]}


def test_batches_and_positions_work_as_before() -> None:
    assert ROWS.batch(2).select(["x"]).to_list() == [{"x": [1, 4]}]
    assert ROWS.select(["x"])[1] == {"x": 4}
    assert len(ROWS.select(["x"])) == 2


def test_it_keeps_the_laws() -> None:
    assert {"restart", "facts"} <= set(check_dataset(lambda: ROWS.repeat(2).select(["y", "n"])))


@pytest.mark.parametrize(
    "dataset, columns, error, message",
    [
        (ROWS, ["z"], InvalidArgumentError, "select: elements have no component 'z'; they have n, x, y"),
        (ROWS, "x", InvalidArgumentError, "columns must be a list of names, got 'x'"),
        (ROWS, [], InvalidArgumentError, "at least one name, each once"),
        (ROWS, ["x", "x"], InvalidArgumentError, "at least one name, each once"),
        (ROWS, [5], InvalidArgumentError, "elements have no component 5"),
        (di.data.Dataset.range(3), ["x"], TypeError, "elements must be dicts, got TensorSpec"),
    ],
)
def test_wrong_columns_are_refused(dataset: Any, columns: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        dataset.select(columns)


def test_parts_of_inner_dicts_are_chosen_by_names_with_dots() -> None:
    assert ROWS.select(["x", "n.b"]).to_list() == [{"x": 1, "n": {"b": b"p"}}, {"x": 4, "n": {"b": b"q"}}]
    assert ROWS.select(["n.b", "n"]).to_list() == ROWS.select(["n"]).to_list()
    assert list(ROWS.select(["n.b", "n.a"]).element_spec["n"]) == ["b", "a"]
    assert ROWS.batch(2).select(["n.a"]).to_list() == [{"n": {"a": [7.0, 8.0]}}]
    assert {"restart", "facts"} <= set(check_dataset(lambda: ROWS.repeat(2).select(["y", "n.b"])))
    flat = di.data.Dataset.from_tensor_slices({"n.b": [1], "n": {"b": [2]}})
    assert flat.select(["n.b"]).to_list() == [{"n.b": 1}]  # a component of this name comes first
    for wrong, there in (("n.c", "a, b"), ("x.c", "."), ("n.b.c", ".")):
        with pytest.raises(InvalidArgumentError, match=f"no component '{wrong}'; they have {there}"):
            ROWS.select([wrong])


def test_keys_may_be_numbers() -> None:
    assert di.data.Dataset.from_tensor_slices({0: [1], 5: [2]}).select([0]).to_list() == [{0: 1}]


def test_parts_of_columns_that_tell_nulls_keep_their_marks() -> None:
    chats = pa.table({"m": [[{"role": "user", "n": None}], None], "k": [1, 2]})
    found = di.data.Dataset.from_arrow(chats).select(["m.role"])
    assert found.to_list()[0] == {"m": {"value": {"role": [b"user"]}, "valid": True}}
    assert found.to_arrow().to_pylist() == [{"m": {"role": [b"user"]}}, {"m": None}]


def test_parts_of_the_values_of_maps_are_named_alike_with_nulls_and_without() -> None:
    kind = pa.map_(pa.string(), pa.struct([("v", pa.int64()), ("w", pa.int64())]))
    rows: list[Any] = [[("a", {"v": 1, "w": 2})], [("b", None)], None]
    maps = [di.data.Dataset.from_arrow({"m": pa.array(rows[:count], kind)}) for count in (1, 2, 3)]
    plain, inside, whole = [dataset.select(["m.value.v"]).to_list()[0]["m"] for dataset in maps]
    assert plain == {"value": {"v": [1]}}
    assert inside == {"value": {"value": {"v": [1]}, "valid": [True]}}
    assert whole == {"value": inside, "valid": True}
    none = {"value": {"v": [], "w": []}, "valid": []}
    assert maps[2].select(["m.value"]).to_list()[2] == {"m": {"value": {"value": none}, "valid": False}}
    assert maps[2].select(["m.value"]).to_arrow().to_pylist()[2] == {"m": None}
    assert maps[0].select(["m.value"]).to_list() == [{"m": {"value": {"v": [1], "w": [2]}}}]
    for dataset in maps:
        with pytest.raises(InvalidArgumentError, match=r"no component 'm\.value\.x'; they have v, w"):
            dataset.select(["m.value.x"])


def test_the_value_of_a_nullable_is_named_where_nothing_in_it_has_this_name() -> None:
    rows = [{"value": 1, "k": 2}, None]
    both = di.data.Dataset.from_arrow({"s": pa.array(rows), "n": pa.array([None, 3])})
    assert both.select(["s.value"]).to_arrow().to_pylist() == [{"s": {"value": 1}}, {"s": None}]
    assert both.select(["s.k", "n.value"]).to_list()[1] == {"s": {"value": {"k": 0}, "valid": False}, "n": {"value": 3}}
    assert both.select(["s.valid"]).to_list() == [{"s": {"valid": True}}, {"s": {"valid": False}}]
    assert both.select(["s.value.k"]).to_list()[0] == {"s": {"value": {"k": 2}}}


def test_a_key_without_letters_is_a_name_like_others() -> None:
    dataset = di.data.Dataset.from_tensor_slices({"": [1], "x": {"": [2], "y": [3]}})
    assert dataset.select([""]).to_list() == [{"": 1}]
    assert dataset.select(["x.y", ""]).to_list() == [{"x": {"y": 3}, "": 1}]
    assert dataset.select(["x."]).to_list() == [{"x": {"": 2}}]
    with pytest.raises(InvalidArgumentError, match=r"no component 'x\.y\.'"):
        dataset.select(["x.y."]).to_list()
