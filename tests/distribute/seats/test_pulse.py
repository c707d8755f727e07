# SPDX-License-Identifier: Apache-2.0
"""A connection that is closed is known at once, one that is silent after its time, one that answers never."""

import queue
import socket
import threading
import time

from distinput.distribute.seats.remote_seats import Pulse


def answering(connection: socket.socket) -> None:
    try:
        while beat := connection.recv(64):
            connection.sendall(beat)
    except OSError:
        pass


def test_who_answers_is_alive_and_who_is_silent_is_lost() -> None:
    pulse = Pulse(0.4)
    said: queue.Queue[str] = queue.Queue()
    alive, alive_there = socket.socketpair()
    silent, silent_there = socket.socketpair()
    threading.Thread(target=answering, args=(alive_there,), daemon=True).start()
    pulse.add(alive, lambda why: said.put(f"alive: {why}"))
    pulse.add(silent, lambda why: said.put(f"silent: {why}"))
    assert said.get(timeout=60) == "silent: it has stood still for 0.4 seconds"
    time.sleep(0.5)
    assert said.empty()
    pulse.close()
    for connection in (alive_there, silent_there):
        connection.close()


def test_an_end_is_known_at_once_and_told_once() -> None:
    pulse = Pulse(60.0)
    said: queue.Queue[float] = queue.Queue()
    here, there = socket.socketpair()
    pulse.add(here, lambda why: said.put(time.perf_counter()))
    began = time.perf_counter()
    there.close()
    assert said.get(timeout=60) - began < 30
    assert here.fileno() == -1
    pulse.close()
    assert said.empty()


def test_what_is_added_after_the_end_is_closed() -> None:
    pulse = Pulse(1.0)
    pulse.close()
    pulse.close()
    here, there = socket.socketpair()
    pulse.add(here, lambda why: None)
    assert here.fileno() == -1
    there.close()


def test_the_end_may_be_seen_before_it_is_told() -> None:
    pulse = Pulse(0.04)  # it looks a hundred times a second
    wake = pulse._wake

    class Slow:
        def send(self, data: bytes) -> None:
            time.sleep(0.1)
            wake.send(data)

        def close(self) -> None:
            wake.close()

    pulse._wake = Slow()  # type: ignore[assignment]
    pulse.close()
    assert wake.fileno() == -1
