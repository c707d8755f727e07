# SPDX-License-Identifier: Apache-2.0
"""Objects go over a socket and come out equal, arrays writable; strangers are turned away before anything is unpickled."""

import pickle
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.seats.links import Ended, answer_greeting, greet, receive, send

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def through(pair: Pair, value: Any) -> Any:
    here, there = pair
    sender = threading.Thread(target=send, args=(here, value))
    sender.start()
    try:
        return receive(there)
    finally:
        sender.join()


@given(sizes=st.lists(st.integers(0, 200_000), max_size=5), words=st.text())
def test_arrays_of_any_size_come_out_equal(sizes: list[int], words: str) -> None:
    here, there = socket.socketpair()
    with here, there:
        value = {"words": words, "arrays": [np.arange(size, dtype=np.uint8) for size in sizes]}
        found = through((here, there), value)
        assert found["words"] == words
        for array, size in zip(found["arrays"], sizes, strict=True):
            np.testing.assert_array_equal(array, np.arange(size, dtype=np.uint8))
            array += 1


def test_more_buffers_than_one_system_call_takes(pair: Pair) -> None:
    arrays = [np.full(5000, i % 256, np.uint8) for i in range(1500)]
    found = through(pair, arrays)
    assert [int(array[-1]) for array in found] == [i % 256 for i in range(1500)]


def test_an_array_in_the_order_of_fortran_keeps_it(pair: Pair) -> None:
    found = through(pair, np.asfortranarray(np.arange(20_000).reshape(100, 200)))
    assert found.flags.f_contiguous
    np.testing.assert_array_equal(found, np.arange(20_000).reshape(100, 200))


def test_what_cannot_be_pickled_leaves_the_connection_as_it_was(pair: Pair) -> None:
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
        send(pair[0], lambda: None)
    assert through(pair, 1) == 1


def test_a_connection_that_is_closed_in_between_and_in_the_middle(pair: Pair) -> None:
    here, there = pair
    here.sendall(b"\x01\x00")
    here.close()
    with pytest.raises(Ended, match="in the middle of a message"):
        receive(there)
    with pytest.raises(Ended, match="the connection was closed"):
        receive(there)


def greeted(pair: Pair, mine: bytes, theirs: bytes) -> list[Any]:
    found: list[Any] = []

    def answer() -> None:
        try:
            found.append(answer_greeting(pair[1], theirs))
        except ConnectionError as error:
            found.append(str(error))
            pair[1].close()

    answering = threading.Thread(target=answer)
    answering.start()
    try:
        greet(pair[0], mine, b"c")
        found.append("greeted")
    except ConnectionError as error:
        found.append(type(error))
    answering.join()
    return found


def test_two_that_know_the_secret(pair: Pair) -> None:
    assert sorted(map(str, greeted(pair, b"secret", b"secret"))) == ["b'c'", "greeted"]


def test_a_stranger_is_turned_away(pair: Pair) -> None:
    found = greeted(pair, b"guess", b"secret")
    assert "the caller does not know the secret of the cluster" in found
    assert "greeted" not in found


def test_a_host_that_does_not_know_the_secret_is_not_believed(pair: Pair) -> None:
    here, there = pair
    there.sendall(bytes(32))
    there.sendall(bytes(32))
    with pytest.raises(ConnectionError, match="the other end does not know the secret"):
        greet(here, b"secret", b"c")
