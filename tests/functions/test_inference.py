# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.functions.inference import infer, results_of
from distinput.values.spec import Spec

RANGE = di.data.Dataset.range


def inferred(function: Callable[[Any], Any], dataset: di.data.Dataset) -> Any:
    return infer("map", function, dataset.node, function).nest


def test_the_spec_of_a_value_is_exactly_that_of_the_value() -> None:
    spec = Spec.of_value({"a": np.zeros((2, 3), np.float32), "b": (1, "text")})
    assert spec.nest == {
        "a": di.TensorSpec([2, 3], "float32"),
        "b": (di.TensorSpec([], "int32"), di.TensorSpec([], "string")),
    }
    assert Spec.of_value(RANGE(3).node).nest == di.data.DatasetSpec(di.TensorSpec([], "int64"))


def test_a_dimension_is_known_where_it_is_the_same_for_all_samples() -> None:
    assert inferred(lambda x: np.zeros((2, 3)), RANGE(100)) == di.TensorSpec([2, 3], "float64")
    assert inferred(lambda x: np.zeros((2, x)), RANGE(100)) == di.TensorSpec([2, None], "float64")


def test_a_number_in_the_code_of_a_function_is_tried() -> None:
    assert inferred(lambda x: np.zeros(2 if x == 777 else 1), RANGE(1000)) == di.TensorSpec([None], "float64")


def test_elements_on_which_a_function_fails_are_skipped() -> None:
    assert inferred(lambda x: np.float32(6 // x), RANGE(5)) == di.TensorSpec([], "float32")


def test_text_is_not_made_up_and_dimensions_stay_open() -> None:
    seen = []

    def split(text: bytes) -> Any:
        seen.append(text)
        return np.array(text.split(), object)

    source = RANGE(3).map(lambda x: b"%d words" % x, output_signature=di.TensorSpec([], "string"))
    assert inferred(split, source) == di.TensorSpec([None], "string")
    assert seen == [b"0 words"]


def test_elements_in_memory_that_show_two_kinds_are_an_error() -> None:
    with pytest.raises(TypeError, match=r"map: the function must return one dtype, got .*give output_signature="):
        inferred(lambda x: np.float32(x) if x % 2 else np.int64(x), RANGE(4))
    with pytest.raises(TypeError, match=r"map: the function must return one structure"):
        inferred(lambda x: (x, x) if x % 2 else x, RANGE(4))


def test_where_nothing_can_be_tried_the_error_says_so() -> None:
    empty = RANGE(0).map(lambda x: b"", output_signature=di.TensorSpec([], "string"))
    with pytest.raises(
        InvalidArgumentError, match=r"map: cannot tell what the function returns: the input has no element"
    ):
        inferred(lambda text: {}[text], empty)
    assert inferred(lambda x: np.zeros(3), RANGE(0)) == di.TensorSpec([3], "float64")


def test_an_error_on_every_element_is_raised() -> None:
    source = RANGE(3).map(lambda x: b"x", output_signature=di.TensorSpec([], "string"))
    with pytest.raises(KeyError):
        inferred(lambda text: {}[text], source)


def test_results_skip_elements_on_which_the_function_fails() -> None:
    assert list(results_of(lambda x: 6 // int(x), RANGE(4).node)) == [6, 3, 2]
    mapped = RANGE(4).map(lambda x: x, output_signature=di.TensorSpec([], "int64")).node
    assert list(results_of(lambda x: 1 // (int(x) == 0 and type(x) is np.int64), mapped))  # made-up elements
