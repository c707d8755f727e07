# SPDX-License-Identifier: Apache-2.0
"""Copies of a variable in host memory."""

import pickle
import threading

import numpy as np
import pytest

from distinput.distribute.variables.store import HostStore


def test_a_write_changes_one_copy() -> None:
    store = HostStore(np.arange(3), ["CPU:0", "CPU:1"])
    store.update(1, "assign_add", np.ones(3, np.int64))
    assert [store.read(i).tolist() for i in range(store.copies)] == [[0, 1, 2], [1, 2, 3]]


def test_a_value_that_was_read_never_changes() -> None:
    store = HostStore(np.zeros(2), ["CPU:0"])
    before = store.read(0)
    store.update(0, "assign_add", np.ones(2))
    assert before.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        store.read(0)[0] = 5


def test_copies_are_different_objects() -> None:
    store = HostStore(np.zeros(2), ["CPU:0", "CPU:1"])
    new = np.ones(2)
    assert store.read(0) is not store.read(1)
    assert store.update(0, "assign", new) is not store.update(1, "assign", new)


@pytest.mark.parametrize(
    "value", [np.float32(1), np.array(1, np.int8), np.array([b"a"], object), np.array(b"a", object)]
)
def test_dtype_and_shape_stay(value: np.ndarray) -> None:
    store = HostStore(value, ["CPU:0"])
    made = store.update(0, "assign", np.asarray(value))
    assert isinstance(made, np.ndarray)
    assert (made.dtype, made.shape) == (store.dtype, store.shape) == (value.dtype, value.shape)


def test_a_failed_write_changes_nothing() -> None:
    store = HostStore(np.zeros(2), ["CPU:0"])
    with pytest.raises(ValueError, match="equal"):
        store.update(0, "assign_add", np.ones(3))
    assert store.update(0, "assign_add", np.ones(2)).tolist() == [1, 1]


def test_writes_of_threads_are_not_lost() -> None:
    store = HostStore(np.zeros(50_000, np.int64), ["CPU:0"])
    one = np.ones(50_000, np.int64)

    def add() -> None:
        for _ in range(50):
            store.update(0, "assign_add", one)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(store.read(0).tolist()) == {200}


def test_it_says_where_copies_are() -> None:
    assert [HostStore(np.zeros(1), ["CPU:0", "GPU:1"]).device(i) for i in range(2)] == ["CPU:0", "GPU:1"]


def test_it_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(HostStore(np.zeros(1), ["CPU:0"]))


class Traced:
    """Like an array of JAX while a function is compiled."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise TypeError("there is no value")


def test_a_value_that_is_not_there_yet_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot take a Traced, which has no value while a function is compiled"):
        HostStore(np.zeros(1), ["CPU:0"]).update(0, "assign", Traced())
