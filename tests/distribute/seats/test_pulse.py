# SPDX-License-Identifier: Apache-2.0
"""A connection that is closed is known at once, one that is silent after its time, one that answers never."""

import queue
import socket
import time

import pytest

from distinput.distribute.seats import remote_seats
from distinput.distribute.seats.remote_seats import Pulse
from tests.patience import Clock, wait_until


def test_who_answers_is_alive_and_who_is_silent_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(remote_seats, "time", clock)
    pulse = Pulse(0.4)
    said: list[str] = []
    alive, alive_there = socket.socketpair()
    silent, silent_there = socket.socketpair()
    pulse.add(alive, lambda why: said.append(f"alive: {why}"))
    pulse.add(silent, lambda why: said.append(f"silent: {why}"))
    wait_until(lambda: len(pulse._lines) == 2)
    for beats in range(1, 20):
        clock.now += 0.11
        alive_there.sendall(alive_there.recv(64))
        wait_until(lambda: all(line.unanswered == 0 for line in list(pulse._lines.values())[:1]))
        assert said == ["silent: it has stood still for 0.4 seconds"] * (beats > 4)
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
