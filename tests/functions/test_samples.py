# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np

import distinput as di
from distinput.functions.inference import further_samples, in_memory, made_up_samples, real_elements, samples
from distinput.values.spec import Spec

Dataset = di.data.Dataset
RANGE = Dataset.range
INT64 = di.TensorSpec([], "int64")


def numbers(elements: Any) -> list[int]:
    return [int(element) for element in elements]


def test_what_is_in_memory_is_found_behind_steps_that_hand_elements_on() -> None:
    source = RANGE(5)
    assert in_memory(source.shuffle(3).repeat(2).node) is source.node
    assert in_memory(Dataset.from_tensor_slices([1, 2]).node) is not None
    assert in_memory(source.map(lambda x: x).node) is None
    assert in_memory(RANGE(0).node) is None


def test_all_of_few_elements_are_tried_and_some_of_many() -> None:
    assert numbers(samples(RANGE(5).node)) == [0, 1, 2, 3, 4]
    some = numbers(samples(RANGE(1000).node))
    assert some[:3] == [0, 1, 2]
    assert some[-1] == 999
    assert len(some) < 20


def test_made_up_elements_fit_their_spec() -> None:
    nest = {"a": di.TensorSpec([None, 2], "float32"), "b": (INT64, di.data.DatasetSpec(INT64))}
    found = list(made_up_samples(Spec.of(nest)))
    assert len({element["a"].shape for element in found}) > 1
    for element in found:
        assert element["a"].dtype == np.float32
        assert element["a"].shape[1] == 2
        assert element["b"][0].dtype == np.int64
        assert element["b"][1].element_spec == INT64
        assert len(list(element["b"][1])) == element["b"][1].cardinality()


def test_nothing_is_made_up_for_an_unknown_rank() -> None:
    assert list(made_up_samples(Spec.of(di.TensorSpec(None, "int64")))) == []


def test_a_made_up_dataset_is_one_of_elements_in_memory() -> None:
    (inner, *_) = made_up_samples(Spec.of(di.data.DatasetSpec(INT64)))
    assert in_memory(inner.node) is inner.node
    assert inner.batch(2).element_spec == di.TensorSpec([None], "int64")


def test_a_difference_of_times_that_a_function_refers_to_is_no_number() -> None:
    second = np.timedelta64(1, "s")
    numbers = Dataset.from_generator(lambda: iter(range(3)), output_signature=INT64)
    spec = numbers.map(lambda n: np.arange(3) * second * n).element_spec
    assert spec == di.TensorSpec([3], "timedelta64[s]")


def test_numbers_in_the_code_of_a_function_are_tried_with_their_neighbours() -> None:
    limit = 500

    def inner(x: int) -> bool:
        return x > limit

    def function(x: int, most: int = 70) -> bool:
        return inner(x) and x != 900 and x < most

    found = set(numbers(further_samples(RANGE(1000).node, (function,))))
    assert {69, 70, 71, 499, 500, 501, 899, 900, 901} <= found


def test_rows_with_these_numbers_are_found_in_arrays_and_in_ranges_with_steps() -> None:
    def function(x: int) -> bool:
        return x == 30

    array = Dataset.from_tensor_slices(np.array([10, 20, 30, 40]))
    assert numbers(further_samples(array.node, (function,))) == [30]
    assert numbers(further_samples(RANGE(0, 100, 10).node, (function,))) == [30]
    assert numbers(further_samples(RANGE(1, 100, 10).node, (function,))) == [31]


def test_real_elements_do_not_wait_for_buffers_and_read_no_further_than_asked() -> None:
    made: list[int] = []

    def note(x: Any) -> Any:
        made.append(int(x))
        return x

    source = RANGE(100).map(note, output_signature=INT64).shuffle(50).prefetch(10)
    assert next(real_elements(source.node)) == 0
    assert made == [0]


def test_real_elements_skip_those_on_which_a_function_fails() -> None:
    source = RANGE(4).map(lambda x: 6 // int(x), output_signature=di.TensorSpec([], "int32"))
    assert numbers(real_elements(source.node)) == [6, 3, 2]
