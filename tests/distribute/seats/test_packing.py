# SPDX-License-Identifier: Apache-2.0
"""What is packed can be unpacked several times, into values of its own."""

import pickle
import sys
import threading

import numpy as np
import pytest

from distinput.distribute.seats import AsIs, Packing, Pickled, packing
from distinput.errors import EngineMissing
from distinput.run.segments import pickler


@pytest.mark.parametrize("given", [AsIs(), Pickled()])
def test_packing_travels_itself(given: Packing) -> None:
    assert pickle.loads(pickle.dumps(given)) == given


def test_as_is_hands_over_the_value() -> None:
    value = [1]
    assert AsIs().unpack(AsIs().pack(value)) is value


@pytest.mark.needs("cloudpickle")
def test_a_closure_over_local_names_is_pickled() -> None:
    factor = 3
    assert Pickled().unpack(Pickled().pack(lambda x: factor * x))(2) == 6


def test_arrays_follow_as_buffers_and_are_made_anew_each_time() -> None:
    given = np.arange(100_000)
    packed = Pickled().pack({"x": given, "y": given[::2]})
    given[:] = 0  # between scheduling and running
    first, second = Pickled().unpack(packed), Pickled().unpack(packed)
    assert len(packed.data) < 1_000_000
    assert len(packed.buffers) == 1
    np.testing.assert_array_equal(first["x"], np.arange(100_000))
    np.testing.assert_array_equal(second["y"], np.arange(100_000)[::2])


def test_an_unpacked_array_can_be_written_to() -> None:
    there = Pickled().unpack(Pickled().pack(np.zeros(3)))
    there += 1
    np.testing.assert_array_equal(there, np.ones(3))


@pytest.mark.needs("cloudpickle")
def test_what_cannot_be_sent_is_refused_when_it_is_packed() -> None:
    with pytest.raises(TypeError, match="lock"):
        Pickled().pack(threading.Lock())


def test_without_cloudpickle_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    packing._pickler.cache_clear()
    pickler.cache_clear()
    with pytest.raises(EngineMissing, match=r"pip install 'distinput\[dask\]'"):
        Pickled().pack(lambda: 1)
