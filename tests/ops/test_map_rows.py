# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.rewrite import rewrite
from distinput.testing import check_restart, check_rewrites
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range


def test_the_function_sees_many_rows_at_once() -> None:
    seen = []

    def double(x: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return x * 2

    dataset = RANGE(100).map_rows(double, output_signature=di.TensorSpec([], "int64"))
    assert dataset.to_list() == list(range(0, 200, 2))
    assert seen == [(100,)]


def test_it_equals_map() -> None:
    rows = di.data.Dataset.from_tensor_slices((np.arange(6).reshape(3, 2), ["a", "b", "c"]))
    made = rows.map_rows(lambda x, s: {"sum": x.sum(1), "text": s})
    assert made.to_list() == rows.map(lambda x, s: {"sum": x.sum(), "text": s}).to_list()
    assert made.element_spec == {"sum": di.TensorSpec([], "int64"), "text": di.TensorSpec([], "string")}


def test_rows_of_several_shapes_come_as_a_list() -> None:
    made = RANGE(3).map(np.arange).map_rows(lambda rows: np.array([len(row) for row in rows]))
    assert made.to_list() == [0, 1, 2]


def test_the_number_of_rows_must_be_kept() -> None:
    made = RANGE(3).map_rows(lambda x: x[:2], output_signature=di.TensorSpec([], "int64"))
    before, error = until_error(made)
    assert before == []
    assert isinstance(error, InvalidArgumentError)
    assert "map_rows: the result must have 3 rows, as many as the function was given, got shape [2]" in str(error)


def test_a_scalar_is_refused_when_the_spec_is_asked_for() -> None:
    message = "map_rows: the function must return arrays with a first axis of rows, got a scalar"
    with pytest.raises(InvalidArgumentError, match=message):
        RANGE(3).map_rows(lambda x: x.sum()).element_spec  # noqa: B018


def test_the_argument_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="map_rows: map_func must be a function, got 1"):
        RANGE(3).map_rows(1)


def test_vectors_stay_vectors() -> None:
    made = RANGE(2).map_rows(lambda x: np.stack([x, x + 1], 1))
    assert [plain(x) for x in made] == [[0, 1], [1, 2]]
    assert made.element_spec == di.TensorSpec([2], "int64")


def test_neighbours_run_as_one() -> None:
    dataset = RANGE(7).map_rows(lambda x: (x, x + 1)).map_rows(lambda a, b: a * b).map_rows(lambda x: {"y": x})
    assert rewrite(dataset.node)[1] == ["map_rows_of_map_rows"] * 2
    assert dataset.to_list() == [{"y": x * (x + 1)} for x in range(7)]
    check_rewrites(dataset)
    check_restart(dataset.batch(2))
    fused = rewrite(dataset.node)[0]
    assert list(fused.fetch(np.array([5, 0]), 0).elements()) == [{"y": 30}, {"y": 0}]


def test_an_error_of_neighbours_names_the_function() -> None:
    dataset = RANGE(7).map_rows(lambda x: x, name="first").map_rows(lambda x: x[:3], name="then")
    error = until_error(dataset)[1]
    assert "must have 7 rows" in str(error)
    assert error.__notes__[0].startswith("in map_rows[then](")


def test_an_input_without_elements_has_a_spec() -> None:
    made = di.data.Dataset.from_tensor_slices(np.zeros((0, 3))).map_rows(lambda x: x + 1)
    assert made.element_spec == di.TensorSpec([None], "float64")  # what no element shows is left open
    assert made.to_list() == []


def test_a_restart_behind_an_error_knows_what_is_returned_by_the_elements_without_errors() -> None:
    def make() -> di.data.Dataset:
        one = di.TensorSpec([], "int64")
        mapped = di.data.Dataset.range(3).map(lambda x: 6 // x, output_signature=one)  # an error for the first element
        return mapped.map_rows(lambda rows: rows * 2).ignore_errors()

    iterator = iter(make())
    assert next(iterator) == 12
    assert make().restore(iterator.state()).__next__() == 6


def test_the_spec_is_found_where_rows_differ_in_several_dimensions() -> None:
    rows = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_list([[1], [], [2, 3]])).padded_batch(1)
    sums = rows.map_rows(lambda many: np.array([float(each.sum()) for each in many]))
    assert sums.element_spec == di.TensorSpec([], "float64")
    assert sums.batch(3).to_list() == [[1.0, 0.0, 5.0]]
