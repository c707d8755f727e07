# SPDX-License-Identifier: Apache-2.0
"""Work that stands still is given up."""

import threading
import time

import pytest

from distinput.testing.judge.processes import Still, watched


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
