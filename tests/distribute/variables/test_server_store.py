# SPDX-License-Identifier: Apache-2.0
"""Stores of variables that are at parameter servers."""

import gc
import pickle

import numpy as np
import pytest

import distinput as di
from distinput.distribute.coordinator.servers import Servers
from distinput.distribute.seats.threads import ThreadSeats
from distinput.errors import InvalidArgumentError, UnavailableError


def test_variables_go_to_the_servers_in_turn() -> None:
    servers = Servers(ThreadSeats(1, 2))
    stores = [servers.open_store(np.zeros(number)) for number in range(3)]
    assert [store.device(0) for store in stores] == [servers.devices[0], servers.devices[1], servers.devices[0]]
    assert [store.shape for store in stores] == [(0,), (1,), (2,)]


def test_what_is_unpickled_is_the_same_variable() -> None:
    store = Servers(ThreadSeats(1, 1)).open_store(np.zeros(2))
    there = pickle.loads(pickle.dumps(store))
    assert there.update(0, "assign_add", np.ones(2)) is None
    np.testing.assert_array_equal(store.read(0), [1, 1])
    assert (there.dtype, there.shape, there.copies) == (np.float64, (2,), 1)


def test_only_the_rows_asked_for_are_read() -> None:
    seats = ThreadSeats(1, 1)
    strategy = di.distribute.ParameterServerStrategy(seats=seats)
    with strategy.scope():
        table = di.Variable(np.arange(6.0).reshape(3, 2))
    assert strategy._servers is not None
    holder = strategy._servers._holders[0]._object  # type: ignore[attr-defined]
    holder.read = None  # the whole is not read
    np.testing.assert_array_equal(table.sparse_read([2, 0]), [[4.0, 5.0], [0.0, 1.0]])
    np.testing.assert_array_equal(table.gather_nd([[1, 1]]), [3.0])
    with pytest.raises(InvalidArgumentError, match="sparse_read"):
        table.sparse_read([3])


def test_a_lost_server_is_unavailable() -> None:
    seats = ThreadSeats(1, 2)
    servers = Servers(seats)
    lost, kept = servers.open_store(np.zeros(2)), servers.open_store(np.zeros(2))
    seats.lose("ps-0", back=False)
    for call in (
        lambda: lost.read(0),
        lambda: lost.update(0, "assign", np.ones(2)),
        lambda: servers.open_store(np.ones(1)),
    ):
        with pytest.raises(UnavailableError, match="parameter server ps-0 is lost"):
            call()
    np.testing.assert_array_equal(kept.read(0), [0, 0])


def test_the_server_forgets_what_nothing_refers_to() -> None:
    seats = ThreadSeats(1, 1)
    servers = Servers(seats)
    store = servers.open_store(np.zeros(2))
    holder = servers._holders[0]._object  # type: ignore[attr-defined]
    del store
    gc.collect()
    servers.open_store(np.zeros(2))
    assert len(holder._stores) == 1
