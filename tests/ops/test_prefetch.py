# SPDX-License-Identifier: Apache-2.0
import threading
import time
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range


@pytest.mark.parametrize("size", [0, 1, 5, di.data.AUTOTUNE])
def test_elements_are_unchanged(size: int) -> None:
    dataset = RANGE(20).map(lambda x: x + 1).prefetch(size)
    assert dataset.to_list() == list(range(1, 21))
    assert len(dataset) == 20


def test_elements_are_made_before_they_are_asked_for() -> None:
    made = threading.Event()

    def note(x: int) -> int:
        if x == 3:
            made.set()
        return x

    dataset = RANGE(10).map(note, output_signature=di.TensorSpec([], "int64")).prefetch(8)
    with iter(dataset) as it:
        next(it)
        assert made.wait(10)


def test_the_thread_ends_with_the_iterator() -> None:
    before = threading.active_count()
    with iter(RANGE(100_000).map(lambda x: x).prefetch(2)) as it:
        next(it)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_an_error_comes_in_its_turn() -> None:
    dataset = RANGE(5).map(lambda x: 6 // int(2 - x), output_signature=di.TensorSpec([], "int64")).prefetch(3)
    before, error = until_error(dataset)
    assert before == [3, 6]
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("size, error", [(-2, InvalidArgumentError), (1.5, TypeError)])
def test_the_size_is_checked(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"prefetch: buffer_size must be .*, got {size}"):
        RANGE(3).prefetch(size)
