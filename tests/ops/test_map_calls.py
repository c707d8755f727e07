# SPDX-License-Identifier: Apache-2.0
import threading

import numpy as np
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range


def test_the_order_is_kept_on_threads() -> None:
    threads = set()

    def note(x: int) -> int:
        threads.add(threading.current_thread().name)
        return x * 2

    dataset = RANGE(500).map(note, num_parallel_calls=3, output_signature=di.TensorSpec([], "int64"))
    assert dataset.to_list() == list(range(0, 1000, 2))
    assert threading.current_thread().name not in threads


@pytest.mark.parametrize("calls", [None, 2])
def test_elements_before_an_error_arrive(calls: int | None) -> None:
    dataset = RANGE(6).map(
        lambda x: 12 // int(3 - x), num_parallel_calls=calls, output_signature=di.TensorSpec([], "int64")
    )
    before, error = until_error(dataset)
    assert before == [4, 6, 12]
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("calls", [None, 2])
def test_elements_before_an_error_of_the_input_arrive(calls: int | None) -> None:
    # TensorFlow 2.21 answers so; results that threads are still working on must not be lost.
    wrong = RANGE(2).filter(lambda x: True).apply(di.data.experimental.assert_cardinality(3))
    before, error = until_error(wrong.map(lambda x: x + 1, num_parallel_calls=calls))
    assert before == [1, 2]
    assert isinstance(error, FailedPreconditionError)


def test_the_element_at_fault_is_noted_on_threads_too() -> None:
    dataset = RANGE(3).map(lambda x: 1 // int(x), num_parallel_calls=2, output_signature=di.TensorSpec([], "int64"))
    assert until_error(dataset)[1].__notes__[0] == "on element np.int64(0)"


@pytest.mark.parametrize("arguments", [{}, {"vectorize": True}, {"num_parallel_calls": 2}])
def test_a_fetched_element_is_the_one_that_a_pass_gives(arguments: dict[str, object]) -> None:
    dataset = RANGE(9).map(lambda x: x * 2, **arguments).map(lambda x: x + 1, **arguments)
    assert dataset[4] == dataset.to_list()[4] == 9
    assert dataset.node.fetch(np.empty(0, np.int64), 0).size == 0
