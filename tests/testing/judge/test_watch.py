# SPDX-License-Identifier: Apache-2.0
"""Work that stands still is given up."""

import os
import threading
import time

import pytest

from distinput.testing.judge.processes import Still, load_told, watched


def test_results_and_errors_come_through() -> None:
    assert watched(lambda: 7, 5, time.monotonic) == 7
    with pytest.raises(KeyError):
        watched(lambda: {}[1], 5, time.monotonic)


def test_what_stands_still_is_given_up() -> None:
    free = threading.Event()
    began = time.monotonic()
    with pytest.raises(Still):
        watched(free.wait, 0.05, lambda: began)
    free.set()


@pytest.mark.parametrize(
    "load, said",
    [
        (2.0, ""),
        (9.2, "; on average 9 programs want to run on 2 cores here, so it may be starved: give it more patience"),
    ],
)
def test_a_busy_machine_is_told(monkeypatch: pytest.MonkeyPatch, load: float, said: str) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert load_told() == said
