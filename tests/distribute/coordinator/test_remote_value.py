# SPDX-License-Identifier: Apache-2.0
"""A result that may not be there yet."""

import threading

import numpy as np
import pytest

import distinput as di
from distinput.distribute.coordinator.closures import RemoteValue, ResourceValue


def test_get_waits_for_the_value() -> None:
    value = RemoteValue()
    assert repr(value) == "<RemoteValue: not ready>"
    timer = threading.Timer(0.02, value._set, [7])
    timer.start()
    assert value.get(10) == 7
    assert value.fetch() == 7
    assert repr(value) == "<RemoteValue: 7>"


def test_get_does_not_wait_longer_than_told() -> None:
    with pytest.raises(TimeoutError, match=r"no result within 0\.01 seconds"):
        RemoteValue().get(0.01)


def test_an_error_is_raised_each_time() -> None:
    value = RemoteValue()
    value._fail(KeyError("x"))
    for read in (value.get, value.fetch):
        with pytest.raises(KeyError, match="x"):
            read()
    assert repr(value) == "<RemoteValue: KeyError('x')>"


def test_fetch_gives_numpy_values_and_get_what_was_returned() -> None:
    variable = di.Variable([1.0, 2.0])
    value = RemoteValue()
    value._set({"v": variable, "n": (1, None), "x": np.arange(2)})
    assert value.get()["v"] is variable
    fetched = value.fetch()
    assert isinstance(fetched["v"], np.ndarray)
    assert fetched["n"] == (1, None)


def test_fetch_of_a_variable_is_its_value() -> None:
    value = RemoteValue()
    value._set(di.Variable(3))
    assert value.fetch() == 3
    assert not isinstance(value.fetch(), di.Variable)


def test_a_resource_is_read_anew_each_time() -> None:
    numbers = iter(range(3))
    value = ResourceValue()
    value._read = lambda timeout: (next(numbers), timeout)
    assert [value.get(), value.get(2.0), value.fetch()] == [(0, None), (1, 2.0), (2, None)]
