# SPDX-License-Identifier: Apache-2.0
"""Which worker runs this code."""

import threading

import pytest

from distinput.distribute.coordinator.worker_seat import (
    as_worker,
    experimental_get_current_worker_index,
    is_worker,
    own_value,
)


def test_outside_of_workers_there_is_no_index() -> None:
    assert not is_worker()
    assert own_value(0) is None
    with pytest.raises(RuntimeError, match="Cannot retrieve the worker index"):
        experimental_get_current_worker_index()


def test_a_block_is_the_code_of_a_worker_on_this_thread_alone() -> None:
    seen: list[bool] = []
    with as_worker(3, {5: "five"}):
        assert (experimental_get_current_worker_index(), own_value(5), own_value(6)) == (3, "five", None)
        with as_worker(4):
            assert experimental_get_current_worker_index() == 4
        assert experimental_get_current_worker_index() == 3
        other = threading.Thread(target=lambda: seen.append(is_worker()))
        other.start()
        other.join()
    assert seen == [False]
    assert not is_worker()


def test_values_that_are_made_meanwhile_are_found() -> None:
    values: dict[int, str] = {}
    with as_worker(0, values):
        values[1] = "one"
        assert own_value(1) == "one"
