# SPDX-License-Identifier: Apache-2.0
"""How long tests wait for what is sure to come, on a machine as slow and as busy as it may be."""

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds, so long that only what hangs takes them."""


def wait_until(condition: Callable[[], object]) -> None:
    """Return once the condition is true."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it does not come true"
        time.sleep(0.005)


class Clock:
    """A clock in the place of the module `time`, which goes on when it is told to."""

    now, sleep = 0.0, staticmethod(time.sleep)

    def monotonic(self) -> float:
        return self.now
