# SPDX-License-Identifier: Apache-2.0
"""Ports for the programs that tests start."""

import contextlib
import random
import socket

_PORTS = random.Random().sample(range(15_000, 32_000), 17_000)
"""In another order in each process, and below those that a system gives to whoever asks for any port, as other tests do
before a program listens."""


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses; none is given twice."""
    found: list[int] = []
    while len(found) < count:
        port = _PORTS.pop()
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            found.append(port)
    return found
